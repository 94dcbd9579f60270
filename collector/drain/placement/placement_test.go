package placement_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/placement"
)

// nodes are a and b in zone x, c in zone y, and d, which has no zone.
func nodes() []corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("10"),
	}
	var found []corev1.Node
	for name, zone := range map[string]string{"a": "x", "b": "x", "c": "y", "d": ""} {
		node := corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status:     corev1.NodeStatus{Allocatable: room},
		}
		if zone != "" {
			node.Labels[corev1.LabelTopologyZone] = zone
		}
		found = append(found, node)
	}
	return found
}

type change func(*corev1.Pod)

func pod(changes ...change) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{"app": "cart"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func on(node string) change { return func(pod *corev1.Pod) { pod.Spec.NodeName = node } }

func requesting(name corev1.ResourceName, quantity string) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
	}
}

func labeled(app string) change {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": app} }
}

func hostPort(number int32, address string) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: number, HostIP: address}}
	}
}

func term(app, key string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key}}
}

func apart(app, key string) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(app,
			key)}}
	}
}

func together(app, key string) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(app, key)}}
	}
}

func spread(key string, changes ...func(*corev1.TopologySpreadConstraint)) change {
	constraint := corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}},
	}
	for _, change := range changes {
		change(&constraint)
	}
	return func(pod *corev1.Pod) {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
	}
}

func claiming(name string) change {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{
			Name:         "v",
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}},
		}}
	}
}

// storage has a claim bound to a volume of node a, one to a volume of zone y, one that is bound
// when its pod is placed, and one that is not bound.
func storage(input *placement.Input) {
	claim := func(name, volume, class string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume, StorageClassName: &class},
		}
	}
	local := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	local.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}}}}
	zonal := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "zonal", Labels: map[string]string{corev1.LabelTopologyZone: "y"}}}
	zonal.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk"}
	alone := claim("alone", "zonal", "now")
	alone.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	input.Claims = []corev1.PersistentVolumeClaim{
		alone, claim("local", "local", "now"), claim("zonal", "zonal", "now"),
		claim("late", "", "late"), claim("unbound", "", "now"),
	}
	input.Volumes = []corev1.PersistentVolume{local, zonal}
	input.Classes = []storagev1.StorageClass{{
		ObjectMeta:        metav1.ObjectMeta{Name: "late"},
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}}
	input.Attachments = []storagev1.CSINode{{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name:        "disk",
			Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(0))},
		}}},
	}}
}

func TestNodesOfAPod(t *testing.T) {
	t.Parallel()
	type pods = []corev1.Pod
	tainted := func(input *placement.Input) {
		for i := range input.Nodes {
			if input.Nodes[i].Name == "a" {
				input.Nodes[i].Spec.Taints = []corev1.Taint{{Key: "infra", Effect: corev1.TaintEffectNoSchedule}}
			}
		}
	}
	cordoned := func(input *placement.Input) {
		for i := range input.Nodes {
			if input.Nodes[i].Name == "a" {
				input.Nodes[i].Spec.Unschedulable = true
				input.Nodes[i].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
			}
		}
	}
	tolerating := func(key string) change {
		return func(pod *corev1.Pod) {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
		}
	}
	for name, tc := range map[string]struct {
		reason   string
		world    func(*placement.Input)
		existing pods
		pod      corev1.Pod
		want     string // the nodes on which it can run, sorted
	}{
		"Anywhere": {reason: "nothing is required", pod: pod(), want: "a b c d"},
		"Selector": {
			reason: "a node selector",
			pod:    pod(func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "x"} }), want: "a b",
		},
		"Taint":     {reason: "a taint that is not tolerated", world: tainted, pod: pod(), want: "b c d"},
		"Tolerated": {reason: "a taint that is tolerated", world: tainted, pod: pod(tolerating("infra")), want: "a b c d"},
		"Cordoned":  {reason: "an unschedulable node", world: cordoned, pod: pod(), want: "b c d"},
		"CordonedToo": {
			reason: "a pod that tolerates the taint of unschedulable nodes", world: cordoned,
			pod: pod(tolerating(corev1.TaintNodeUnschedulable)), want: "a b c d",
		},
		"Processors": {
			reason: "another pod requests most of a", existing: pods{pod(on("a"), requesting("cpu", "3"))},
			pod: pod(requesting("cpu", "1500m")), want: "b c d",
		},
		"Exactly": {
			reason: "the rest is sufficient", existing: pods{pod(on("a"), requesting("cpu", "3"))}, pod: pod(requesting("cpu", "1")),
			want: "a b c d",
		},
		"Extended": {reason: "no node has the resource", pod: pod(requesting("example.com/gpu", "1"))},
		"Exclusive": {
			reason: "another pod uses the claim, which one pod may use", world: storage,
			existing: pods{pod(on("c"), claiming("alone"))}, pod: pod(claiming("alone")),
		},
		"Released": {
			reason: "no other pod uses the claim, whose volume is in zone y", world: storage, pod: pod(claiming("alone")),
			want: "c",
		},
		"HostPort": {
			reason: "the port is in use on a; an address clashes with all addresses", existing: pods{pod(on("a"), hostPort(80, ""))},
			pod: pod(hostPort(80, "10.0.0.1")), want: "b c d",
		},
		"OtherAddress": {
			reason: "the same port of two addresses", existing: pods{pod(on("a"), hostPort(80, "10.0.0.2"))},
			pod: pod(hostPort(80, "10.0.0.1")), want: "a b c d",
		},
		"Apart": {
			reason: "anti-affinity by host", existing: pods{pod(on("a"))}, pod: pod(apart("cart", corev1.LabelHostname)),
			want: "b c d",
		},
		"ApartZone": {
			reason: "anti-affinity by zone; a node without the label is in none", existing: pods{pod(on("a"))},
			pod: pod(apart("cart", corev1.LabelTopologyZone)), want: "c d",
		},
		"ApartTheirs": {
			reason:   "the anti-affinity of a pod that runs",
			existing: pods{pod(on("a"), labeled("db"), apart("cart", corev1.LabelHostname))}, pod: pod(), want: "b c d",
		},
		"Together": {
			reason: "affinity by zone", existing: pods{pod(on("a"), labeled("db"))},
			pod: pod(together("db", corev1.LabelTopologyZone)), want: "a b",
		},
		"TogetherNone": {reason: "there is no pod to be together with", pod: pod(together("db", corev1.LabelTopologyZone))},
		"First": {
			reason: "the first of pods that have affinity to themselves", pod: pod(together("cart", corev1.LabelTopologyZone)),
			want: "a b c",
		},
		"Spread": {
			reason: "one pod per zone: y has none", existing: pods{pod(on("a"))}, pod: pod(spread(corev1.LabelTopologyZone)),
			want: "c",
		},
		"SpreadCordoned": {
			reason: "a cordoned node counts as a domain with no pod, unless taints are honored", world: cordoned,
			existing: pods{pod(on("b")), pod(on("c")), pod(on("d"))}, pod: pod(spread(corev1.LabelHostname)),
		},
		"SpreadHonored": {
			reason: "a cordoned node does not count where taints are honored", world: cordoned,
			existing: pods{pod(on("b")), pod(on("c")), pod(on("d"))}, want: "b c d",
			pod: pod(spread(corev1.LabelHostname, func(c *corev1.TopologySpreadConstraint) {
				c.NodeTaintsPolicy = new(
					corev1.NodeInclusionPolicyHonor)
			})),
		},
		"SpreadMin": {
			reason: "fewer domains than minDomains: none may have a second pod", existing: pods{pod(on("a")), pod(on("c"))},
			pod: pod(spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(3)) })),
		},
		"SpreadKeys": {
			reason: "only pods of the same revision count", want: "a b c", existing: pods{pod(on("a"))},
			pod: pod(func(pod *corev1.Pod) { pod.Labels["hash"] = "2" },
				spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"hash"} })),
		},
		"Local": {reason: "a local volume", world: storage, pod: pod(claiming("local")), want: "a"},
		"Zonal": {
			reason: "a volume of a zone, and a node that can attach no more; one without a zone is not excluded by the label",
			world:  storage, pod: pod(claiming("zonal")), want: "c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := placement.Input{Nodes: nodes(), Pods: append(tc.existing, tc.pod)}
			if tc.world != nil {
				tc.world(&input)
			}
			compiled := placement.Compile(input)
			state := compiled.State()
			for i := range tc.existing {
				state.Add(&compiled.Pods[i], compiled.Node(tc.existing[i].Spec.NodeName))
			}
			candidate := &compiled.Pods[len(tc.existing)]
			var suitable []string
			for _, name := range []string{"a", "b", "c", "d"} {
				if state.Reject(candidate, compiled.Node(name)) == placement.None {
					suitable = append(suitable, name)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(suitable, " ")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			found, rejected := state.Find(candidate, placement.Emptiest, rand.New(rand.NewPCG(1, 1)))
			if (found >= 0) != (tc.want != "") {
				t.Errorf("%s: found node %d, %s", tc.reason, found, rejected)
			}
			if candidate.Unknown != "" || candidate.Impossible != "" {
				t.Errorf("%s: %q %q", tc.reason, candidate.Unknown, candidate.Impossible)
			}
		})
	}
}

func TestWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason              string
		pod                 corev1.Pod
		unread              bool
		unknown, impossible string // parts of the texts
	}{
		"Scheduler": {
			reason: "another scheduler places it", pod: pod(func(pod *corev1.Pod) { pod.Spec.SchedulerName = "gang" }),
			unknown: `"gang"`,
		},
		"Gate": {
			reason: "a gate delays it",
			pod:    pod(func(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), unknown: "gates",
		},
		"Device": {
			reason: "a claim of a device",
			pod:    pod(func(pod *corev1.Pod) { pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }), unknown: "dynamic resources",
		},
		"Late":    {reason: "the volume is made when the pod is placed", pod: pod(claiming("late")), unknown: `"late" is bound when`},
		"Unbound": {reason: "the volume does not exist", pod: pod(claiming("unbound")), impossible: "is not bound"},
		"NoClaim": {reason: "the claim does not exist", pod: pod(claiming("none")), impossible: `"none" does not exist`},
		"Unread":  {reason: "claims could not be read", pod: pod(claiming("none")), unread: true, unknown: "could not be read"},
		"Namespaces": {reason: "namespaces could not be read", pod: pod(apart("cart", corev1.LabelHostname), func(pod *corev1.Pod) {
			pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		}), unknown: "namespaces"},
	} {
		input := placement.Input{Nodes: nodes(), Pods: []corev1.Pod{tc.pod}}
		storage(&input)
		input.Unread = tc.unread
		got := placement.Compile(input).Pods[0]
		if !strings.Contains(got.Unknown, tc.unknown) || !strings.Contains(got.Impossible, tc.impossible) ||
			(got.Unknown == "") != (tc.unknown == "") {
			t.Errorf("%s: %s: got %q %q", name, tc.reason, got.Unknown, got.Impossible)
		}
	}
}

// What is removed from a node leaves no trace.
func TestRemove(t *testing.T) {
	t.Parallel()
	existing := pod(on("a"), requesting("cpu", "4"), hostPort(80, ""), apart("cart", corev1.LabelTopologyZone))
	compiled := placement.Compile(placement.Input{Nodes: nodes(), Pods: []corev1.Pod{existing}})
	state, a := compiled.State(), compiled.Node("a")
	state.Add(&compiled.Pods[0], a)
	if why := state.Reject(&compiled.Pods[0], a); why != placement.Resources {
		t.Errorf("the second one is rejected by %d, want resources", why)
	}
	state.Remove(&compiled.Pods[0], a)
	if why := state.Reject(&compiled.Pods[0], a); why != placement.None {
		t.Errorf("after its removal, it is rejected by %d", why)
	}
}

// Pods may share their containers and differ in what else counts for their requests.
func TestRequestsOfSharedContainers(t *testing.T) {
	t.Parallel()
	small := pod(requesting(corev1.ResourceCPU, "1"))
	much := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	overhead, resized, initialized, whole := small, small, small, small
	overhead.Spec.Overhead = much
	resized.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:      "c",
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}},
	}}
	initialized.Spec.InitContainers = []corev1.Container{{
		Name:      "i",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}},
	}}
	whole.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}}
	cluster := placement.Compile(placement.Input{Nodes: nodes(), Pods: []corev1.Pod{small, small, overhead, resized, initialized, whole}})
	var fits []bool
	for i := range cluster.Pods {
		node, _ := cluster.State().Find(&cluster.Pods[i], placement.Any, rand.New(rand.NewPCG(1, 0)))
		fits = append(fits, node >= 0)
	}
	if diff := cmp.Diff([]bool{true, true, false, false, false, false}, fits); diff != "" {
		t.Errorf("pods that fit: -want +got:\n%s", diff)
	}
}
