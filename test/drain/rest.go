package drain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/test/drain/lab"
)

const (
	// poll bounds how long a change of a cluster may go unnoticed, and calmInterval the queues of the scheduler.
	poll, calmInterval = 200 * time.Millisecond, 400 * time.Millisecond
	// busiest is after what time a pod is taken for tried although the scheduler has others to try at each request.
	busiest = 8 * time.Second
	// short is how long nothing must change in a cluster in which nothing is expected to, and long in one with
	// pods that have no node or are missing: the scheduler tries a pod again a second after a change, and
	// looks each second which ones it has to.
	short, long, retry = 300 * time.Millisecond, 2200 * time.Millisecond, 1800 * time.Millisecond
	// backOff is how long a Job waits at most until it replaces a pod, after two that have failed.
	backOff = 24 * time.Second
	// expected is how long the disruption controller takes at most to count the pods of a budget, and overdue how
	// long a simulated kubelet does, also of a pod that gets ready after 12 seconds: it may miss a pod.
	expected, overdue = time.Second, 15 * time.Second
	// patient bounds the time until a cluster has settled.
	patient = 2 * time.Minute
)

// await waits until all pods are as ready as they get, their budgets count them, the controllers have
// created what they can, and the scheduler has tried to place what has no node.
func (t *Trial) await(ctx context.Context) error {
	for began, nudged := time.Now(), false; ; {
		found := t.read()
		quiet := t.quiet(&found)
		rests, since := t.rests(quiet)
		if rests {
			t.remember(&found)
			return nil
		}
		err := t.operate(ctx)
		switch {
		case err != nil:
		case !nudged && quiet > short && since > short:
			nudged, err = true, t.nudge(ctx, &found)
		case quiet == 0 && since > expected:
			err = errors.Join(t.expire(ctx, &found), t.remind(ctx, &found, since))
		}
		if err != nil {
			return err
		}
		if time.Since(began) > patient {
			return fmt.Errorf("the cluster has not settled: %s\n%s", t.busy(&found), &found)
		}
		if err := t.watched.pause(ctx, t.Created.Namespace, poll); err != nil {
			return err
		}
	}
}

// rests reports whether nothing has changed for that time, and how long nothing has.
func (t *Trial) rests(quiet time.Duration) (bool, time.Duration) {
	_, at, calm := t.watched.state(t.Created.Namespace)
	since := time.Since(at)
	return quiet > 0 && since >= quiet && (quiet == short || calm.After(at.Add(retry)) || since > busiest), since
}

// nudge changes an annotation of the controllers that lack pods because of a limit: they try again at
// increasing intervals, up to 16 minutes, for which no test can wait.
func (t *Trial) nudge(ctx context.Context, found *lab.Cluster) error {
	if len(t.Created.Quotas)+len(t.Created.Limits) == 0 {
		return nil
	}
	missing, patch := found.Missing(), stamp()
	var err error
	for i := range found.ReplicaSets {
		if name := found.ReplicaSets[i].Name; err == nil && missing[name] > 0 {
			_, err = t.Clients.AppsV1().ReplicaSets(found.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	for i := range found.StatefulSets {
		if name := found.StatefulSets[i].Name; err == nil && missing[name] > 0 {
			_, err = t.Clients.AppsV1().StatefulSets(found.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	return err
}

// expire removes what a budget holds against pods that exist again: a StatefulSet has created them before the
// disruption controller saw that those of the same names are gone. It removes that itself after two minutes
// (kubernetes pkg/controller/disruption, buildDisruptedPodMap), which a drain outlasts.
func (t *Trial) expire(ctx context.Context, found *lab.Cluster) error {
	for i := range found.Pods {
		pod := &found.Pods[i]
		for j := range found.Budgets {
			budget := &found.Budgets[j]
			evicted, held := budget.Status.DisruptedPods[pod.Name]
			if !held || pod.Namespace != budget.Namespace || pod.DeletionTimestamp != nil || pod.CreationTimestamp.Before(&evicted) {
				continue
			}
			patch := fmt.Appendf(nil, `{"status":{"disruptedPods":{%q:null}}}`, pod.Name)
			_, err := t.Clients.PolicyV1().PodDisruptionBudgets(budget.Namespace).Patch(ctx, budget.Name, types.MergePatchType, patch,
				metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// remind changes an annotation of pods that are overdue.
func (t *Trial) remind(ctx context.Context, found *lab.Cluster, since time.Duration) error {
	for i := range found.Pods {
		pod := &found.Pods[i]
		if since < overdue || !changing(pod) {
			continue
		}
		_, err := t.Clients.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, stamp(), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// stamp is a patch that changes an annotation.
func stamp() []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{"drain.test/time":%q}}}`, strconv.FormatInt(time.Now().UnixNano(), 10))
}

// quiet is how long nothing must have changed; 0 while something is known to change.
func (t *Trial) quiet(found *lab.Cluster) time.Duration {
	if t.busy(found) != "" {
		return 0
	}
	for i := range found.Jobs {
		if job := &found.Jobs[i]; lacks(job, found) && t.backedOff[job.Name] != job.Status.Failed+1 {
			return backOff
		}
	}
	for i := range found.Pods {
		if found.Pods[i].Spec.NodeName == "" {
			return long
		}
	}
	if len(found.Missing()) > 0 {
		return long
	}
	return short
}

// remember remembers the Jobs that create no pod after their back-off.
func (t *Trial) remember(found *lab.Cluster) {
	for i := range found.Jobs {
		if job := &found.Jobs[i]; lacks(job, found) {
			t.backedOff[job.Name] = job.Status.Failed + 1
		}
	}
}

// lacks reports whether a Job that has not ended has fewer pods than it is to have.
func lacks(job *batchv1.Job, found *lab.Cluster) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Type != batchv1.JobSuspended {
			return false
		}
	}
	pods := 0
	for i := range found.Pods {
		if pod := &found.Pods[i]; lab.ControllerOf(pod).Name == job.Name && !lab.Ended(pod) && pod.DeletionTimestamp == nil {
			pods++
		}
	}
	return pods < int(*job.Spec.Parallelism)
}

// busy is what is known to change, in words.
func (t *Trial) busy(found *lab.Cluster) string {
	if want, got := t.controllers(), len(found.ReplicaSets)+len(found.StatefulSets)+len(found.DaemonSets)+len(found.Jobs); got < want {
		return fmt.Sprintf("%d of %d controllers exist", got, want)
	}
	for i := range found.DaemonSets {
		if of := &found.DaemonSets[i]; of.Status.ObservedGeneration == 0 {
			return "DaemonSet " + of.Name
		}
	}
	for i := range found.Pods {
		if pod := &found.Pods[i]; changing(pod) {
			return "pod " + pod.Name
		}
		if pod := &found.Pods[i]; t.attaches(pod, found) {
			return "the volume of pod " + pod.Name
		}
	}
	for i := range found.ReplicaSets {
		if set := &found.ReplicaSets[i]; creates(set, found) {
			return "ReplicaSet " + set.Name
		}
	}
	for i := range found.Budgets {
		if !counted(&found.Budgets[i], found) {
			return "budget " + found.Budgets[i].Name
		}
	}
	return ""
}

// creates reports whether a ReplicaSet is about to create pods: it has fewer than it is to have, and none was
// refused. It counts no pod that is being deleted, and creates none once it is itself.
func creates(set *appsv1.ReplicaSet, found *lab.Cluster) bool {
	for _, condition := range set.Status.Conditions {
		if condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue {
			return false
		}
	}
	pods := 0
	for i := range found.Pods {
		if pod := &found.Pods[i]; lab.OwnerOf(pod) == set.Name && pod.DeletionTimestamp == nil && !lab.Ended(pod) {
			pods++
		}
	}
	return pods < int(*set.Spec.Replicas) && set.DeletionTimestamp == nil
}

// controllers is how many a user has created.
func (t *Trial) controllers() int {
	of := &t.Created
	return len(of.Deployments) + len(of.ReplicaSets) + len(of.StatefulSets) + len(of.DaemonSets) + len(of.Jobs)
}

// changing reports whether the scheduler, a kubelet or an operator is about to change a pod.
func changing(pod *corev1.Pod) bool {
	switch {
	case lab.Ended(pod) && pod.DeletionTimestamp == nil:
		return false
	case pod.DeletionTimestamp != nil:
		return len(pod.Finalizers) == 0 || pod.Finalizers[0] != lab.Foreign
	case pod.Spec.NodeName == "":
		return len(pod.Status.Conditions) == 0
	case pod.Status.Phase != corev1.PodRunning:
		return true
	}
	return !lab.Ready(pod) && pod.Annotations[lab.AnnotationReady] != lab.NeverReady && !sick(pod)
}

func sick(pod *corev1.Pod) bool {
	ordinal := pod.Annotations[lab.AnnotationSick]
	return ordinal != "" && ordinal == pod.Labels["apps.kubernetes.io/pod-index"]
}

// counted reports whether a budget counts its pods that are ready, and none that is evicted; those of controllers
// are expected. Of several budgets of a pod, the disruption controller computes one when the pod changes
// (kubernetes pkg/controller/disruption, getPdbForPod). The numbers of a status that cannot be computed are those
// before.
func counted(budget *policyv1.PodDisruptionBudget, found *lab.Cluster) bool {
	status := &budget.Status
	if len(status.Conditions) > 0 && status.Conditions[0].Reason == policyv1.SyncFailedReason {
		return true
	}
	healthy, managed := int32(0), false
	for i := range found.Pods {
		pod := &found.Pods[i]
		switch {
		case !selects(budget, pod):
			continue
		case selecting(found.Budgets, pod) > 1:
			return true
		}
		managed = managed || lab.ControllerOf(pod).Name != ""
		if lab.Ready(pod) && pod.DeletionTimestamp == nil {
			healthy++
		}
	}
	allowed := max(0, healthy-status.DesiredHealthy)
	if status.ExpectedPods == 0 {
		allowed = 0
	}
	return status.ObservedGeneration == budget.Generation && status.CurrentHealthy == healthy && (!managed || status.ExpectedPods > 0) &&
		len(status.DisruptedPods) == 0 && status.DisruptionsAllowed == allowed
}

// selecting counts the budgets of a pod.
func selecting(budgets []policyv1.PodDisruptionBudget, pod *corev1.Pod) int {
	number := 0
	for i := range budgets {
		if selects(&budgets[i], pod) {
			number++
		}
	}
	return number
}

func selects(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	return pod.Namespace == budget.Namespace && labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels))
}

// awaitStart waits until the pods that are created at last run, or have no node. A limit may refuse some.
func (t *Trial) awaitStart(ctx context.Context) error {
	limited := len(t.Created.Quotas)+len(t.Created.Limits) > 0
	for began := time.Now(); ; {
		found := t.read()
		missing := t.unstarted(&found)
		if missing <= 0 || time.Since(began) > long && limited {
			return nil
		}
		if time.Since(began) > patient {
			return fmt.Errorf("%d pods do not start\n%s", missing, &found)
		}
		if err := t.watched.pause(ctx, t.Created.Namespace, poll); err != nil {
			return err
		}
	}
}

// unstarted counts the pods that are created at last and neither run nor were tried to be placed.
func (t *Trial) unstarted(found *lab.Cluster) int {
	missing, starting := 0, map[string]bool{}
	for i := range t.Created.Starting {
		missing += int(*t.Created.Starting[i].Spec.Replicas)
		starting[t.Created.Starting[i].Name] = true
	}
	for i := range found.Pods {
		pod := &found.Pods[i]
		if starting[pod.Labels["app"]] && (pod.Status.Phase == corev1.PodRunning || pod.Spec.NodeName == "" && len(pod.Status.Conditions) > 0) {
			missing--
		}
	}
	return missing
}
