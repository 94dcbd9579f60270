package narrative_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// On the way from 4.6 to 4.7 the cluster can be sent to another 4.7, but not on
// to 4.8 before it has arrived: what keeps it from leaving 4.7, only the
// operators of 4.7 know (eus-upgrades-mvp).
func TestRetargetDuringAnUpdate(t *testing.T) {
	t.Parallel()
	const updating = "ClusterVersionUpdating"
	s := on(t, &byDefault)
	images := s.publish("4.7.60", "4.8.57")
	began := metav1.Now()
	s.state.Version, s.state.Channel, s.state.Available, s.state.Updating = "4.7.58", "eus-4.10", images, true
	s.state.Past = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, Version: "4.6.62", Image: digested("6"), StartedTime: began, CompletionTime: &began, Verified: true,
	}}
	s.change(node("control-plane-0", "master", "v1.19.16"))
	s.change(node("worker-0", "worker", "v1.19.16"))
	s.apply()
	s.run(blocked, "--to", "4.8.57").
		because(names{blocking: []string{updating}}).
		finds(updating, preflight.Fail, "UpdateInProgress", "from 4.6.62 to 4.7.58 is in progress", "updates within 4.7 are not blocked")
	s.run(ready, "--to", "4.7.60").
		because(names{}).
		finds(updating, preflight.Warn, "MinorVersionClusterUpdateInProgress", "would be retargeted to 4.7.60")
	s.explain(blocked, "4.8.57", "--accept", updating).finds("AcceptanceWithoutEffect", preflight.Warn, "NotAcceptable", updating)

	// 4.7 is there, and its nodes too: now 4.8 may follow.
	s.state.Updating = false
	s.change(node("control-plane-0", "master", "v1.20.15"))
	s.change(node("worker-0", "worker", "v1.20.15"))
	s.apply()
	s.run(ready, "--to", "4.8.57").because(names{}).finds(updating, preflight.Pass, "NotUpdating")

	// But 4.9 has to wait for 4.8: no hop is left out.
	s.state.Available["4.9.59"] = digested("9")
	s.apply()
	s.explain(blocked, "4.9.59").
		finds("ClusterVersionGiantHop", preflight.Fail, "MultipleMinorVersionsUpdate", "4.9.59")
}

// What this cluster's CVO does of the story, where its release is known: 4.18
// takes another patch of the minor version that the update goes to.
func TestWhatCVODoesDuringAnUpdate(t *testing.T) {
	t.Parallel()
	s := on(t, &techPreview)
	began := metav1.Now()
	s.state.Version, s.state.Updating = "4.19.3", true
	s.state.Available = s.publish("4.19.4", "4.20.1")
	s.state.Past = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, Version: "4.18.15", Image: digested("0"), StartedTime: began, CompletionTime: &began, Verified: true,
	}}
	s.apply()
	s.run(ready, "--to", "4.19.4").because(names{}).cvoTakes()
	s.run(blocked, "--to", "4.20.1").
		because(names{blocking: []string{"ClusterVersionUpdating"}}).
		cvoRefuses("PreconditionChecks", "ClusterVersionUpdating")
	// It takes no signature to know that.
	s.explain(blocked, "4.20.1").cvoRefuses("PreconditionChecks", "ClusterVersionUpdating")
}
