package gate

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ReasonAdminGatesUnread is reported for a later update of a path when the admin gates of
// the release before it are unknown.
//
// Cause: the release could not be verified or read.
//
// Remedy: fix the finding about the release, then run the preflight again.
const ReasonAdminGatesUnread finding.Reason = "AdminGatesUnread"

// ReasonNotNewer is reported for an update of a path whose target is not newer than the
// release before it.
//
// Cause: the updates are not in order.
//
// Remedy: name the releases in ascending order.
const ReasonNotNewer finding.Reason = "NotNewer"

// Later are the gates that can be evaluated for a later update of a path, which starts
// from a release that the cluster does not run yet. before are the admin gates of that
// release, by key; nil where it could not be read. fixed is that of [Check]. A subject
// of these checks has Later set.
func Later(before map[string]string, fixed removedapi.FixTime) []check.Check {
	return []check.Check{
		laterAdminAck(before),
		laterHop(),
		IncompatibleOperators(),
		laterKubeletSkew(),
		NetworkType(),
		removedapi.Check(fixed),
	}
}

// laterAdminAck is AdminAck with the gates of the payload of the release before the
// update. They can be acknowledged ahead: CVO reads the acknowledgements once it runs that
// release.
func laterAdminAck(before map[string]string) check.Check {
	return check.Check{
		Name: AdminAck().Name, Kind: finding.SourceGate, Concerns: update.Update.LeavesMinor,
		Reads: adminAckReads(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if before == nil {
				return []finding.Finding{gatesUnread(s.Update)}, nil
			}
			return laterAcks(ctx, s, before)
		},
	}
}

func gatesUnread(u update.Update) finding.Finding {
	return finding.Unknown(ReasonAdminGatesUnread,
		"unknown which admin acknowledgements are required to leave %s: the release %s could not be read", update.Line(u.From), u.From).
		Remedy("Fix the findings about release %s, then run the preflight again.", u.From)
}

func laterAcks(ctx context.Context, s check.Subject, before map[string]string) ([]finding.Finding, error) {
	location := locations()[0]
	acks, err := read(ctx, s.Cluster.ConfigMap, location.acks, acksName)
	if err != nil {
		return nil, err
	}
	judged := adminAck{minor: update.Line(s.Update.From)}.judgeAll([]pair{{location: location, gates: &corev1.ConfigMap{Data: before}, acks: acks}})
	for i, f := range judged {
		// The command "ack" knows the gates of the present release only.
		judged[i].Actions = slices.DeleteFunc(slices.Clone(f.Actions), func(a finding.Action) bool { return a.Type == finding.ActionAcknowledge })
	}
	return slices.DeleteFunc(judged, func(f finding.Finding) bool { return f.Name == nameUnused }), nil
}

// laterHop is GiantHop, by the rules of the CVO of the release before the update, and
// rejects an update to a release that is not newer.
func laterHop() check.Check {
	return check.Check{
		Name: GiantHop().Name, Kind: finding.SourceGate,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			return []finding.Finding{judgeLaterHop(s.Update)}, nil
		},
	}
}

func judgeLaterHop(u update.Update) finding.Finding {
	if !u.To.GT(u.From) {
		return finding.Fail(ReasonNotNewer, "the path leads from %s to %s, which is not newer", u.From, u.To).
			Remedy("Name the releases in ascending order.")
	}
	before := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: u.From.String()}}}
	found := cvo.GiantHop(before, u.To.String())
	if found == nil {
		return finding.Pass(ReasonOneHop, "from %s to %s is one hop", u.From, u.To)
	}
	found.Weight = cvo.Blocking
	return violated(*found).Remedy("%s", situation{update: u}.hops())
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
