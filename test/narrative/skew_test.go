package narrative_test

import (
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Workers whose pool is paused keep their version while the control plane is updated
// from hop to hop, until its API server does not support them any longer
// (eus-upgrades-mvp). The limit is by release: 4.19, with Kubernetes 1.32,
// supports kubelets from 1.31 on; 4.18 and 4.20 two versions back.
func TestKubeletsAndThePausedPool(t *testing.T) {
	t.Parallel()
	const workers = "KubeletMinorVersionUpgradeable-worker"
	s := on(t, &byDefault)
	for name, story := range map[string]struct {
		reason string
		// from and to are the hop, kubelet is what the workers have.
		from, to, kubelet string
		controlPlane      string
		code              int
		because           names
		outcome           preflight.Outcome
		finding           string
		says              []string
	}{
		"Below": {
			reason: "4.20 supports one more", from: "4.19.9", to: "4.20.2", kubelet: "v1.32.6", controlPlane: "v1.32.6",
			outcome: preflight.Warn, finding: "PoolPaused", says: []string{"has to be unpaused", "before the update to 4.21", "oc patch machineconfigpool worker"},
		},
		"AtTheLimit": {
			reason: "4.20 supports just these", from: "4.19.9", to: "4.20.2", kubelet: "v1.31.9", controlPlane: "v1.32.6",
			outcome: preflight.Warn, finding: "PoolPaused", says: []string{"which 4.20 supports", "has to be unpaused", "before the update to 4.21", "from 1.33 on"},
		},
		"Beyond": {
			reason: "4.21 is too far", from: "4.20.2", to: "4.21.4", kubelet: "v1.31.9", controlPlane: "v1.33.5",
			code: blocked, because: names{blocking: []string{workers}},
			outcome: preflight.Fail, finding: "KubeletMinorVersionUnsupportedNextUpgrade",
			says: []string{"(paused)", "1.31", "the API server of 4.21 supports kubelets from 1.33 on", "does not block updates within 4.20", `'{"spec":{"paused":false}}'`},
		},
		"BeyondAlready": {
			reason: "not even this release supports them", from: "4.21.4", to: "4.22.1", kubelet: "v1.31.9", controlPlane: "v1.34.2",
			code: blocked, because: names{blocking: []string{workers}},
			outcome: preflight.Fail, finding: "KubeletMinorVersionUnsupported", says: []string{"1.31"},
		},
	} {
		s.t.Log(name + ": " + story.reason)
		s.state.Version, s.state.Available = story.from, map[string]string{story.to: digested("2")}
		s.apply()
		s.change(paused(pool("worker")))
		s.change(node("control-plane-0", "master", story.controlPlane))
		s.change(node("worker-0", "worker", story.kubelet))
		s.explain(story.code, story.to).because(story.because).
			finds(workers, story.outcome, story.finding, story.says...).
			finds("MachineConfigPool-worker", preflight.Warn, "PoolPaused")
		if t.Failed() {
			t.Fatal(name)
		}
	}

	// Unpaused, and up to date: the update may go on.
	s.state.Version, s.state.Available = "4.20.2", map[string]string{"4.21.4": digested("2"), "4.20.3": digested("3")}
	s.apply()
	s.change(node("control-plane-0", "master", "v1.33.5"))
	s.explain(blocked, "4.21.4", "--accept", workers).because(names{blocking: []string{workers}})
	s.explain(ready, "4.20.3").because(names{})
	s.change(pool("worker"))
	s.change(node("worker-0", "worker", "v1.33.5"))
	s.explain(ready, "4.21.4").because(names{}).finds("KubeletMinorVersionUpgradeable", preflight.Pass, "KubeletMinorVersionsSynced")
}
