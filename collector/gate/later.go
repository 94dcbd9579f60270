package gate

import (
	"context"
	"fmt"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Later are the gates that can be evaluated for a later update of a path, which starts
// from a release that the cluster does not run yet. before are the admin gates of that
// release, by key; nil where it could not be read. fixed is that of [Check]. A subject
// of these checks has Later set.
func Later(before map[string]string, fixed removedapi.FixTime) []check.Check {
	return []check.Check{
		adminack.Later(before),
		laterHop(),
		IncompatibleOperators(),
		laterKubeletSkew(),
		NetworkType(),
		removedapi.Check(fixed),
	}
}

// laterKubeletSkew is KubeletSkew, except that a kubelet which is too old at present only
// warns: the nodes can be updated at the release before the update, whose gate then
// decides.
func laterKubeletSkew() check.Check {
	skew := KubeletSkew()
	judge := skew.Run
	skew.Run = func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		findings, err := judge(ctx, s)
		for i, f := range findings {
			if f.Outcome == preflight.Fail {
				findings[i] = measure.Changed(f, preflight.Warn, "%s", untilThen(s.Update))
			}
		}
		return findings, err
	}
	return skew
}

func untilThen(u update.Update) string {
	return fmt.Sprintf("The nodes have to be updated when the cluster runs %s, before the update to %s.", u.From, u.To)
}
