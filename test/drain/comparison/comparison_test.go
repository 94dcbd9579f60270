package comparison_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/drain"
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
		"Clear":     {reason: "all nodes are drained", outcome: drain.Clear},
		"Unsafe":    {reason: "a node sticks that was predicted to be clear", outcome: drain.Clear, ended: stuck("w0"), unsafe: 1, wrong: 1},
		"Unknown":   {reason: "nothing is predicted, pods without a node neither", outcome: drain.Undetermined, ended: lab.Outcome{Stuck: stuck("w0").Stuck, Absent: map[string]int{"cart": 1}}},
		"Sticks":    {reason: "at the node that is certain", outcome: drain.Sticks, ended: stuck("w0")},
		"Uncertain": {reason: "and at the other one", outcome: drain.Sticks, ended: stuck("w0", "w1")},
		"Drained":   {reason: "nothing sticks", outcome: drain.Sticks, wrong: 1},
		"Elsewhere": {reason: "a node sticks that was not predicted", outcome: drain.Sticks, ended: stuck("w0", "w2"), wrong: 1},
		"Missing":   {reason: "the node that is certain does not stick", outcome: drain.Sticks, ended: stuck("w1"), wrong: 1},
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

func TestRange(t *testing.T) {
	var foreseen comparison.Range
	foreseen.Add(lab.Outcome{Stuck: stuck("w0").Stuck, Absent: map[string]int{"cart": 2, "shop": 1}})
	foreseen.Add(lab.Outcome{Stuck: stuck("w1").Stuck, Absent: map[string]int{"shop": 3}})
	for name, tc := range map[string]struct {
		reason string
		ended  lab.Outcome
		want   string
	}{
		"Inside":  {"each number is in the range, also none where an order had none", lab.Outcome{Stuck: stuck("w0").Stuck, Absent: map[string]int{"shop": 2}}, ""},
		"Node":    {"another node", lab.Outcome{Stuck: stuck("w2").Stuck}, "sticks at map[worker:[w2]], foreseen [map[worker:[w0]] map[worker:[w1]]]"},
		"More":    {"more pods", lab.Outcome{Stuck: stuck("w0").Stuck, Absent: map[string]int{"shop": 4}}, "4 pods of shop are without a node, foreseen 1 to 3"},
		"Fewer":   {"fewer pods", lab.Outcome{Stuck: stuck("w0").Stuck}, "0 pods of shop are without a node, foreseen 1 to 3"},
		"Another": {"pods of another controller", lab.Outcome{Stuck: stuck("w0").Stuck, Absent: map[string]int{"db": 1, "shop": 1}}, "1 pods of db are without a node, foreseen none"},
	} {
		if diff := cmp.Diff(tc.want, foreseen.Excludes(tc.ended)); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
}
