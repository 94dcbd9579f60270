package jobs

import (
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/words"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// grace is how long to put up with what may pass by itself: a registry that
	// has no time, a quota that another pod is about to free.
	grace = 90 * time.Second
	// settleTime is how far the watch on pods may be behind that on Jobs.
	settleTime = 5 * time.Second
	// toTheEnd is the patience with what is worth waiting for until the time is
	// up.
	toTheEnd = time.Duration(-1)

	defect = "This is a defect of the check: report it to its owners."
)

// obstacle is what keeps a check from an answer.
type obstacle struct {
	// cause is a CamelCase word, detail a clause for people.
	cause, detail string
	remedy        string
	// patience is how long it may last; 0 is not at all.
	patience time.Duration
}

// held waits as long as there is patience with the obstacle.
func (o Observation) held(why obstacle) Reading {
	reading := Reading{State: Waiting, Detail: why.detail, Cause: why.cause, remedy: why.remedy}
	if why.patience == toTheEnd {
		reading.Idle = o.untouched()
		return reading
	}
	waited := time.Duration(0)
	if o.Cause == why.cause {
		waited = o.Waited
	}
	if waited >= why.patience {
		return o.unknown(why)
	}
	reading.Recheck = why.patience - waited
	return reading
}

// untouched is true when a Job has one pod, of which nothing has ever run.
func (o Observation) untouched() bool {
	if len(o.Pods) != 1 || o.Pods[0].Gone {
		return false
	}
	status := o.Pods[0].Status
	return !slices.ContainsFunc(slices.Concat(status.InitContainerStatuses, status.ContainerStatuses), func(container corev1.ContainerStatus) bool {
		return container.State.Running != nil || container.State.Terminated != nil || container.LastTerminationState.Terminated != nil
	})
}

// lingers is true for a Job that was created and is not about to end by itself:
// its pod does not get to run or to its end, or the Job is going to try again.
// The watch may report the pod before it reports the Job.
func (o Observation) lingers() bool {
	pod, born := o.newest()
	switch {
	case o.Deleted || o.condition() != nil:
		return false
	case !born || pod.Gone:
		return true
	}
	current := status(o.Check, pod)
	if current == nil || current.State.Terminated == nil {
		return true
	}
	if code := current.State.Terminated.ExitCode; code != 0 {
		return !lastCode(o.Check.Job.Spec, code)
	}
	return others(o.Check, pod) != othersPassed
}

// lastCode is true for an exit code after which a Job does not try again.
func lastCode(spec batchv1.JobSpec, code int32) bool {
	if spec.BackoffLimit != nil && *spec.BackoffLimit == 0 {
		return true
	}
	return spec.PodFailurePolicy != nil && slices.ContainsFunc(spec.PodFailurePolicy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
		return rule.Action == batchv1.PodFailurePolicyActionFailJob && rule.OnExitCodes != nil &&
			rule.OnExitCodes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Contains(rule.OnExitCodes.Values, code)
	})
}

// unstarted answers for a check that was waiting for its turn when the time was
// up: for the first time, or again after last.
func (o Observation) unstarted(last Reading) Reading {
	if last.Cause != "" {
		return o.expired(last)
	}
	return o.unknown(obstacle{
		cause: "NotStarted", detail: "time is up: the check had to wait until other checks end, and was never started",
		remedy: "Run the preflight again with a longer --timeout or a higher --parallelism.",
	})
}

// doing says what the last attempt was about when it came to an end.
func (o Observation) doing() string {
	pod, ok := o.newest()
	if !ok {
		return o.unborn().detail
	}
	return o.underway(pod).Detail
}

// underway is about a Job whose last pod has not answered.
func (o Observation) underway(pod Pod) Reading {
	if why := o.failure(pod); why != nil {
		why.detail += "; the Job tries again"
		why.patience = toTheEnd
		return o.held(*why)
	}
	if why, ok := o.inTheWay(pod); ok {
		return o.held(why)
	}
	current := status(o.Check, pod)
	switch {
	case pod.Gone:
		return Reading{State: Waiting, Detail: "its pod is gone, and another one has not been seen yet"}
	case current != nil && current.State.Running != nil:
		return Reading{State: Running, Detail: "the check is running"}
	case ending(o.Check, pod) != nil:
		end := ending(o.Check, pod)
		return Reading{
			State: Waiting, Cause: "AttemptFailed", remedy: "Put right what the check says, or run the preflight again with a longer --timeout.",
			Detail: sentence(fmt.Sprintf("attempt %d ended with exit code %d, and the Job has not given up", o.job().Attempts, end.ExitCode), lastLines(end, o.logOf(pod))),
		}
	case pod.Spec.NodeName == "":
		return Reading{State: Waiting, Detail: "its pod waits for the scheduler", Cause: "Unscheduled", remedy: "See whether the scheduler runs: oc -n openshift-kube-scheduler get pods"}
	}
	return Reading{State: Waiting, Detail: "its container is being created on node " + pod.Spec.NodeName}
}

// failure is why an attempt ended without any fault of the check; nil when it
// did not.
func (o Observation) failure(pod Pod) *obstacle {
	if why := disruption(pod); why != nil {
		return why
	}
	for _, container := range pod.Status.InitContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 {
			return &obstacle{
				cause:  "InitFailed",
				detail: sentence(fmt.Sprintf("init container %q ended with exit code %d", container.Name, end.ExitCode), tail(end.Message)),
				remedy: fmt.Sprintf("Put right what it says, or report it to the owners of component %q.", o.Check.Component),
			}
		}
	}
	main := ending(o.Check, pod)
	for _, container := range pod.Status.ContainerStatuses {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 && main != nil && main.ExitCode == 0 {
			return &obstacle{
				cause:  "ContainerFailed",
				detail: sentence(fmt.Sprintf("container %q, beside the check, ended with exit code %d", container.Name, end.ExitCode), tail(end.Message)),
				remedy: defect,
			}
		}
	}
	return nil
}

// disruption is why a pod was put to an end by the cluster: an eviction, a
// drain, a preemption, a node that is lost. Not counted as an attempt by the
// Jobs we start (podFailurePolicy).
func disruption(pod Pod) *obstacle {
	remedy := "Wait until nodes are neither drained nor short of resources, then run the preflight again: oc get nodes"
	if pod.Status.Reason == "Evicted" {
		return &obstacle{cause: "Evicted", remedy: remedy, detail: sentence("its pod was evicted from node "+pod.Spec.NodeName, words.Line(pod.Status.Message, maxLine))}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return &obstacle{
				cause: "Disrupted", remedy: remedy,
				detail: sentence("its pod was put to an end by "+condition.Reason, words.Line(condition.Message, maxLine)),
			}
		}
	}
	return nil
}

// interrupted is true for a pod that did not come to its own end.
func interrupted(pod Pod) bool {
	return pod.DeletionTimestamp != nil || disruption(pod) != nil
}

func outOfMemory(container string) obstacle {
	return obstacle{
		cause:  reasonOOM,
		detail: fmt.Sprintf("container %q was killed because it ran out of memory", container),
		remedy: "Report it to the owners of the check: it needs a higher memory limit. If the node was short of memory, make room and run the preflight again.",
	}
}

func badResult(problem string) obstacle {
	return obstacle{cause: "BadResult", detail: sentence("the result that the check left cannot be used", words.Line(problem, maxLine)), remedy: defect}
}

func (o Observation) noResult(exitCode int32) obstacle {
	detail := fmt.Sprintf("the check ended with exit code %d%s and left no final result", exitCode, o.attempts())
	if o.Log != nil && o.Log.Problem != "" {
		detail += "; its log could not be read: " + words.Line(o.Log.Problem, maxLine)
	}
	return obstacle{cause: "NoResult", detail: detail, remedy: defect}
}
