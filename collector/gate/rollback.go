package gate

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Rollback is CVO's precondition against going back: what lies before the
// current target is out of reach, but for the cluster's previous release within
// the same minor version, which some releases of CVO allow.
func Rollback(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "ClusterVersionRollback", Kind: preflight.SourceGate, Update: u,
		Look: onClusterVersion(cluster, u, fresh(judgeRollback)),
	}
}

func judgeRollback(s situation) []preflight.Finding {
	objection := cvo.Rollback(s.version, s.target())
	switch {
	case objection != nil:
		return []preflight.Finding{refused(objection, fmt.Sprintf(
			"Choose a release that is not before %s: oc preflight targets. Only --force gets past it, and such a rollback is neither tested nor supported.", s.move.From))}
	case s.move.Kind() == update.Rollback:
		return []preflight.Finding{{
			Outcome: preflight.Warn, Reason: "PreviousRelease",
			Message:     fmt.Sprintf("%s is the cluster's previous release; going back to it from %s brings back what was fixed since", s.target(), s.move.From),
			Remediation: "Better go forward to a release with a fix: oc preflight targets",
		}}
	}
	return []preflight.Finding{{
		Outcome: preflight.Pass, Reason: "NotBefore",
		Message: fmt.Sprintf("%s is not before %s, which ClusterVersion has in status.desired", s.target(), s.move.From),
	}}
}
