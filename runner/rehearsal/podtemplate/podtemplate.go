// Package podtemplate answers: which pod does a Kubernetes controller create from this template, and what did admission
// change in it?
//
// Call [Of] first. Send [Template.Pod] as a dry run, as the user [Template.User], and pass the admitted pod to
// [Changes]. Nothing is read or sent here.
//
// # Limitations
//
// A pod of a DaemonSet lacks the node affinity that its controller uses to choose a node, and a pod of an Indexed Job
// lacks the index. Fields that the Kubernetes version of this module does not know are lost.
package podtemplate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What is assigned at creation. Policies look for it, and not for its value.
const (
	hash, minutes = "6d4b75cb6d", "29800000"
	uid           = "6f1e0b3a-94d2-4c57-8a0d-3e5b7c1f9d28"
	// ordinal is of no pod of a StatefulSet: the API server refuses a dry run, too, where a pod of the name exists.
	ordinal = 999
)

// Template is the pod template of a workload.
type Template struct {
	Kind, Namespace, Name string

	account, generation string
	owner               metav1.OwnerReference
	spec                spec
}

// spec has the fields of a workload that become fields of its pods.
type spec struct {
	Template             corev1.PodTemplateSpec         `json:"template"`
	ServiceName          string                         `json:"serviceName"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	ManualSelector       bool                           `json:"manualSelector"`
}

// Of returns the template of a Deployment, DaemonSet, StatefulSet, ReplicaSet (apps/v1), Job, CronJob (batch/v1) or
// ReplicationController (v1), and false for any other object. It returns an error if the object has one of these kinds,
// but no pod template that decodes.
func Of(workload *unstructured.Unstructured) (Template, bool, error) {
	if workload == nil {
		return Template{}, false, nil
	}
	t := Template{Kind: workload.GetKind(), Namespace: workload.GetNamespace(), Name: workload.GetName()}
	t.generation = cmp.Or(workload.GetAnnotations()[appsv1.DeprecatedTemplateGeneration], "1")
	t.owner = metav1.OwnerReference{
		APIVersion: workload.GetAPIVersion(), Kind: t.Kind, Name: t.Name, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true),
	}
	at := []string{"spec"}
	switch t.owner.APIVersion + " " + t.Kind {
	case "apps/v1 Deployment":
		t.account, t.owner.Kind, t.owner.Name = "replicaset-controller", "ReplicaSet", t.Name+"-"+hash
	case "apps/v1 ReplicaSet":
		t.account = "replicaset-controller"
	case "apps/v1 DaemonSet":
		t.account = "daemon-set-controller"
	case "apps/v1 StatefulSet":
		t.account = "statefulset-controller"
	case "batch/v1 Job":
		t.account = "job-controller"
	case "batch/v1 CronJob":
		t.account, t.owner.Kind, t.owner.Name = "job-controller", "Job", t.Name+"-"+minutes
		at = []string{"spec", "jobTemplate", "spec"}
	case "v1 ReplicationController":
		t.account = "replication-controller"
	default:
		return Template{}, false, nil
	}
	if err := t.decode(workload, at...); err != nil {
		return Template{}, false, fmt.Errorf("read the pod template of %s %s/%s: %w", t.Kind, t.Namespace, t.Name, err)
	}
	return t, true, nil
}

func (t *Template) decode(workload *unstructured.Unstructured, at ...string) error {
	of, _, err := unstructured.NestedFieldNoCopy(workload.Object, at...)
	if err != nil {
		return err
	}
	fields, ok := of.(map[string]any)
	if !ok || fields["template"] == nil {
		return errors.New("it has none")
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &t.spec)
}

// User is the user that creates the pods: a controller of kube-controller-manager with a ServiceAccount of its own.
func (t Template) User() string {
	return "system:serviceaccount:" + metav1.NamespaceSystem + ":" + t.account
}

// Pod is a pod as the controller requests it. Hashes and the object that owns it are made up. The reference to its owner
// blocks the deletion of the owner, for which each of the controllers has the permission.
func (t Template) Pod() *corev1.Pod {
	template := t.spec.Template.DeepCopy()
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: t.owner.Name + "-", Namespace: t.Namespace, Labels: map[string]string{}, Annotations: template.Annotations,
			Finalizers: template.Finalizers, OwnerReferences: []metav1.OwnerReference{*t.owner.DeepCopy()},
		},
		Spec: template.Spec,
	}
	maps.Copy(pod.Labels, template.Labels)
	switch t.Kind {
	case "Deployment":
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	case "DaemonSet":
		pod.Labels[appsv1.ControllerRevisionHashLabelKey], pod.Labels["pod-template-generation"] = hash, t.generation
		tolerate(&pod.Spec)
	case "StatefulSet":
		t.identify(pod)
	case "Job", "CronJob":
		t.track(pod)
	}
	return pod
}

// tolerate adds what pods of a DaemonSet tolerate (kubernetes pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations).
func tolerate(pod *corev1.PodSpec) {
	taints := []corev1.Taint{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure},
		{Key: corev1.TaintNodeMemoryPressure},
		{Key: corev1.TaintNodePIDPressure},
		{Key: corev1.TaintNodeUnschedulable},
	}
	if pod.HostNetwork {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable})
	}
	for _, taint := range taints {
		effect := cmp.Or(taint.Effect, corev1.TaintEffectNoSchedule)
		added := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: effect}
		pod.Tolerations = slices.DeleteFunc(pod.Tolerations, func(t corev1.Toleration) bool { return added.MatchToleration(&t) })
		pod.Tolerations = append(pod.Tolerations, added)
	}
}

// identify adds a name and volumes to a pod of a StatefulSet (kubernetes pkg/controller/statefulset, newVersionedStatefulSetPod).
func (t Template) identify(pod *corev1.Pod) {
	pod.Name = fmt.Sprintf("%s-%d", t.Name, ordinal)
	pod.Labels[appsv1.StatefulSetPodNameLabel], pod.Labels[appsv1.PodIndexLabel] = pod.Name, strconv.Itoa(ordinal)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = t.Name + "-" + hash
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, t.spec.ServiceName
	for _, claim := range t.spec.VolumeClaimTemplates {
		volume := corev1.Volume{Name: claim.Name}
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + pod.Name}
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim.Name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	}
}

// track adds the finalizer of the controller to a pod of a Job, and the labels that the API server adds to the template
// (kubernetes pkg/registry/batch/job, generateSelector).
func (t Template) track(pod *corev1.Pod) {
	if !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
		pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	}
	if t.spec.ManualSelector {
		return
	}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		pod.Labels[prefix+"job-name"] = cmp.Or(pod.Labels[prefix+"job-name"], t.owner.Name)
		pod.Labels[prefix+"controller-uid"] = cmp.Or(pod.Labels[prefix+"controller-uid"], uid)
	}
}
