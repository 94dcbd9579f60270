package sample

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/baseline"
)

const (
	// leastLife is how long a pod counts at least, in days, so that the first restarts of a new pod are no high rate.
	leastLife = 1.0
	// steadily is how many restarts in an hour are some that have not ended since the pod began.
	steadily = 1.0
	// restarts and recently are when a container that runs counts as one that restarts again and again.
	restarts = 3
	recently = 15 * time.Minute
)

// waitingReason is the reason of the problem of a container that waits for a reason; empty for none.
func waitingReason(of string) string {
	switch of {
	case "CrashLoopBackOff":
		return "CrashLoopBackOff"
	case "ImagePullBackOff", "ErrImagePull", "InvalidImageName":
		return "ImagePullBackOff"
	case "CreateContainerError", "CreateContainerConfigError", "RunContainerError":
		return "CreateContainerError"
	}
	return ""
}

// podStates are the pods of one workload.
type podStates struct {
	now      time.Time
	problems map[string]*podProblem
	restarts int64
	life     float64
	// count is how many there are, and ready how many of them; unready is since when one is not.
	count, ready int32
	// claims are the claims of their volumes.
	claims  map[string]bool
	unready time.Time
}

// podProblem is one problem of pods of a workload.
type podProblem struct {
	// pods are how many have it; first is the name of the first one, and since when the earliest one has it.
	pods  int
	first string
	since time.Time
	// node is the node of all; empty if there are several.
	node string
}

// add adds a pod that has neither ended nor is being deleted.
func (p *podStates) add(pod *corev1.Pod) {
	p.count++
	p.use(pod)
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	switch {
	case at >= 0 && pod.Status.Conditions[at].Status == corev1.ConditionTrue:
		p.ready++
	case at >= 0 && pod.Status.Conditions[at].LastTransitionTime.After(p.unready):
		p.unready = pod.Status.Conditions[at].LastTransitionTime.UTC()
	}
	started := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
	}
	p.life += max(p.now.Sub(started).Hours()/24, leastLife)
	var count int64
	for _, of := range disturbed(pod) {
		count += int64(of.RestartCount)
	}
	p.restarts += count
	created := pod.CreationTimestamp.UTC()
	for reason := range p.reasonsOf(pod) {
		since := time.Time{} // a pod that has run does not state it
		switch {
		case reason == "Restarting":
			if float64(count) >= steadily*p.now.Sub(started).Hours() { // otherwise the restarts of long ago may be others
				since = started.UTC()
			}
		case !hasRestarted(pod):
			since = created
		}
		p.note(reason, pod, since)
	}
}

// use notes the claims of the volumes of a pod.
func (p *podStates) use(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		of := pod.Spec.Volumes[i].PersistentVolumeClaim
		if of == nil {
			continue
		}
		if p.claims == nil {
			p.claims = map[string]bool{}
		}
		p.claims[of.ClaimName] = true
	}
}

// unreadySince is since when a pod is not ready; zero where none states it.
func (p *podStates) unreadySince() time.Time { return p.unready }

// reasonsOf are the reasons of the problems that a pod has.
func (p *podStates) reasonsOf(pod *corev1.Pod) map[string]bool {
	found := map[string]bool{}
	creating := false
	containers := disturbed(pod)
	for i := range containers {
		of := &containers[i]
		if ended := of.LastTerminationState.Terminated; of.RestartCount >= restarts && ended != nil &&
			p.now.Sub(ended.FinishedAt.Time) <= recently {
			found["Restarting"] = true
		}
		if of.State.Waiting == nil {
			continue
		}
		waits := of.State.Waiting.Reason
		if reason := waitingReason(waits); reason != "" {
			found[reason] = true
		}
		creating = creating || waits == "ContainerCreating" || waits == "PodInitializing"
	}
	switch {
	case pod.Status.Phase != corev1.PodPending:
	case pod.Spec.NodeName == "" && isUnschedulable(pod):
		found["Unschedulable"] = true
	case pod.Spec.NodeName != "" && creating && len(found) == 0:
		found["ContainerCreating"] = true
	}
	return found
}

// disturbed are the containers of a pod that wait or have restarted, init containers first.
func disturbed(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// isUnschedulable is false for a pod that is new, or is not to be scheduled by choice.
func isUnschedulable(pod *corev1.Pod) bool {
	for _, each := range pod.Status.Conditions {
		if each.Type == corev1.PodScheduled {
			return each.Status == corev1.ConditionFalse && each.Reason != corev1.PodReasonSchedulingGated
		}
	}
	return false
}

func hasRestarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(disturbed(pod), func(of corev1.ContainerStatus) bool { return of.RestartCount > 0 })
}

func (p *podStates) note(reason string, pod *corev1.Pod, since time.Time) {
	if p.problems == nil {
		p.problems = map[string]*podProblem{}
	}
	of := p.problems[reason]
	if of == nil {
		of = &podProblem{first: pod.Name, since: since, node: pod.Spec.NodeName}
		p.problems[reason] = of
	}
	of.pods++
	if of.node != pod.Spec.NodeName {
		of.node = ""
	}
	if !since.IsZero() && (of.since.IsZero() || since.Before(of.since)) {
		of.since = since
	}
}

// into adds what the pods state to their workload, of a namespace.
func (p *podStates) into(object *baseline.Object, namespace string) {
	for _, claim := range slices.Sorted(maps.Keys(p.claims)) {
		object.Refs = append(object.Refs, baseline.Key{Kind: baseline.PersistentVolumeClaim, Namespace: namespace, Name: claim})
	}
	object.Restarted = p.restarts
	if p.life > 0 {
		object.Restarts = float64(p.restarts) / p.life
	}
	for reason, of := range p.problems {
		object.Add(baseline.Problem{Reason: reason, Since: of.since, Node: of.node, Message: of.message(reason)})
	}
}

func (p *podProblem) message(reason string) string {
	if p.pods == 1 {
		return "pod " + p.first + " " + predicate(reason, "has", "is")
	}
	return fmt.Sprintf("%d pods %s, such as pod %s", p.pods, predicate(reason, "have", "are"), p.first)
}

// predicate describes pods with a problem.
func predicate(reason, has, is string) string {
	switch reason {
	case "Restarting":
		return fmt.Sprintf("%s a container with %d restarts or more, the last one within %d minutes", has, restarts, int(recently.Minutes()))

	case "Unschedulable":
		return is + " not scheduled to a node"
	case "ContainerCreating":
		return has + " a node, and containers that have not started"
	}
	return has + " a container that waits: " + reason
}
