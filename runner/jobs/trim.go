package jobs

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// slimJob is a Job without what nobody reads, to be kept: there may be
// thousands. The check has what was asked for.
func slimJob(job *batchv1.Job) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: slimMeta(job.ObjectMeta),
		Spec:       batchv1.JobSpec{Suspend: job.Spec.Suspend},
		Status:     batchv1.JobStatus{Conditions: job.Status.Conditions, Active: job.Status.Active},
	}
}

// slimPod leaves of a pod whose it is, and what became of it.
func slimPod(pod *corev1.Pod) *corev1.Pod {
	status := pod.Status
	slim := &corev1.Pod{
		ObjectMeta: slimMeta(pod.ObjectMeta), Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{
			Phase: status.Phase, Reason: status.Reason, Message: status.Message, StartTime: status.StartTime, Conditions: status.Conditions,
			InitContainerStatuses: slimContainers(status.InitContainerStatuses), ContainerStatuses: slimContainers(status.ContainerStatuses),
		},
	}
	slim.Labels = map[string]string{
		batchv1.JobNameLabel: pod.Labels[batchv1.JobNameLabel], batchv1.ControllerUidLabel: pod.Labels[batchv1.ControllerUidLabel],
	}
	return slim
}

func slimMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

func slimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	slim := make([]corev1.ContainerStatus, 0, len(statuses))
	for _, status := range statuses {
		slim = append(slim, corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, State: status.State,
			LastTerminationState: status.LastTerminationState, RestartCount: status.RestartCount,
		})
	}
	return slim
}

// slimEvent leaves what an event says of whom.
func slimEvent(event *corev1.Event) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: slimMeta(event.ObjectMeta), InvolvedObject: event.InvolvedObject, Reason: event.Reason, Message: event.Message,
	}
}
