package commands_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
)

// During an update from 4.6 to 4.7, another 4.7 can be selected, but 4.8 only after the update
// is complete: only the operators of 4.7 report what blocks an update from it
// (eus-upgrades-mvp).
func TestRetargetDuringAnUpdate(t *testing.T) {
	const updating = "ClusterVersionUpdating"
	e := newEnvironment(t, &byDefault)
	images := e.publish("4.7.60", "4.8.57")
	began := metav1.Now()
	e.state.Version, e.state.Channel, e.state.Available, e.state.Updating = "4.7.58", "eus-4.10", images, true
	e.state.Past = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, Version: "4.6.62", Image: examplePullSpec("6"), StartedTime: began, CompletionTime: &began,
		Verified: true,
	}}
	e.replace(node("control-plane-0", "master", "v1.19.16"))
	e.replace(node("worker-0", "worker", "v1.19.16"))
	e.apply()
	e.run(exit.Blocked, "--to", "4.8.57").
		expectCauses(causes{blocking: []string{updating}}).
		expectFinding(updating, preflight.Fail, "UpdateInProgress", "from 4.6.62 to 4.7.58 is in progress", "updates within 4.7 are not blocked")
	e.run(exit.Ready, "--to", "4.7.60").
		expectCauses(causes{}).
		expectFinding(updating, preflight.Warn, "MinorVersionClusterUpdateInProgress", "would be retargeted to 4.7.60")
	e.evaluate(exit.Blocked, "4.8.57", "--accept", updating).expectFinding("AcceptanceWithoutEffect", preflight.Warn, "NotAcceptable",
		updating)

	// The update to 4.7 is complete, including the nodes: 4.8 can follow.
	e.state.Updating = false
	e.replace(node("control-plane-0", "master", "v1.20.15"))
	e.replace(node("worker-0", "worker", "v1.20.15"))
	e.apply()
	e.run(exit.Ready, "--to", "4.8.57").expectCauses(causes{}).expectFinding(updating, preflight.Pass, "NotUpdating")

	// 4.9 is blocked: no minor version can be skipped.
	e.state.Available["4.9.59"] = examplePullSpec("9")
	e.apply()
	e.evaluate(exit.Blocked, "4.9.59").
		expectFinding("ClusterVersionGiantHop", preflight.Fail, "MultipleMinorVersionsUpdate", "4.9.59")
}

// The CVO of 4.19 accepts another patch release of the minor version of the update in progress,
// and rejects the next minor version.
func TestCVODuringAnUpdate(t *testing.T) {
	e := newEnvironment(t, &techPreview)
	began := metav1.Now()
	e.state.Version, e.state.Updating = "4.19.3", true
	e.state.Available = e.publish("4.19.4", "4.20.1")
	e.state.Past = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, Version: "4.18.15", Image: examplePullSpec("0"), StartedTime: began, CompletionTime: &began,
		Verified: true,
	}}
	e.apply()
	e.run(exit.Ready, "--to", "4.19.4").expectCauses(causes{}).expectCVOAccepts()
	e.run(exit.Blocked, "--to", "4.20.1").
		expectCauses(causes{blocking: []string{"ClusterVersionUpdating"}}).
		expectCVORejects("PreconditionChecks", "ClusterVersionUpdating")
	// The result does not require the signature.
	e.evaluate(exit.Blocked, "4.20.1").expectCVORejects("PreconditionChecks", "ClusterVersionUpdating")
}
