package drain_test

import (
	"fmt"
	"testing"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

// now is the time of the worlds.
var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// world is a cluster in the making.
type world struct {
	nodes     []corev1.Node
	pools     []machineconfigurationv1.MachineConfigPool
	pods      []corev1.Pod
	budgets   []policyv1.PodDisruptionBudget
	workloads recreation.Input
	services  []corev1.Service
	machines  []unstructured.Unstructured
	webhooks  []string
	creation  *reviewer.Reviewers
	claims    []corev1.PersistentVolumeClaim
	volumes   []corev1.PersistentVolume
	drivers   []storagev1.CSIDriver
	limits    []storagev1.CSINode
	room      []drain.Room
	addresses []drain.Address
}

// small is a cluster with three workers, w0 to w2, and a paused pool of one, i0.
func small() *world {
	w := &world{}
	for i := range 3 {
		w.node(fmt.Sprintf("w%d", i), "worker")
	}
	w.node("i0", "infra")
	w.pool("worker", false)
	w.pool("infra", true)
	return w
}

func (w *world) node(name, role string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("250"),
	}
	w.nodes = append(w.nodes, corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(now.Add(time.Duration(len(w.nodes)) * time.Second)),
			Labels: map[string]string{"node-role.kubernetes.io/" + role: "", corev1.LabelHostname: name, "role": role},
			Annotations: map[string]string{
				"machineconfiguration.openshift.io/currentConfig": "a",
				"machineconfiguration.openshift.io/desiredConfig": "a", "machineconfiguration.openshift.io/state": "Done",
			},
		},
		Status: corev1.NodeStatus{Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	return &w.nodes[len(w.nodes)-1]
}

func (w *world) pool(name string, paused bool) {
	w.pools = append(w.pools, machineconfigurationv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: machineconfigurationv1.MachineConfigPoolSpec{
			Paused: paused, NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}},
		},
	})
}

// deploy adds a ReplicaSet in namespace shop whose pods run on these nodes.
func (w *world) deploy(app string, template corev1.PodSpec, nodes ...string) {
	if len(template.Containers) == 0 {
		template.Containers = []corev1.Container{{Name: "c"}}
	}
	replicas := int32(len(nodes))
	w.workloads.ReplicaSets = append(w.workloads.ReplicaSets, appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: template},
		},
	})
	for i, node := range nodes {
		w.pod(fmt.Sprintf("%s-%d", app, i), app, node, "ReplicaSet", template)
	}
}

// pod adds a pod that runs and is ready.
func (w *world) pod(name, app, node, kind string, spec corev1.PodSpec) *corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": app}}, Spec: spec,
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	pod.Spec.NodeName = node
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: app, Controller: new(true)}}
	}
	w.pods = append(w.pods, pod)
	return &w.pods[len(w.pods)-1]
}

// budget adds a budget over the pods of an app that allows that many disruptions.
func (w *world) budget(app string, allowed, healthy, desired, expected int32) *policyv1.PodDisruptionBudget {
	w.budgets = append(w.budgets, policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			MinAvailable: new(intstr.FromInt32(desired)),
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: allowed, CurrentHealthy: healthy, DesiredHealthy: desired,
			ExpectedPods: expected,
		},
	})
	return &w.budgets[len(w.budgets)-1]
}

// inZones sets the zones of the first nodes.
func (w *world) inZones(names ...string) {
	for i, zone := range names {
		w.nodes[i].Labels[corev1.LabelTopologyZone] = zone
	}
}

// zonal is a pod with a volume in a zone.
func (w *world) zonal(name, zone string) corev1.PodSpec {
	w.claims = append(w.claims, corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	w.volumes = append(w.volumes, corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn,
				Values: []string{zone},
			}},
		}}}}},
	})
	return corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c"}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}},
	}
}

// shared is a pod with a volume of a CSI driver that several pods use.
func (w *world) shared(name string, mode corev1.PersistentVolumeAccessMode) corev1.PodSpec {
	spec := w.zonal(name, "")
	w.claims[len(w.claims)-1].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
	volume := &w.volumes[len(w.volumes)-1].Spec
	volume.NodeAffinity, volume.CSI = nil, &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: name}
	return spec
}

// claiming adds a StatefulSet in namespace shop whose pods run on these nodes, each with a claim of its template.
func (w *world) claiming(app string, nodes ...string) {
	w.workloads.StatefulSets = append(w.workloads.StatefulSets, appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(len(nodes))), PodManagementPolicy: appsv1.ParallelPodManagement,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		},
	})
	for i, node := range nodes {
		name := fmt.Sprintf("%s-%d", app, i)
		spec := w.zonal("data-"+name, "")
		w.claims[len(w.claims)-1].Spec.StorageClassName = new("spare")
		w.volumes[len(w.volumes)-1].Spec.NodeAffinity = nil
		w.pod(name, app, node, "StatefulSet", spec)
	}
}

// spare adds a volume that no claim has.
func (w *world) spare(name string) {
	w.volumes = append(w.volumes, corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: "spare", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	}})
}

func (w *world) rehearse(tb testing.TB) drain.Rehearsal {
	tb.Helper()
	return drain.Rehearse(w.input(tb))
}

func (w *world) input(tb testing.TB) drain.Input {
	tb.Helper()
	found, err := order.Of(order.Input{Nodes: w.nodes, Pools: w.pools})
	if err != nil {
		tb.Fatal(err)
	}
	return drain.Input{
		Order: found, Cluster: placement.Input{
			Nodes: w.nodes, Pods: w.pods, Claims: w.claims, Volumes: w.volumes, Drivers: w.drivers,
			Attachments: w.limits,
		}, Budgets: w.budgets,
		Workloads: recreation.New(w.workloads), Services: w.services, Owners: owner.New(w.machines, w.webhooks), Creation: w.creation, Now: now,
		Room: w.room, Addresses: w.addresses,
	}
}

// fill has the pods of an app take a whole node each.
func (w *world) fill(app string, nodes ...string) {
	w.deploy(app, corev1.PodSpec{NodeSelector: map[string]string{"role": "worker"}, Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
	}}}, nodes...)
}

// lack has a ReplicaSet want one more pod than it has.
func (w *world) lack(at int) { *w.workloads.ReplicaSets[at].Spec.Replicas++ }

// limit adds a quota of pods that is used up.
func (w *world) limit(pods string) {
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
	w.workloads.Quotas = append(w.workloads.Quotas, corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
		Status: corev1.ResourceQuotaStatus{Hard: hard, Used: hard},
	})
}

// denied adds a policy on the creation of pods, whose answer is not known, from that time on.
func (w *world) denied(since time.Time) {
	created := metav1.NewTime(since)
	w.creation = reviewer.Creations(reviewer.Input{
		Namespaces: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}},
		Policies: []admissionregistrationv1.ValidatingAdmissionPolicy{{
			ObjectMeta: metav1.ObjectMeta{Name: "images", CreationTimestamp: created},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
					}}},
				},
				Validations: []admissionregistrationv1.Validation{{Expression: `object.spec.containers.all(c, c.image.startsWith("registry.example.com/"))`}},
			},
		}},
		Bindings: []admissionregistrationv1.ValidatingAdmissionPolicyBinding{{
			ObjectMeta: metav1.ObjectMeta{Name: "images"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        "images",
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}},
	})
}

func priority(name string) schedulingv1.PriorityClass {
	return schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
