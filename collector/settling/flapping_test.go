package settling_test

import (
	"testing"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/settling"
)

// A node that is not ready again and again, long after its pool was updated, does not keep the rollout from its end.
func TestFlappingNode(t *testing.T) {
	updated := noon().Add(-3 * time.Hour)
	for name, tc := range map[string]struct {
		reason  string
		ready   time.Time
		settled time.Time
	}{
		"Rebooted": {reason: "the last node of the pool rests", ready: updated.Add(-time.Minute), settled: updated.Add(19 * time.Minute)},
		"Flapping": {reason: "it was ready for hours, and is again", ready: noon().Add(-time.Minute), settled: updated.Add(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			var pool machineconfigurationv1.MachineConfigPool
			pool.Status.Conditions = []machineconfigurationv1.MachineConfigPoolCondition{{
				Type:   machineconfigurationv1.MachineConfigPoolUpdated,
				Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(updated),
			}}
			node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
			node.Status.NodeInfo.BootID = "2"
			node.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(tc.ready),
			}}
			before := baseline.State{Objects: map[baseline.Key]baseline.Object{{Kind: baseline.Node, Name: "worker-1"}: {Detail: "1"}}}
			made := settling.Of(settling.Cluster{
				Change: settling.Change{Started: noon().Add(-5 * time.Hour), Completed: noon().Add(-4 * time.Hour)},
				Pools:  []machineconfigurationv1.MachineConfigPool{pool}, Nodes: []corev1.Node{node},
			}, before)
			if !made.Settled.Equal(tc.settled) {
				t.Errorf("%s: settled %s, want %s, waiting %q", tc.reason, made.Settled, tc.settled, made.Waiting)
			}
		})
	}
}
