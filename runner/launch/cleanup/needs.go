package cleanup

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// ListNeeds are the permissions to list the objects of runs in the cluster, as [Runs] and the end of each run do.
func ListNeeds() access.Needs { return everyKind("list") }

// Needs are the permissions to clean up any run.
func Needs() access.Needs { return everyKind("list", "watch", "delete") }

// everyKind are these verbs on all kinds; the kinds of the guard are optional.
func everyKind(verbs ...string) access.Needs {
	var needs access.Needs
	for _, k := range inventory.Kinds() {
		requests := access.Verbs(k.Request(), verbs...)
		if k.Guard {
			needs.Optional = append(needs.Optional, requests...)
			continue
		}
		needs.Required = append(needs.Required, requests...)
	}
	return needs
}

// over are the Jobs and pods of a run that need no time to end, by UID: pods whose
// containers have all terminated, as the kubelet has reported it, and Jobs that create no
// further pod. Their deletion does not wait for a grace period or for the garbage collector.
type over map[types.UID]bool

// readOver reads the states of the Jobs and pods of a run. What cannot be read is not over.
func readOver(ctx context.Context, objects *inventory.Objects, runID string) over {
	client, namespace := objects.Kubernetes, objects.Namespace
	ended, succeeded := over{}, over{}
	eachPage(ctx, inventory.OfRun(runID), func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(namespace).List(ctx, options)
	}, func(object runtime.Object) {
		pod, ok := object.(*corev1.Pod)
		if !ok || !terminated(pod) {
			return
		}
		ended[pod.UID] = true
		if job := metav1.GetControllerOfNoCopy(pod); job != nil && passed(pod) {
			succeeded[job.UID] = true
		}
	})
	eachPage(ctx, inventory.OfRun(runID), func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.BatchV1().Jobs(namespace).List(ctx, options)
	}, func(object runtime.Object) {
		if job, ok := object.(*batchv1.Job); ok && createsNoPod(job, succeeded[job.UID]) {
			ended[job.UID] = true
		}
	})
	return ended
}

func eachPage(ctx context.Context, selection metav1.ListOptions, page pager.ListPageFunc, do func(runtime.Object)) {
	pages := pager.New(page)
	pages.PageSize, pages.PageBufferSize = 200, 1
	_ = pages.EachListItem(ctx, selection, func(object runtime.Object) error {
		do(object)
		return nil
	}) // what was not listed is not over
}

// terminated reports whether the kubelet has reported the end of all containers of a pod, and
// restarts none of them. The phase follows later: a pod without a grace period is deleted
// by the API server at once when it is Succeeded or Failed (CheckGracefulDelete in
// k8s.io/kubernetes/pkg/registry/core/pod).
func terminated(pod *corev1.Pod) bool {
	if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) || len(pod.Status.InitContainerStatuses) < len(pod.Spec.InitContainers) {
		return false
	}
	for _, container := range pod.Spec.Containers {
		if container.RestartPolicy != nil || len(container.RestartPolicyRules) > 0 {
			return false
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
		pod.Status.EphemeralContainerStatuses,
	} {
		for _, status := range statuses {
			if !ends(pod.Spec.RestartPolicy, status.State.Terminated) {
				return false
			}
		}
	}
	return true
}

// passed reports whether all containers of a terminated pod ended with exit code 0, so that
// its phase is or will be Succeeded.
func passed(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(status corev1.ContainerStatus) bool { return status.State.Terminated.ExitCode != 0 })
}

// ends reports whether a container has ended for good.
func ends(policy corev1.RestartPolicy, end *corev1.ContainerStateTerminated) bool {
	return end != nil && (policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && end.ExitCode == 0)
}

// createsNoPod reports whether the Job controller creates no further pod of a Job: it has a
// condition that is final, or the one pod that it is to complete with has succeeded. A pod
// counts for its Job until the controller has removed its finalizer, so that its deletion
// does not make the controller replace it.
func createsNoPod(job *batchv1.Job, succeeded bool) bool {
	for _, condition := range job.Status.Conditions {
		final := condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed
		if final && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	one := func(number *int32) bool { return number == nil || *number == 1 }
	return succeeded && one(job.Spec.Completions) && one(job.Spec.Parallelism)
}

// atOnce deletes an object that is over, and leaves its dependents, which are deleted by
// themselves, to the garbage collector.
func atOnce() metav1.DeleteOptions {
	policy := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &policy, GracePeriodSeconds: new(int64(0))}
}
