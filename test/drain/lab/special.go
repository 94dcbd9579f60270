package lab

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StatefulSet is the kind.
func StatefulSet() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("StatefulSet")
}

// ReplicaSet is the kind.
func ReplicaSet() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
}

// Pod is the kind.
func Pod() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Pod") }

// KruiseStatefulSet is a StatefulSet of another API group, with a scale.
func KruiseStatefulSet() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}
}

// PostgresCluster is a Cluster of CloudNativePG, without a scale here.
func PostgresCluster() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "postgresql.cnpg.io", Version: "v1", Kind: "Cluster"}
}

// Database is of an operator that is not known, without a scale.
func Database() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "drain.test", Version: "v1", Kind: "Database"}
}

// TaskRun is a task of Tekton, whose pod is not created again.
func TaskRun() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "tekton.dev", Version: "v1", Kind: "TaskRun"}
}

// special adds a workload that a plain cluster does not have. It reports false if it only has changed
// the pods, whose controller is to be chosen.
func (g *generator) special(of *workload) bool {
	switch g.random.IntN(9) {
	case 0:
		g.ordered(of)
	case 1:
		g.stateful(of).Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		g.alter(of.app, StatefulSet())
	case 2:
		g.cluster.ReplicaSets = append(g.cluster.ReplicaSets, appsv1.ReplicaSet{ObjectMeta: g.named(of.app), Spec: appsv1.ReplicaSetSpec{
			Replicas: of.number(), Selector: selecting(of.app), Template: of.template,
		}})
		g.alter(of.app, ReplicaSet())
	case 3:
		g.stored(of)
	case 4:
		g.job(of)
	case 5:
		g.operated(of)
	case 6:
		if g.chance(70) {
			return false
		}
		of.replicas = g.between(1, 2)
		of.template.Annotations[AnnotationReady] = "12s"
		g.cluster.Starting = append(g.cluster.Starting, g.deployment(of))
	case 7:
		of.template.Finalizers = []string{[]string{Removed, Foreign}[g.random.IntN(2)]}
		return false
	default:
		g.ranked(of)
		return false
	}
	return true
}

// ordered adds an OrderedReady StatefulSet, of which a pod may be unready after a while.
func (g *generator) ordered(of *workload) {
	set := g.stateful(of)
	if !g.chance(50) {
		return
	}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	g.cluster.Sicken(of.app, g.between(0, of.replicas-1))
}

// Sicken has a pod of a StatefulSet with the update strategy OnDelete be unready from now on.
func (c *Cluster) Sicken(app string, ordinal int) {
	sick := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, AnnotationSick, ordinal)
	pod := fmt.Sprintf("%s-%d", app, ordinal)
	c.Changes = append(c.Changes,
		Change{GroupVersionKind: StatefulSet(), Namespace: c.Namespace, Name: app, Patch: fmt.Sprintf(`{"spec":{"template":%s}}`, sick)},
		Change{GroupVersionKind: Pod(), Namespace: c.Namespace, Name: pod, Patch: sick},
		Change{
			GroupVersionKind: Pod(), Namespace: c.Namespace, Name: pod, Status: true,
			Patch: `{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"ContainersReady","status":"False"}]}}`,
		})
}

// alter changes the template of a controller, whose pods stay as they are.
func (g *generator) alter(app string, kind schema.GroupVersionKind) {
	var spec string
	switch g.random.IntN(4) {
	case 0:
		spec = `{"nodeSelector":{"disk":"nvme"}}`
		if g.chance(50) {
			g.cluster.Nodes[g.random.IntN(g.workers)].Labels["disk"] = "nvme"
		}
	case 1:
		spec = fmt.Sprintf(`{"containers":[{"name":"c","resources":{"requests":{"cpu":"%d"}}}]}`, g.between(1, 9))
	case 2:
		spec = fmt.Sprintf(`{"priorityClassName":%q,"priority":null}`, important)
	default:
		spec = `{"terminationGracePeriodSeconds":2}` // which changes nothing
	}
	g.cluster.Changes = append(g.cluster.Changes, Change{
		GroupVersionKind: kind, Namespace: g.cluster.Namespace, Name: app, Patch: fmt.Sprintf(`{"spec":{"template":{"spec":%s}}}`, spec),
	})
}

// stored adds a workload whose pods have volumes in a zone or on a node, or one that one pod may use.
func (g *generator) stored(of *workload) {
	if g.chance(50) {
		g.stateful(of).Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		set := &g.cluster.StatefulSets[len(g.cluster.StatefulSets)-1]
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{g.claim("data", "")}
		for i := range of.replicas {
			g.volume(fmt.Sprintf("data-%s-%d", of.app, i))
		}
		return
	}
	of.replicas = g.between(1, 2)
	mode := corev1.ReadWriteOnce
	if g.chance(60) {
		of.replicas, mode = 1, corev1.ReadWriteOncePod
	}
	of.template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: of.app},
	}}}
	g.volume(of.app)
	last := len(g.cluster.Claims) - 1
	g.cluster.Claims[last].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
	g.cluster.Volumes[last].Spec.AccessModes = g.cluster.Claims[last].Spec.AccessModes
	g.cluster.Deployments = append(g.cluster.Deployments, g.deployment(of))
}

func (g *generator) claim(name, volume string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: g.named(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""), VolumeName: volume,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

// volume adds a claim with its volume, in the zone of a worker, or on it.
func (g *generator) volume(claim string) {
	name := g.cluster.Namespace + "-" + claim
	node, key := &g.cluster.Nodes[g.random.IntN(g.workers)], corev1.LabelTopologyZone
	if g.chance(30) {
		key = corev1.LabelHostname
	}
	bound := g.claim(claim, name)
	g.cluster.Claims = append(g.cluster.Claims, bound)
	g.cluster.Volumes = append(g.cluster.Volumes, corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ClusterLabel: g.cluster.Namespace}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: bound.Spec.AccessModes, Capacity: bound.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/" + name}},
			ClaimRef:                      &corev1.ObjectReference{Namespace: g.cluster.Namespace, Name: claim},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Labels[key]}}},
			}}}},
		},
	})
}

// Share has all pods of a template use one ReadWriteOnce volume of a CSI driver, which one node has at a time. A test that
// drains the cluster has a pod get ready once its node has the volume.
func (c *Cluster) Share(claim string, of *corev1.PodTemplateSpec) {
	of.Annotations[AnnotationReady] = NeverReady
	name := c.Namespace + "-" + claim
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	of.Spec.Volumes = append(of.Spec.Volumes, corev1.Volume{Name: "shared", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
	c.Claims = append(c.Claims, corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: new(""), VolumeName: name, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	})
	c.Volumes = append(c.Volumes, corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ClusterLabel: c.Namespace}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:       "ebs.csi.aws.com",
				VolumeHandle: name,
			}},
			ClaimRef: &corev1.ObjectReference{Namespace: c.Namespace, Name: claim},
		},
	})
}

// job adds a Job, which runs longer than the drains, maybe with a budget that is created later.
func (g *generator) job(of *workload) {
	of.replicas, of.budgeted = g.between(1, 3), true
	delete(of.template.Annotations, AnnotationReady)
	of.template.Annotations[AnnotationTakes] = "1h"
	of.template.Spec.RestartPolicy = corev1.RestartPolicyNever
	g.cluster.Jobs = append(g.cluster.Jobs, batchv1.Job{ObjectMeta: g.named(of.app), Spec: batchv1.JobSpec{
		//nolint:gosec // few
		Parallelism: of.number(), Completions: of.number(), BackoffLimit: new(int32(g.between(0, 2))), Template: of.template,
	}})
	if g.chance(50) {
		g.cluster.LateBudgets = append(g.cluster.LateBudgets, g.budget(of.app, of.app, of.replicas))
	}
}

// operated adds pods of an operator, whose object has a scale or not.
func (g *generator) operated(of *workload) {
	of.budgeted = true
	kind := []schema.GroupVersionKind{KruiseStatefulSet(), Database()}[g.random.IntN(2)]
	g.cluster.Operate(kind, Operand{Name: of.app, Replicas: of.replicas, Template: of.template})
	if !g.chance(60) {
		return
	}
	budget := g.budget(of.app, of.app, of.replicas)
	if kind == Database() && g.chance(80) { // of which other budgets cannot be computed
		budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, new(intstr.FromInt32(int32(max(1, of.replicas-1)))) //nolint:gosec // few
	}
	g.cluster.LateBudgets = append(g.cluster.LateBudgets, budget)
}

// Operand is what an operator runs.
type Operand struct {
	Name     string
	Replicas int
	Template corev1.PodTemplateSpec
}

// Operate adds an object of an operator, and its pods.
func (c *Cluster) Operate(by schema.GroupVersionKind, of Operand) *unstructured.Unstructured {
	object := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(of.Replicas)}}}
	object.SetGroupVersionKind(by)
	object.SetNamespace(c.Namespace)
	object.SetName(of.Name)
	c.Owners = append(c.Owners, object)
	version, kind := by.ToAPIVersionAndKind()
	for i := range of.Replicas {
		c.Operated = append(c.Operated, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", of.Name, i), Labels: of.Template.Labels, Annotations: of.Template.Annotations,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: version, Kind: kind, Name: of.Name, Controller: new(true),
					BlockOwnerDeletion: new(true),
				}},
			},
			Spec: of.Template.Spec,
		})
	}
	return &c.Owners[len(c.Owners)-1]
}

// ranked gives the pods a priority class that is deleted later, or one whose pods preempt no others.
func (g *generator) ranked(of *workload) {
	//nolint:gosec // few
	class := schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: g.cluster.Namespace + "-" + of.app},
		Value:      int32(g.between(1, 2000)),
	}
	if g.chance(50) {
		class.PreemptionPolicy = new(corev1.PreemptNever)
	}
	g.cluster.Priorities = append(g.cluster.Priorities, class)
	of.template.Spec.PriorityClassName = class.Name
	if g.chance(40) {
		g.cluster.Changes = append(g.cluster.Changes,
			Change{GroupVersionKind: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), Name: class.Name})
	}
}
