package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/test/drain/lab"
)

const (
	// poll is how often the state of a cluster is read while it settles, and same how many times in a
	// row it must be the same: longer than a controller or the scheduler takes to notice a change.
	poll, same = 400 * time.Millisecond, 3
	// patient bounds the time until a cluster has settled. The disruption controller takes up to two
	// minutes for a pod of a StatefulSet that was created before it saw that the one of the same name
	// is gone (kubernetes pkg/controller/disruption, buildDisruptedPodMap).
	patient = 4 * time.Minute
)

// await waits until the scheduler has no pod to try, and the state of the cluster is as wanted.
func (t *trial) await(ctx context.Context, wanted func(*lab.Cluster) bool) error {
	last, times := "", 0
	err := wait.PollUntilContextTimeout(ctx, poll, patient, true, func(ctx context.Context) (bool, error) {
		queues, err := t.plane.Unscheduled(ctx)
		if err != nil {
			return false, err
		}
		found, err := t.read(ctx)
		if err != nil {
			return false, err
		}
		state := found.String()
		if state != last {
			last, times = state, 0
		}
		if times++; queues["active"]+queues["backoff"] > 0 || !wanted(&found) {
			times = 0
		}
		return times >= same, nil
	})
	if err != nil {
		return fmt.Errorf("the cluster has not settled: %w\n%s", err, last)
	}
	return nil
}

// settled reports whether all pods are as ready as they get, and counted by their budgets.
func (t *trial) settled(found *lab.Cluster) bool {
	healthy, managed := map[string]int32{}, map[string]bool{}
	for i := range found.Pods {
		pod := &found.Pods[i]
		app := pod.Labels["app"]
		managed[app] = managed[app] || lab.ControllerOf(pod).Name != ""
		switch {
		case lab.Ready(pod):
			healthy[app]++
		case pod.Spec.NodeName != "" && (pod.Annotations[lab.AnnotationReady] != lab.NeverReady || pod.Status.Phase != corev1.PodRunning):
			return false
		}
	}
	return t.tried(found) && counted(found.Budgets, healthy, managed)
}

// tried reports whether the controllers have created their pods, the scheduler has tried to place them,
// and those that are deleted are gone.
func (t *trial) tried(found *lab.Cluster) bool {
	pods := map[string]int{}
	for i := range found.Pods {
		pod := &found.Pods[i]
		pods[lab.ControllerOf(pod).Name]++
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" && len(pod.Status.Conditions) == 0 {
			return false
		}
	}
	complete := len(found.ReplicaSets) == len(t.created.Deployments)
	for i := range found.ReplicaSets {
		set := &found.ReplicaSets[i]
		complete = complete && (pods[set.Name] >= int(*set.Spec.Replicas) || refused(found, &set.Spec.Template))
	}
	for i := range found.StatefulSets {
		set := &found.StatefulSets[i]
		complete = complete && (pods[set.Name] >= int(*set.Spec.Replicas) || refused(found, &set.Spec.Template))
	}
	for i := range found.DaemonSets {
		set := &found.DaemonSets[i]
		complete = complete && set.Status.ObservedGeneration > 0 && (pods[set.Name] >= int(set.Status.DesiredNumberScheduled) || refused(found, &set.Spec.Template))
	}
	return complete
}

// refused reports whether the quota refuses the pods of a template, which have no requests.
func refused(found *lab.Cluster, template *corev1.PodTemplateSpec) bool {
	return len(found.Quotas) > 0 && template.Spec.Containers[0].Resources.Requests.Cpu().IsZero()
}

// counted reports whether the budgets count the pods of each application that are healthy; those of a
// managed one are expected.
func counted(budgets []policyv1.PodDisruptionBudget, healthy map[string]int32, managed map[string]bool) bool {
	selecting := map[string]int{}
	for i := range budgets {
		selecting[budgets[i].Spec.Selector.MatchLabels["app"]]++
	}
	for i := range budgets {
		status, app := &budgets[i].Status, budgets[i].Spec.Selector.MatchLabels["app"]
		// Of several budgets of a pod, the disruption controller computes one when the pod changes
		// (kubernetes pkg/controller/disruption, getPdbForPod). The numbers of a status that cannot be
		// computed are those before.
		if selecting[app] > 1 || len(status.Conditions) > 0 && status.Conditions[0].Reason == policyv1.SyncFailedReason {
			continue
		}
		if status.ObservedGeneration != budgets[i].Generation || status.CurrentHealthy != healthy[app] || managed[app] && status.ExpectedPods == 0 {
			return false
		}
	}
	return true
}
