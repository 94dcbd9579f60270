package intrusion

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/check"
)

// generationLabel has the generation of the template of a DaemonSet, which the DaemonSet has in an annotation (Kubernetes
// pkg/controller/daemon/util, CreatePodTemplate).
const generationLabel = "pod-template-generation"

// created is a pod of the platform, and the template by which its controller creates the next one; nil where it is not
// known, or has changed since.
type created struct {
	*corev1.Pod

	template *corev1.PodTemplateSpec
}

// spec is the pod as its controller requests it, before admission changes it.
func (c created) spec() *corev1.PodSpec {
	if c.template == nil {
		return &c.Spec
	}
	return &c.template.Spec
}

// controller identifies the controller of pods.
type controller struct {
	kind string
	types.NamespacedName
}

// source is the template of a controller. A pod of it whose label has another value is of an earlier template.
type source struct {
	template     *corev1.PodTemplateSpec
	label, value string
}

// pods are the pods of the platform that have not ended, without mirrors of static pods, which no admission changes.
func (i *inspection) pods(ctx context.Context) []created {
	all, err := i.cluster.Pods(ctx)
	if !i.lists("pods", err) {
		return nil
	}
	sources := i.sources(ctx)
	var found []created
	for at := range all {
		pod := &all[at]
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if mirror || ended || !check.OfCluster(pod.Namespace) {
			continue
		}
		of := created{Pod: pod}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			from := sources[controller{owner.Kind, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}}]
			if from.value == "" || pod.Labels[from.label] == from.value {
				of.template = from.template
			}
		}
		found = append(found, of)
	}
	return found
}

// sources are the templates of the controllers of the platform.
func (i *inspection) sources(ctx context.Context) map[controller]source {
	found := map[controller]source{}
	add := func(kind string, object metav1.ObjectMeta, from source) {
		if check.OfCluster(object.Namespace) && len(from.template.Spec.Containers) > 0 { // earlier ReplicaSets have none
			found[controller{kind, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}}] = from
		}
	}
	if sets, err := i.cluster.ReplicaSets(ctx); i.lists("ReplicaSets", err) {
		for at := range sets {
			add("ReplicaSet", sets[at].ObjectMeta, source{template: &sets[at].Spec.Template})
		}
	}
	if sets, err := i.cluster.DaemonSets(ctx); i.lists("DaemonSets", err) {
		for at := range sets {
			add("DaemonSet", sets[at].ObjectMeta, source{&sets[at].Spec.Template, generationLabel, sets[at].Annotations[appsv1.DeprecatedTemplateGeneration]})
		}
	}
	if sets, err := i.cluster.StatefulSets(ctx); i.lists("StatefulSets", err) {
		for at := range sets {
			add("StatefulSet", sets[at].ObjectMeta, source{&sets[at].Spec.Template, appsv1.StatefulSetRevisionLabel, sets[at].Status.UpdateRevision})
		}
	}
	if jobs, err := i.cluster.Jobs(ctx); i.lists("Jobs", err) {
		for at := range jobs {
			add("Job", jobs[at].ObjectMeta, source{template: &jobs[at].Spec.Template})
		}
	}
	return found
}
