package jobwatch

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/runner/launch/alteration"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// trim returns the used fields of an object; of an event about an object of
// another run only its name, since there may be many thousands.
func trim(object any, indexes map[types.NamespacedName]int) any {
	switch object := object.(type) {
	case *batchv1.Job:
		return trimJob(object)
	case *corev1.Pod:
		return trimPod(object)
	case *corev1.Event:
		if _, ours := involvedJob(object, indexes); !ours {
			return &corev1.Event{ObjectMeta: trimMeta(object.ObjectMeta)}
		}
		return trimEvent(object)
	}
	return object
}

// involvedJob finds the Job that an event is about. The name of a pod is the name of
// its Job with a dash and five characters appended.
func involvedJob(event *corev1.Event, indexes map[types.NamespacedName]int) (int, bool) {
	name := event.InvolvedObject.Name
	if event.InvolvedObject.Kind == "Pod" {
		name = name[:max(0, strings.LastIndex(name, "-"))]
	}
	i, ok := indexes[types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: name}]
	return i, ok
}

// trimJob returns the fields of a Job that are used, since thousands of Jobs may
// be held. Its spec as requested is in the check, but for the deadline of a run that was taken over.
func trimJob(job *batchv1.Job) *batchv1.Job {
	deadline := corev1.EnvVar{Name: jobplan.VariableDeadline, Value: alteration.Deadline(job.Spec.Template.Spec)}
	return &batchv1.Job{
		ObjectMeta: trimMeta(job.ObjectMeta),
		Spec: batchv1.JobSpec{Suspend: job.Spec.Suspend, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{deadline}}}},
		}},
		Status: batchv1.JobStatus{
			Conditions: job.Status.Conditions, Active: job.Status.Active, Succeeded: job.Status.Succeeded, Failed: job.Status.Failed,
		},
	}
}

// trimPod returns the owner and the status of a pod, and what admission may change of it.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	status := pod.Status
	trimmed := &corev1.Pod{
		ObjectMeta: trimMeta(pod.ObjectMeta), Spec: pod.Spec,
		Status: corev1.PodStatus{
			Phase: status.Phase, Reason: status.Reason, Message: status.Message, StartTime: status.StartTime, Conditions: status.Conditions,
			InitContainerStatuses: trimContainers(status.InitContainerStatuses), ContainerStatuses: trimContainers(status.ContainerStatuses),
		},
	}
	trimmed.Labels = pod.Labels
	trimmed.Annotations = alteration.NodeAnnotations(pod.Annotations)
	if controller := metav1.GetControllerOf(pod); controller != nil {
		trimmed.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return trimmed
}

func trimMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

func trimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, 0, len(statuses))
	for _, status := range statuses {
		trimmed = append(trimmed, corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, State: status.State,
			LastTerminationState: status.LastTerminationState, RestartCount: status.RestartCount,
		})
	}
	return trimmed
}

// trimEvent returns the involved object, reason and message of an event.
func trimEvent(event *corev1.Event) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: trimMeta(event.ObjectMeta), InvolvedObject: event.InvolvedObject, Reason: event.Reason, Message: event.Message,
	}
}
