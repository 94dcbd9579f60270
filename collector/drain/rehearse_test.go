package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
)

// apart keeps the pods of an app on different nodes.
func apart(app string) corev1.PodSpec {
	return corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: corev1.LabelHostname,
	}}}}}
}

func requesting(cpu string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}}
}

// summary is a rehearsal in lines.
func summary(r drain.Rehearsal) string {
	var lines []string
	add := func(format string, arguments ...any) { lines = append(lines, fmt.Sprintf(format, arguments...)) }
	for _, pool := range r.Pools {
		var done []string
		for _, node := range pool.Nodes {
			done = append(done, node.Name)
		}
		add("%s %s %s", pool.Name, pool.Outcome, strings.Join(done, " "))
		for _, node := range pool.Stuck {
			for _, obstacle := range node.Obstacles {
				add("%s: %s %s %v behind %d", node.Name, obstacle.Pod, obstacle.Cause, obstacle.Budgets, len(obstacle.Behind))
			}
		}
	}
	for _, pending := range r.Pending {
		add("pending %s: %s", pending.Pod, pending.Why)
		if pending.Uncertain {
			add("uncertain %s", pending.Pod)
		}
	}
	for _, lost := range r.Lost {
		add("lost %s", lost.Pod)
	}
	for _, delayed := range r.Delayed {
		add("delayed %s on %s: %s", delayed.Pod, delayed.Node, delayed.Why)
	}
	for _, interrupted := range r.Interrupted {
		add("interrupted %s %v", interrupted.Service, interrupted.Nodes)
	}
	return strings.Join(lines, "\n")
}

// TestNodesThatReturnTogether lets the next two be drained together: of the pods on both, which a budget
// evicts one after the other, either may be the first.
func TestNodesThatReturnTogether(t *testing.T) {
	t.Parallel()
	w := small()
	w.node("w3", "worker")
	w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
				Values: []string{"w2", "w3"},
			}},
		}}},
	}}}
	w.deploy("cart", spec, "w2", "w3")
	w.budget("cart", 1, 2, 1, 2)
	w.pod("alone", "alone", "w2", "", corev1.PodSpec{})
	w.budget("alone", 0, 1, 0, 0)
	var stuck []string
	for _, node := range w.rehearse(t).Pools[0].Stuck {
		stuck = append(stuck, fmt.Sprintf("%s uncertain %t", node.Name, node.Uncertain))
	}
	if diff := cmp.Diff([]string{"w2 uncertain false", "w3 uncertain true"}, stuck); diff != "" {
		t.Errorf("nodes that stick: -want +got:\n%s", diff)
	}
}

func TestRehearse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		build  func(*world)
		want   []string
		// without is what the rehearsal does not have.
		without string
	}{
		"Empty": {reason: "nodes without pods", build: func(*world) {}, want: []string{"worker Clear w0 w1 w2"}},
		"OnePerNode": {
			reason: "as many replicas as nodes, on different ones: each waits for its node to return", want: []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.nodes, w.pools = w.nodes[:3], w.pools[:1]
				w.deploy("cart", apart("cart"), "w0", "w1", "w2")
				w.budget("cart", 1, 3, 2, 3)
			},
		},
		"TwoOnANode": {
			reason: "the first of two pods finds no room, and the second waits for it, on the same node",
			build: func(w *world) {
				w.nodes, w.pools = w.nodes[:3], w.pools[:1]
				w.deploy("cart", requesting("1500m"), "w0", "w0")
				w.budget("cart", 1, 2, 1, 2)
				w.deploy("other", requesting("3"), "w1", "w2")
			},
			want: []string{
				"worker Sticks ", "w0: shop/cart-1 TooFewHealthy [shop/cart] behind 1",
				"pending shop/cart-0: 1 node unschedulable, 2 nodes without the requested resources",
			},
		},
		"TwoPools": {
			reason: "a node of another pool is drained at the same time, and waits until the first returns",
			want:   []string{"infra Clear i0", "worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.pools[1].Spec.Paused = false
				w.deploy("cart", apart("cart"), "w0", "w1", "w2", "i0")
				w.budget("cart", 1, 4, 3, 4)
			},
		},
		"Unready": {
			reason: "a pod is not ready, and nothing in the rehearsal makes it so",
			want:   []string{"worker Sticks ", "w0: shop/cart-0 TooFewHealthy [shop/cart] behind 0"},
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0", "w1", "w2")
				w.pods[2].Status.Conditions[0].Status = corev1.ConditionFalse
				w.budget("cart", 0, 2, 2, 3)
			},
		},
		"Cordoned": {
			reason: "a node that an administrator cordoned stops the pool", want: []string{"worker Blocked "},
			build: func(w *world) { w.nodes[1].Spec.Unschedulable = true },
		},
		"BeingUpdated": {
			reason: "a node that is being updated stops the pool until it returns: run it again", want: []string{"worker Unknown "},
			without: "Blocked",
			build: func(w *world) {
				w.nodes[1].Annotations["machineconfiguration.openshift.io/state"],
					w.nodes[1].Annotations["machineconfiguration.openshift.io/desiredConfig"] = "Working", "b"
			},
		},
		"Parallel": {
			reason: "two nodes at a time leave one node for pods that must be apart: the second pod waits for a node",
			want:   []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2))
				w.deploy("cart", apart("cart"), "w0", "w1")
			},
		},
		"VolumeOfAZone": {
			reason: "no other node is in the zone of the volume: the pod waits until its own is back",
			want:   []string{"worker Clear w0 w2 w1", "delayed shop/db-0 on w1: 1 node unschedulable, 3 nodes out of reach of a volume"},
			build: func(w *world) {
				w.inZones("a", "b", "a")
				w.deploy("db", w.zonal("data", "b"), "w1")
			},
		},
		"VolumeOfTwoNodes": {
			reason: "another node of the zone takes the pod at once", want: []string{"worker Clear w0 w2 w1"}, without: "delayed",
			build: func(w *world) {
				w.inZones("a", "b", "a")
				w.deploy("db", w.zonal("data", "a"), "w0")
			},
		},
		"ApartOnAllNodes": {
			reason: "pods that must be apart wait for a node as well, but not because of volumes", want: []string{"worker Clear w0 w1 w2"},
			without: "delayed",
			build: func(w *world) {
				w.nodes, w.pools = w.nodes[:3], w.pools[:1]
				w.deploy("cart", apart("cart"), "w0", "w1", "w2")
			},
		},
		"Service": {
			reason: "the only pod of a Service is interrupted where it is at first, and where it comes to",
			want:   []string{"worker Clear w0 w1 w2", "interrupted shop/cart"},
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "w0")
				w.services = []corev1.Service{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
					Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "cart"}},
				}}
			},
		},
		"Preempts": {
			reason: "a pod may take the place of one with a lower priority, which then waits for a node", want: []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.nodes, w.pools = w.nodes[:3], w.pools[:1]
				important := requesting("3")
				important.Priority = new(int32(1000))
				w.deploy("db", important, "w0")
				w.deploy("cart", requesting("3"), "w1", "w2")
			},
		},
		"PreemptsTheNewest": {
			reason: "of pods with the same priority, the one that started last goes", want: []string{"worker Clear w0\n", "pending shop/a-0"},
			build: func(w *world) {
				w.nodes = []corev1.Node{w.nodes[0], w.nodes[3]}
				important := requesting("2")
				important.Priority = new(int32(1000))
				w.deploy("db", important, "w0")
				for i, cpu := range []string{"2", "1500m"} {
					fixed := requesting(cpu)
					fixed.NodeSelector = map[string]string{corev1.LabelHostname: "i0"}
					w.deploy(string("ab"[i]), fixed, "i0")
					w.pods[i+1].Status.StartTime = new(metav1.NewTime(now.Add(-time.Duration(i) * time.Hour)))
				}
			},
		},
		"PreemptsWithinTheBudget": {
			reason: "the second pod of a budget that allows one stays, although it started last",
			want:   []string{"worker Clear w0\n", "pending shop/other-0"}, without: "pending shop/cart",
			build: func(w *world) {
				w.nodes = []corev1.Node{w.nodes[0], w.nodes[3]}
				important := requesting("2")
				important.Priority = new(int32(1000))
				w.deploy("db", important, "w0")
				fixed := func(cpu string) corev1.PodSpec {
					spec := requesting(cpu)
					spec.NodeSelector = map[string]string{corev1.LabelHostname: "i0"}
					return spec
				}
				w.deploy("other", fixed("2"), "i0")
				w.deploy("cart", fixed("1"), "i0", "i0")
				for i := range w.pods {
					w.pods[i].Status.StartTime = new(metav1.NewTime(now.Add(time.Duration(i-len(w.pods)) * time.Hour)))
				}
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"Daemons": {
			reason: "a pod of a DaemonSet has no room on its node, and another one may get some on its own before the pods of the next node",
			want:   []string{"worker Clear w0 w1", "pending shop/agent-0", "uncertain shop/agent-1"},
			build: func(w *world) {
				w.nodes = []corev1.Node{w.nodes[0], w.nodes[1], w.nodes[3]}
				for i, node := range []string{"i0", "w0"} {
					spec := requesting("2")
					spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
					w.pod(fmt.Sprintf("agent-%d", i), "agent", "", "DaemonSet", spec)
				}
				w.deploy("cart", requesting("3"), "i0")
				w.deploy("db", requesting("3"), "w0")
			},
		},
		"Queue": {
			reason: "many pods wait for room, and which of them gets that of a node that returns is not known: it may be the one that was evicted",
			want:   []string{"worker Unknown "},
			build: func(w *world) {
				w.nodes, w.pools = w.nodes[:2], w.pools[:1]
				for i := range 100 {
					w.deploy(fmt.Sprintf("waiting%d", i), requesting("3"), "")
				}
				w.deploy("cart", requesting("3"), "w0", "w1")
				w.budget("cart", 1, 2, 1, 2)
			},
		},
		"Vanished": {
			reason: "a pod of a node that is gone, and one whose owners own each other", want: []string{"worker Clear w0 w1 w2"},
			build: func(w *world) {
				w.deploy("cart", corev1.PodSpec{}, "gone")
				w.budget("cart", 0, 1, 1, 1)
				w.pod("a", "b", "i0", "Pod", corev1.PodSpec{})
				w.pod("b", "a", "i0", "Pod", corev1.PodSpec{})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := small()
			tc.build(w)
			got := summary(w.rehearse(t))
			for _, line := range tc.want {
				if !strings.Contains(got+"\n", line) {
					t.Errorf("%s: %q is not in\n%s", tc.reason, line, got)
				}
			}
			if tc.without != "" && strings.Contains(got, tc.without) {
				t.Errorf("%s: %q is in\n%s", tc.reason, tc.without, got)
			}
			if again := summary(w.rehearse(t)); again != got {
				t.Errorf("another rehearsal of the same cluster differs: %s", cmp.Diff(got, again))
			}
		})
	}
}

// TestBehind holds that a rehearsal continues behind what keeps a node, as where that is accepted, and blames nothing that only
// the first obstacle causes.
func TestBehind(t *testing.T) {
	t.Parallel()
	guarded := func(w *world, app string, unready int, nodes ...string) {
		w.deploy(app, corev1.PodSpec{}, nodes...)
		for i := range unready {
			w.pods[len(w.pods)-1-i].Status.Conditions[0].Status = corev1.ConditionFalse
		}
		all := int32(len(nodes))
		w.budget(app, 0, all-int32(unready), all, all)
	}
	for name, tc := range map[string]struct {
		reason string
		build  func(*world)
		want   []string
	}{
		"Nothing": {reason: "nothing else keeps a node", build: func(w *world) { guarded(w, "a", 0, "w0", "w1") }},
		"Another": {reason: "another budget keeps the next node", want: []string{"shop/b-1 TooFewHealthy WaitsFor on w1"}, build: func(w *world) {
			guarded(w, "a", 0, "w0")
			w.deploy("b", corev1.PodSpec{}, "w2", "w1")
			w.pods[len(w.pods)-2].Status.Conditions[0].Status = corev1.ConditionFalse
			w.budget("b", 0, 1, 1, 2)
		}},
		"Same": {
			reason: "the same budget keeps the next node as well: one cause is one obstacle",
			build:  func(w *world) { guarded(w, "a", 1, "w0", "w1", "w2") },
		},
		"Blocked": {
			reason: "a node that is cordoned stops the pool, and may be accepted",
			want:   []string{"shop/b-1 TooFewHealthy WaitsFor on w1"}, build: func(w *world) {
				w.nodes[2].Spec.Unschedulable = true
				w.deploy("b", corev1.PodSpec{}, "w2", "w1")
				w.pods[len(w.pods)-2].Status.Conditions[0].Status = corev1.ConditionFalse
				w.budget("b", 0, 1, 1, 2)
			},
		},
		"Room": {reason: "a pod that waits for the room of the first node is no obstacle behind it", build: func(w *world) {
			w.nodes, w.pools = w.nodes[:3], w.pools[:1]
			w.deploy("cart", requesting("1500m"), "w0", "w0")
			w.budget("cart", 1, 2, 1, 2)
			w.deploy("other", requesting("3"), "w1", "w2")
			w.budget("other", 1, 2, 1, 2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := small()
			tc.build(w)
			rehearsed := w.rehearse(t)
			var got []string
			for _, each := range rehearsed.Behind {
				got = append(got, fmt.Sprintf("%s %s %s on %s", each.Pod, each.Cause, each.Outcome, each.Node))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || rehearsed.Pools[0].Outcome == drain.Clear && name != "Nothing" ||
				rehearsed.Pools[0].Unreached > 0 {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, summary(rehearsed))
			}
		})
	}
}

// TestGraceBehind holds that a long grace period is reported of a pod behind an obstacle.
func TestGraceBehind(t *testing.T) {
	t.Parallel()
	w := small()
	w.deploy("a", corev1.PodSpec{}, "w0")
	w.budget("a", 0, 1, 1, 1)
	w.deploy("slow", corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(86400))}, "w2")
	if graces := w.rehearse(t).Graces; len(graces) != 1 || graces[0].Pod.Name != "slow-0" {
		t.Errorf("got %+v", graces)
	}
}
