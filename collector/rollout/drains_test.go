package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/rollout"
)

func TestDrains(t *testing.T) {
	t.Parallel()
	type nodes = []drain.Node
	for name, tc := range map[string]struct {
		reason string
		nodes  nodes
		want   rollout.Range
	}{
		"Quick":    {reason: "nothing waits, and pods have the default grace period", nodes: nodes{{Step: 0, GraceSeconds: 30}, {Step: 1}}},
		"Waits":    {reason: "budgets let one pod go after the other", nodes: nodes{{Step: 0, Waits: 2}}, want: rollout.Range{Low: 20 * time.Second, Expected: 4 * time.Minute, High: 12 * time.Minute}},
		"Grace":    {reason: "a pod may take a day to end, or end at once", nodes: nodes{{Step: 0, GraceSeconds: 86400}}, want: rollout.Range{High: 24*time.Hour - 30*time.Second}},
		"Endless":  {reason: "a grace period of a thousand years is one of a year", nodes: nodes{{GraceSeconds: 1 << 62}}, want: rollout.Range{High: 365*24*time.Hour - 30*time.Second}},
		"OneByOne": {reason: "nodes one after the other", nodes: nodes{{Step: 0, Waits: 1}, {Step: 1, Waits: 1}}, want: rollout.Range{Low: 20 * time.Second, Expected: 4 * time.Minute, High: 12 * time.Minute}},
		"Together": {reason: "nodes at the same time", nodes: nodes{{Step: 0, Waits: 1}, {Step: 0, Waits: 1}}, want: rollout.Range{Low: 10 * time.Second, Expected: 2 * time.Minute, High: 6 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := map[string]rollout.Range{}
			if tc.want != (rollout.Range{}) {
				want["worker"] = tc.want
			}
			got := rollout.Drains(&drain.Rehearsal{Pools: []drain.Pool{{Name: "infra"}, {Name: "worker", Nodes: tc.nodes}}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
