package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/update"
)

func versions(minors string) []semver.Version {
	var path []semver.Version
	for minor := range strings.FieldsSeq(minors) {
		path = append(path, semver.MustParse(minor+".7"))
	}
	return path
}

func TestUnpause(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// path has the minor versions, and kubelets that of the kubelets.
		path, kubelets, want string
	}{
		"between even versions":       {path: "4.16 4.17 4.18", kubelets: "4.16", want: "4.18"},
		"one update":                  {path: "4.16 4.17", kubelets: "4.16", want: "4.17"},
		"patch updates need none":     {path: "4.16 4.16 4.16", kubelets: "4.16", want: "4.16"},
		"from an odd version":         {path: "4.15 4.16 4.17 4.18", kubelets: "4.15", want: "4.16 4.18"},
		"two windows":                 {path: "4.14 4.15 4.16 4.17 4.18", kubelets: "4.14", want: "4.16 4.18"},
		"three windows":               {path: "4.12 4.13 4.14 4.15 4.16 4.17 4.18", kubelets: "4.12", want: "4.14 4.16 4.18"},
		"5.2 supports three versions": {path: "4.22 5.0 5.1 5.2", kubelets: "4.22", want: "5.2"},
		"5.0 supports one":            {path: "4.20 4.21 4.22 5.0", kubelets: "4.20", want: "4.22 5.0"},
		"the pool is behind":          {path: "4.16 4.17", kubelets: "4.15", want: "4.16 4.17"},
		"the kubelets are newer":      {path: "4.16 4.17", kubelets: "4.17", want: "4.17"},
		"the target is unknown":       {path: "5.2 5.3", kubelets: "5.2", want: "unknown"},
		"the source is unknown":       {path: "3.11 4.1", kubelets: "4.16", want: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := versions(tc.path)
			kubelet, _ := update.Kubernetes(versions(tc.kubelets)[0])
			at, err := rollout.Unpause(path, kubelet)
			var got []string
			for _, i := range at {
				got = append(got, update.Line(path[i]))
			}
			if errors.As(err, new(*rollout.UnknownError)) {
				got = []string{"unknown"}
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("the pool is unpaused at %q (%v), want %q", text, err, tc.want)
			}
		})
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		value  *intstr.IntOrString
		want   int
	}{
		"Unset":      {reason: "the default", want: 1},
		"Two":        {reason: "a number", value: new(intstr.FromInt32(2)), want: 2},
		"Zero":       {reason: "at least one node is updated", value: new(intstr.FromInt32(0)), want: 1},
		"Half":       {reason: "a percentage", value: new(intstr.FromString("50%")), want: 2},
		"Down":       {reason: "percentages are rounded down", value: new(intstr.FromString("60%")), want: 2},
		"Few":        {reason: "at least one node is updated", value: new(intstr.FromString("10%")), want: 1},
		"Text":       {reason: "a number as a string is invalid", value: new(intstr.FromString("60"))},
		"Space":      {reason: "a percentage has no space", value: new(intstr.FromString("40 %"))},
		"Words":      {reason: "a percentage has no words", value: new(intstr.FromString("50 percent"))},
		"LongString": {reason: "the message is bounded", value: new(intstr.FromString(strings.Repeat("x", 9999)))},
	} {
		got, err := rollout.Parallel(tc.value, 4)
		if got != tc.want || err == nil != (tc.want > 0) || err != nil && len(err.Error()) > 200 {
			t.Errorf("%s: %s: got %d (%v), want %d", name, tc.reason, got, err, tc.want)
		}
	}
}

func same(duration int) rollout.Range {
	expected := time.Duration(duration) * time.Minute
	return rollout.Range{Low: expected, Expected: expected, High: expected}
}

// The rows are those of the documentation and its rules.
func TestEstimate(t *testing.T) {
	t.Parallel()
	worker := func(nodes, parallel int, unpause ...int) rollout.Pool {
		return rollout.Pool{Name: "worker", Nodes: nodes, Parallel: parallel, Unpause: unpause}
	}
	for name, tc := range map[string]struct {
		masters, node, updates int
		pools                  []rollout.Pool
		history                []time.Duration
		drains                 map[string]rollout.Range
		measured               bool
		control, total         int
	}{
		"one node at a time":  {masters: 3, node: 5, updates: 1, pools: []rollout.Pool{worker(6, 1)}, control: 75, total: 90},
		"two nodes at a time": {masters: 3, node: 5, updates: 1, pools: []rollout.Pool{worker(6, 2)}, control: 75, total: 75},
		"two pools": {
			masters: 3, node: 5, updates: 1,
			pools: []rollout.Pool{worker(12, 3), {Name: "infra", Nodes: 3, Parallel: 1}}, control: 75, total: 80,
		},
		"slow nodes":              {masters: 3, node: 20, updates: 1, pools: []rollout.Pool{worker(4, 2)}, control: 120, total: 120},
		"few nodes":               {masters: 3, node: 5, updates: 1, pools: []rollout.Pool{worker(5, 1)}, control: 75, total: 85},
		"a single node":           {masters: 1, node: 5, updates: 1, control: 65, total: 65},
		"two updates":             {masters: 3, node: 5, updates: 2, pools: []rollout.Pool{worker(50, 1)}, control: 75, total: 620},
		"two updates, paused":     {masters: 3, node: 5, updates: 2, pools: []rollout.Pool{worker(50, 1, 2)}, control: 75, total: 400},
		"unpaused before as well": {masters: 3, node: 5, updates: 2, pools: []rollout.Pool{worker(10, 1, 0, 2)}, control: 75, total: 250},
		"history includes masters": {
			masters: 3, node: 5, updates: 1, pools: []rollout.Pool{worker(6, 1)},
			history: []time.Duration{80 * time.Minute}, control: 80, total: 95,
		},
		"waiting drains": {
			masters: 3, node: 5, updates: 1, pools: []rollout.Pool{worker(6, 1)},
			drains: map[string]rollout.Range{"worker": same(20)}, control: 75, total: 110,
		},
		"drains of masters": {
			masters: 3, node: 5, updates: 1, pools: []rollout.Pool{worker(6, 1)},
			drains: map[string]rollout.Range{"master": same(10)}, control: 85, total: 90,
		},
		"measured with drains": {
			masters: 3, node: 5, updates: 1, pools: []rollout.Pool{worker(6, 1)},
			drains: map[string]rollout.Range{"worker": {Low: time.Minute, Expected: time.Minute}}, measured: true, control: 75, total: 90,
		},
		"an interrupted update": {
			masters: 3, node: 5, updates: 1,
			history: []time.Duration{50 * time.Minute, 50 * time.Minute, 999 * time.Minute}, control: 50, total: 50,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := rollout.Model{
				Operators: map[update.Kind]rollout.Range{update.Minor: same(60)}, Node: same(tc.node), Masters: tc.masters,
				Drains: tc.drains, Measured: tc.measured, History: map[update.Kind][]time.Duration{update.Minor: tc.history},
			}
			var kinds []update.Kind
			var control []rollout.Range
			for range tc.updates {
				kinds, control = append(kinds, update.Minor), append(control, same(tc.control))
			}
			want := rollout.Estimate{ControlPlane: control, Total: same(tc.total)}
			if diff := cmp.Diff(want, model.Estimate(kinds, tc.pools)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestDocumented(t *testing.T) {
	t.Parallel()
	got := rollout.Documented(3, configv1.BareMetalPlatformType).Estimate([]update.Kind{update.Minor}, nil).Total
	if want := (rollout.Range{Low: 105 * time.Minute, Expected: 135 * time.Minute, High: 240 * time.Minute}); got != want {
		t.Errorf("an update on bare metal takes %v, want %v", got, want)
	}
}

func TestRounded(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[int]int{0: 0, 62: 60, 63: 65, 119: 120, 121: 120, 128: 135} {
		if got := same(minutes).Rounded(); got != same(want) {
			t.Errorf("%d minutes are rounded to %v, want %d", minutes, got, want)
		}
	}
}

func TestDrains(t *testing.T) {
	t.Parallel()
	type nodes = []drain.Node
	for name, tc := range map[string]struct {
		reason string
		nodes  nodes
		want   rollout.Range
	}{
		"Quick": {reason: "nothing waits, and pods have the default grace period", nodes: nodes{{Step: 0, GraceSeconds: 30}, {Step: 1}}},
		"Waits": {
			reason: "budgets let one pod go after the other", nodes: nodes{{Step: 0, Waits: 2}},
			want: rollout.Range{Low: 20 * time.Second, Expected: 4 * time.Minute, High: 12 * time.Minute},
		},
		"Grace": {
			reason: "a pod may take a day to end, or end at once", nodes: nodes{{Step: 0, GraceSeconds: 86400}},
			want: rollout.Range{High: 24*time.Hour - 30*time.Second},
		},
		"Endless": {
			reason: "a grace period of a thousand years is one of a year", nodes: nodes{{GraceSeconds: 1 << 62}},
			want: rollout.Range{High: 365*24*time.Hour - 30*time.Second},
		},
		"OneByOne": {
			reason: "nodes one after the other", nodes: nodes{{Step: 0, Waits: 1}, {Step: 1, Waits: 1}},
			want: rollout.Range{Low: 20 * time.Second, Expected: 4 * time.Minute, High: 12 * time.Minute},
		},
		"Together": {
			reason: "nodes at the same time", nodes: nodes{{Step: 0, Waits: 1}, {Step: 0, Waits: 1}},
			want: rollout.Range{Low: 10 * time.Second, Expected: 2 * time.Minute, High: 6 * time.Minute},
		},
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

func TestSlowDaemonSets(t *testing.T) {
	t.Parallel()
	rolling := func(unavailable, surge string) appsv1.DaemonSetUpdateStrategy {
		strategy := appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{}}
		if unavailable != "" {
			strategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(unavailable))
		}
		if surge != "" {
			strategy.RollingUpdate.MaxSurge = new(intstr.Parse(surge))
		}
		return strategy
	}
	for name, tc := range map[string]struct {
		reason, namespace string
		strategy          appsv1.DaemonSetUpdateStrategy
		nodes             int32
		want              time.Duration
	}{
		"Default":    {reason: "one pod at a time is the default", nodes: 250, want: 250 * 19 * time.Second},
		"One":        {reason: "one pod at a time", strategy: rolling("1", "0"), nodes: 32, want: 32 * 19 * time.Second},
		"Surge":      {reason: "one additional pod at a time", strategy: rolling("0", "1"), nodes: 250, want: 250 * 19 * time.Second},
		"Few":        {reason: "few nodes take less than ten minutes", nodes: 31},
		"Percentage": {reason: "ten percent at a time", strategy: rolling("10%", ""), nodes: 250},
		"OnePercent": {
			reason: "one percent of 60 nodes is rounded up to one", strategy: rolling("1%", ""), nodes: 60,
			want: 60 * 19 * time.Second,
		},
		"Invalid": {reason: "a value that is neither a number nor a percentage", strategy: rolling("many", ""), nodes: 250},
		"OnDelete": {
			reason:   "an update does not replace the pods",
			strategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}, nodes: 250,
		},
		"Users": {reason: "DaemonSets of users are not updated", namespace: "shop", nodes: 250},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := tc.namespace
			if namespace == "" {
				namespace = "openshift-multus"
			}
			set := appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"}, Spec: appsv1.DaemonSetSpec{UpdateStrategy: tc.strategy},
				Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: tc.nodes},
			}
			var want []rollout.Sequential
			if tc.want != 0 {
				want = []rollout.Sequential{{Namespace: namespace, Name: "set", Nodes: int(tc.nodes), Takes: tc.want}}
			}
			found := rollout.SlowDaemonSets([]appsv1.DaemonSet{set})
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, each := range found {
				if text := each.String(); !strings.HasPrefix(text, "DaemonSet openshift-multus/set replaces one pod at a time") {
					t.Errorf("%s: the text is %q", tc.reason, text)
				}
			}
		})
	}
}

// completed returns a node whose last update with a reboot was completed at that minute.
func completed(pool, config string, minute int) machineconfigurationv1.MachineConfigNode {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
	condition := func(kind machineconfigurationv1.StateProgress, status metav1.ConditionStatus, at time.Time) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: status, Reason: string(kind), LastTransitionTime: metav1.NewTime(at)}
	}
	return machineconfigurationv1.MachineConfigNode{
		Spec: machineconfigurationv1.MachineConfigNodeSpec{Pool: machineconfigurationv1.MCOObjectReference{Name: pool}},
		Status: machineconfigurationv1.MachineConfigNodeStatus{
			ConfigVersion: &machineconfigurationv1.MachineConfigNodeStatusMachineConfigVersion{Current: config},
			Conditions: []metav1.Condition{
				condition(machineconfigurationv1.MachineConfigNodeUpdated, metav1.ConditionTrue, at),
				condition(machineconfigurationv1.MachineConfigNodeUpdateRebooted, metav1.ConditionFalse, at.Add(-2*time.Second)),
			},
		},
	}
}

// changed returns the node with changed conditions Updated and RebootedNode.
func changed(node machineconfigurationv1.MachineConfigNode,
	change func(updated, rebooted *metav1.Condition),
) machineconfigurationv1.MachineConfigNode {
	change(&node.Status.Conditions[0], &node.Status.Conditions[1])
	return node
}

func TestNodeTimes(t *testing.T) {
	t.Parallel()
	type nodes = []machineconfigurationv1.MachineConfigNode
	for name, tc := range map[string]struct {
		reason   string
		nodes    nodes
		parallel int
		// want are minutes.
		want []int
	}{
		"None": {reason: "a cluster without MachineConfigNodes"},
		"OneByOne": {
			reason: "a node starts when the one before is completed",
			nodes:  nodes{completed("worker", "b", 22), completed("worker", "b", 0), completed("worker", "b", 10)}, want: []int{10, 12},
		},
		"TwoByTwo": {reason: "two nodes are updated at a time", parallel: 2, nodes: nodes{
			completed("worker", "b", 0),
			completed("worker", "b", 1), completed("worker", "b", 10), completed("worker", "b", 12),
		}, want: []int{10, 11}},
		"Pools": {reason: "each pool has its own roll-out", nodes: nodes{
			completed("worker", "b", 0), completed("worker", "b", 9),
			completed("master", "m", 3), completed("master", "m", 10),
		}, want: []int{7, 9}},
		"LastOnly": {reason: "only the last roll-out counts", nodes: nodes{
			completed("worker", "a", 0), completed("worker", "a", 5),
			completed("worker", "b", 100), completed("worker", "b", 108),
		}, want: []int{8}},
		"Implausible": {
			reason: "a difference of a minute or of days is not the time of one node",
			nodes:  nodes{completed("worker", "b", 0), completed("worker", "b", 1), completed("worker", "b", 3000)},
		},
		"New": {
			reason: "a new node was not updated",
			nodes: nodes{
				completed("worker", "b", 0),
				changed(completed("worker", "b", 10), func(_, rebooted *metav1.Condition) { rebooted.Reason = "NotYetOccurred" }),
			},
		},
		"NoReboot": {
			reason: "the last update of the node needed no reboot",
			nodes: nodes{completed("worker", "b", 0), changed(completed("worker", "b", 10), func(_, rebooted *metav1.Condition) {
				rebooted.LastTransitionTime = metav1.NewTime(rebooted.LastTransitionTime.Add(-time.Hour))
			})},
		},
		"Updating": {
			reason: "the node is being updated",
			nodes: nodes{
				completed("worker", "b", 0),
				changed(completed("worker", "b", 10), func(updated, _ *metav1.Condition) { updated.Status = metav1.ConditionFalse }),
			},
		},
		"NoConditions": {
			reason: "MCO has not written the status yet",
			nodes:  nodes{completed("worker", "b", 0), {}, {Status: machineconfigurationv1.MachineConfigNodeStatus{}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []time.Duration
			for _, minutes := range tc.want {
				want = append(want, time.Duration(minutes)*time.Minute)
			}
			if diff := cmp.Diff(want, rollout.NodeTimes(tc.nodes, func(string) int { return tc.parallel })); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCalibrated(t *testing.T) {
	t.Parallel()
	documented := rollout.Documented(3, "")
	if model, ok := documented.Calibrated([]time.Duration{time.Minute}); ok || !cmp.Equal(documented, model) {
		t.Errorf("one node is not sufficient, got %v", model.Node)
	}
	model, ok := documented.Calibrated([]time.Duration{8 * time.Minute, 9 * time.Minute, 12 * time.Minute, 99 * time.Minute})
	want := rollout.Range{Low: 8 * time.Minute, Expected: 9 * time.Minute, High: 12 * time.Minute}
	if !ok || model.Node != want {
		t.Errorf("a node takes %v, want the median of those that were not interrupted: %v", model.Node, want)
	}
}

// entry returns an entry of a history; without minutes it has no completion time.
func entry(version string, state configv1.UpdateState, minutes int) configv1.UpdateHistory {
	start := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	made := configv1.UpdateHistory{Version: version, State: state, StartedTime: start}
	if minutes != 0 {
		end := metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute))
		made.CompletionTime = &end
	}
	return made
}

func TestHistory(t *testing.T) {
	t.Parallel()
	const completed, partial = configv1.CompletedUpdate, configv1.PartialUpdate
	type past = map[update.Kind][]time.Duration
	for name, tc := range map[string]struct {
		reason  string
		entries []configv1.UpdateHistory
		want    past
	}{
		"Installed": {reason: "the installation is no update", entries: []configv1.UpdateHistory{entry("4.16.1", completed, 40)}, want: past{}},
		"Kinds": {
			reason: "an update starts from the last release that was completed",
			entries: []configv1.UpdateHistory{
				entry("4.17.3", completed, 90), entry("4.17.1", partial, 10), entry("4.16.9", completed, 50),
				entry("4.16.1", completed, 40),
			},
			want: past{update.Minor: {90 * time.Minute}, update.Patch: {50 * time.Minute}},
		},
		"Unusable": {
			reason: "times that are missing or contradictory, the same version and a rollback are ignored",
			entries: []configv1.UpdateHistory{
				entry("4.16.1", completed, 30), entry("4.16.9", completed, 20), entry("4.16.9", completed, -5), entry("4.16.9", completed, 0),
				entry("no version", completed, 5), entry("4.16.1", completed, 40),
			},
			want: past{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, rollout.History(tc.entries)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
