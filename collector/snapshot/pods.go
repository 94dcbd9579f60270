package snapshot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// maxPods bounds the pods that are listed: three times as many as Kubernetes supports.
const maxPods = 500_000

// Pods are all pods, sorted by namespace and name, with the fields on which their eviction and
// their placement depend: of containers the resources and the ports, of volumes the claims, of
// the status the phase and the condition Ready.
func (c *Cluster) Pods(ctx context.Context) ([]corev1.Pod, error) {
	return once(ctx, c, "pods", func(ctx context.Context) ([]corev1.Pod, error) {
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.CoreV1().Pods(corev1.NamespaceAll).List(ctx, options)
		})
		pages.PageBufferSize = 1
		var all []corev1.Pod
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			if len(all) >= maxPods {
				return fmt.Errorf("the cluster has more than %d pods", maxPods)
			}
			if pod, ok := item.(*corev1.Pod); ok {
				all = append(all, placed(pod))
			}
			return nil
		})
		return all, err
	})
}

// placed is a pod with the fields that are kept.
func placed(pod *corev1.Pod) corev1.Pod {
	trim(pod)
	kept := corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: corev1.PodStatus{Phase: pod.Status.Phase}}
	kept.Annotations = nil
	if mirror, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		kept.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: mirror}
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			kept.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: pod.Status.Conditions[i].Status}}
		}
	}
	spec := &pod.Spec
	kept.Spec = corev1.PodSpec{
		NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, SchedulerName: spec.SchedulerName, SchedulingGates: spec.SchedulingGates,
		Priority: spec.Priority, PriorityClassName: spec.PriorityClassName, PreemptionPolicy: spec.PreemptionPolicy,
		TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds, ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds,
		Overhead: spec.Overhead, Resources: spec.Resources, ResourceClaims: spec.ResourceClaims,
		InitContainers: containersOf(spec.InitContainers), Containers: containersOf(spec.Containers), Volumes: claimed(spec.Volumes),
	}
	return kept
}

func containersOf(containers []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, 0, len(containers))
	for i := range containers {
		of := &containers[i]
		kept = append(kept, corev1.Container{Name: of.Name, Resources: of.Resources, Ports: of.Ports, RestartPolicy: of.RestartPolicy})
	}
	return kept
}

// claimed are the volumes that are claims.
func claimed(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		if volumes[i].PersistentVolumeClaim != nil || volumes[i].Ephemeral != nil {
			kept = append(kept, volumes[i])
		}
	}
	return kept
}
