package comparison_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/test/drain/comparison"
	"github.com/openshift/update-preflight/test/drain/lab"
)

func stuck(nodes ...string) lab.Outcome {
	return lab.Outcome{Stuck: map[string][]string{"worker": nodes}}
}

func TestWrong(t *testing.T) {
	sticks := []drain.Node{{Name: "w0"}, {Name: "w1", Uncertain: true}}
	for name, tc := range map[string]struct {
		reason        string
		outcome       drain.Outcome
		pending       []drain.Pending
		ended         lab.Outcome
		unsafe, wrong int
	}{
		"Clear":  {reason: "all nodes are drained", outcome: drain.Clear},
		"Unsafe": {reason: "a node sticks that was predicted to be clear", outcome: drain.Clear, ended: stuck("w0"), unsafe: 1, wrong: 1},
		"Unknown": {
			reason: "nothing is predicted, pods without a node neither", outcome: drain.Undetermined,
			ended: lab.Outcome{Stuck: stuck("w0").Stuck, Absent: map[string]int{"cart": 1}},
		},
		"Sticks":    {reason: "at the node that is certain", outcome: drain.Sticks, ended: stuck("w0")},
		"Uncertain": {reason: "and at the other one", outcome: drain.Sticks, ended: stuck("w0", "w1")},
		"Drained":   {reason: "nothing sticks", outcome: drain.Sticks, wrong: 1},
		"Elsewhere": {reason: "a node sticks that was not predicted", outcome: drain.Sticks, ended: stuck("w0", "w2"), wrong: 1},
		"Missing":   {reason: "the node that is certain does not stick", outcome: drain.Sticks, ended: stuck("w1"), wrong: 1},
		"Waits": {
			reason: "a node waits for ever that was predicted to be drained", outcome: drain.Clear,
			ended: lab.Outcome{Waiting: map[string]int{"worker": 1}}, unsafe: 1, wrong: 1,
		},
		"Blocked":   {reason: "no node is drained", outcome: drain.Blocked, ended: lab.Outcome{Waiting: map[string]int{"worker": 3}}},
		"Unblocked": {reason: "a node is drained", outcome: drain.Blocked, ended: lab.Outcome{Drained: map[string]int{"worker": 1}}, wrong: 1},
		"Pending":   {reason: "a pod is without a node", outcome: drain.Clear, ended: lab.Outcome{Absent: map[string]int{"cart": 1}}, wrong: 1},
		"Placed":    {reason: "a pod has a node that was to have none", outcome: drain.Clear, pending: []drain.Pending{{}}, wrong: 1},
		"Maybe":     {reason: "a pod has a node that may have one", outcome: drain.Clear, pending: []drain.Pending{{Uncertain: true}}},
	} {
		pool := drain.Pool{Name: "worker", Outcome: tc.outcome}
		if tc.outcome == drain.Sticks {
			pool.Stuck = sticks
		}
		predicted := comparison.Prediction{Rehearsal: drain.Rehearsal{Pools: []drain.Pool{pool}, Pending: tc.pending}}
		if tc.ended.Absent == nil {
			tc.ended.Absent = map[string]int{}
		}
		unsafe, wrong := predicted.Unsafe(tc.ended), predicted.Wrong(tc.ended)
		if len(unsafe) != tc.unsafe || len(wrong) != tc.wrong {
			t.Errorf("%s: %s: got %q, of these unsafe %q", name, tc.reason, wrong, unsafe)
		}
	}
}

// TestExtract has what the rehearsal of several clusters says of one.
func TestExtract(t *testing.T) {
	of := func(namespace, name string) drain.Reference { return drain.Reference{Namespace: namespace, Name: name} }
	rehearsal := drain.Rehearsal{
		Pools: []drain.Pool{
			{Name: "shop-worker", Outcome: drain.Clear},
			{Name: "other-worker", Outcome: drain.Undetermined, Why: `StatefulSet "db" owns it`},
		},
		Pending: []drain.Pending{
			{Pod: of("shop", "cart-1"), Uncertain: true, Why: "2 nodes unschedulable"},
			{Pod: of("shop", "cart-2")},
			{Pod: of("other", "cart-1"), Uncertain: true, Why: "it has no node now"},
		},
		Lost: []drain.Lost{{Pod: of("shop", "debug")}},
	}
	cluster := lab.Cluster{Namespace: "shop", Pools: make([]machineconfigurationv1.MachineConfigPool, 1)}
	cluster.Pools[0].Name = "shop-worker"
	for _, name := range []string{"cart-1", "cart-2", "debug"} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if name != "debug" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "cart", Controller: new(true)}}
		}
		cluster.Pods = append(cluster.Pods, pod)
	}
	predicted := comparison.Extract(rehearsal, cluster)
	if diff := cmp.Diff([]string{"pods without a node: the nodes that the scheduler chooses"}, predicted.Wide()); diff != "" {
		t.Errorf("why there are several outcomes: -want +got:\n%s", diff)
	}
	for name, tc := range map[string]struct {
		reason string
		absent map[string]int
		wrong  string
	}{
		"Least": {"the pod that is certain, and the one that nothing creates again", map[string]int{"cart": 1, "debug": 1}, ""},
		"Most":  {"also the other one", map[string]int{"cart": 2, "debug": 1}, ""},
		"None":  {"none", map[string]int{"debug": 1}, "0 pods of cart are without a node, predicted 1 to 2"},
		"More":  {"more pods", map[string]int{"cart": 3, "debug": 1}, "3 pods of cart are without a node, predicted 1 to 2"},
		"Lost": {
			"a pod that was to be lost is created again",
			map[string]int{"cart": 1},
			"0 pods of debug are without a node, predicted 1 to 1",
		},
	} {
		if diff := cmp.Diff(tc.wrong, strings.Join(predicted.Wrong(lab.Outcome{Absent: tc.absent}), "; ")); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestRare(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		sample comparison.Sample
		want   bool
	}{
		"None":   {"no order disagrees", comparison.Sample{Orders: 8}, true},
		"Half":   {"half of the orders disagree", comparison.Sample{Orders: 8, Wrong: 4}, true},
		"Most":   {"most orders disagree", comparison.Sample{Orders: 8, Wrong: 5}, false},
		"Unsafe": {"a pool sticks in more than a quarter", comparison.Sample{Orders: 8, Wrong: 3, Unsafe: 3}, false},
	} {
		if got := tc.sample.Rare(); got != tc.want {
			t.Errorf("%s: %s: got %t", name, tc.reason, got)
		}
	}
}

// A pod that is created again and is not is a contradiction, unless the one comes after the other.
func TestContradictions(t *testing.T) {
	debug := drain.Reference{Namespace: "shop", Name: "debug"}
	for name, tc := range map[string]struct {
		reason  string
		lost    drain.Lost
		pending drain.Pending
		want    int
	}{
		"Both":       {"it cannot wait for a node and be lost", drain.Lost{}, drain.Pending{}, 1},
		"BothBehind": {"nor behind an obstacle", drain.Lost{Behind: true}, drain.Pending{Behind: true}, 1},
		"LostFirst":  {"what is lost does not wait later", drain.Lost{}, drain.Pending{Behind: true}, 1},
		"LostLater": {
			"a pod of a Job waits at an obstacle, and is evicted once more behind it",
			drain.Lost{Behind: true},
			drain.Pending{},
			0,
		},
		"LostPerhaps":   {"other choices of the scheduler create it again", drain.Lost{Uncertain: true}, drain.Pending{}, 0},
		"WaitsPerhaps":  {"other choices of the scheduler have a node for it", drain.Lost{}, drain.Pending{Uncertain: true}, 0},
		"AnotherIsLost": {"two pods", drain.Lost{Pod: drain.Reference{Namespace: "shop", Name: "other"}}, drain.Pending{}, 0},
	} {
		if tc.lost.Pod == (drain.Reference{}) {
			tc.lost.Pod = debug
		}
		tc.pending.Pod = debug
		plan := draining.Plan{Rehearsal: drain.Rehearsal{Lost: []drain.Lost{tc.lost}, Pending: []drain.Pending{tc.pending}}}
		if got := comparison.Contradictions(&plan); len(got) != tc.want {
			t.Errorf("%s: %s: %q, want %d", name, tc.reason, got, tc.want)
		}
	}
}
