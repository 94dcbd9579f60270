package commands_test

import (
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
)

// Workers in a paused pool keep their version while the control plane is updated repeatedly,
// until its API server does not support them (eus-upgrades-mvp). The limit depends on the
// release: 4.19, with Kubernetes 1.32, supports kubelets from 1.31 on; 4.18 and 4.20 support two
// versions back.
func TestKubeletsAndThePausedPool(t *testing.T) {
	const workers = "KubeletMinorVersionUpgradeable-worker"
	e := newEnvironment(t, &byDefault)
	for name, tc := range map[string]struct {
		reason string
		// from and to are the versions of the update; kubelet is the version of the workers.
		from, to, kubelet string
		controlPlane      string
		code              int
		want              causes
		outcome           preflight.Outcome
		finding           string
		words             []string
	}{
		"Below": {
			reason: "4.20 supports kubelets one version older, too", from: "4.19.9", to: "4.20.2", kubelet: "v1.32.6", controlPlane: "v1.32.6",
			outcome: preflight.Warn, finding: "PoolPaused",
			words: []string{"must be unpaused", "before the update to 4.21", "oc patch machineconfigpool worker"},
		},
		"AtTheLimit": {
			reason: "4.20 supports no older kubelets", from: "4.19.9", to: "4.20.2", kubelet: "v1.31.9", controlPlane: "v1.32.6",
			outcome: preflight.Warn, finding: "PoolPaused",
			words: []string{"which 4.20 supports", "must be unpaused", "before the update to 4.21", "from 1.33 on"},
		},
		"Beyond": {
			reason: "4.21 does not support them", from: "4.20.2", to: "4.21.4", kubelet: "v1.31.9", controlPlane: "v1.33.5",
			code: exit.Blocked, want: causes{blocking: []string{workers}},
			outcome: preflight.Fail, finding: "KubeletMinorVersionUnsupportedNextUpgrade",
			words: []string{
				"(paused)", "1.31", "the API server of 4.21 supports kubelets from 1.33 on", "does not block updates within 4.20",
				`'{"spec":{"paused":false}}'`,
			},
		},
		"BeyondAlready": {
			reason: "not even this release supports them", from: "4.21.4", to: "4.22.1", kubelet: "v1.31.9", controlPlane: "v1.34.2",
			code: exit.Blocked, want: causes{blocking: []string{workers}},
			outcome: preflight.Fail, finding: "KubeletMinorVersionUnsupported", words: []string{"1.31"},
		},
	} {
		e.t.Log(name + ": " + tc.reason)
		e.state.Version, e.state.Available = tc.from, map[string]string{tc.to: examplePullSpec("2")}
		e.apply()
		e.replace(paused(pool("worker")))
		e.replace(node("control-plane-0", "master", tc.controlPlane))
		e.replace(node("worker-0", "worker", tc.kubelet))
		e.evaluate(tc.code, tc.to).expectCauses(tc.want).
			expectFinding(workers, tc.outcome, tc.finding, tc.words...).
			expectFinding("MachineConfigPool-worker", preflight.Warn, "PoolPaused")
		if t.Failed() {
			t.Fatal(name)
		}
	}

	// The update is not blocked once the pool is unpaused and up to date.
	e.state.Version, e.state.Available = "4.20.2", map[string]string{"4.21.4": examplePullSpec("2"), "4.20.3": examplePullSpec("3")}
	e.apply()
	e.replace(node("control-plane-0", "master", "v1.33.5"))
	e.evaluate(exit.Blocked, "4.21.4", "--accept", workers).expectCauses(causes{blocking: []string{workers}})
	e.evaluate(exit.Ready, "4.20.3").expectCauses(causes{})
	e.replace(pool("worker"))
	e.replace(node("worker-0", "worker", "v1.33.5"))
	e.evaluate(exit.Ready, "4.21.4").expectCauses(causes{}).expectFinding("KubeletMinorVersionUpgradeable", preflight.Pass,
		"KubeletMinorVersionsSynced")
}
