package jobwatch

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// maxWarnings bounds the events that are kept per Job.
const maxWarnings = 20

type trackedJob struct {
	check jobplan.Check
	// uid is the UID of the Job of the run; empty before it was created or adopted.
	// unconfirmed is the last state of the Job of that name with another UID: it is
	// of the run if that UID is confirmed.
	uid         types.UID
	unconfirmed objectState

	job      *batchv1.Job
	deleted  bool
	pods     []diagnosis.Pod
	warnings []*corev1.Event
	// createdAt is the count of lists begun when the Job had just been created; 0 before.
	createdAt int
	// queued is true while the check waits in the queue, granted while it may
	// create its Job, settled when it has its findings, and over when its Job has no
	// container and makes none.
	queued, granted, settled, over bool
	// changed has a value when something changed since it was last received from.
	changed chan struct{}
}

func (j *trackedJob) observedPod(pod diagnosis.Pod) {
	if j.settled {
		return
	}
	defer j.notify()
	for i := range j.pods {
		if j.pods[i].UID == pod.UID {
			j.pods[i] = pod
			return
		}
	}
	j.pods = append(j.pods, pod)
	slices.SortStableFunc(j.pods, func(a, b diagnosis.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

func (j *trackedJob) observedWarning(event *corev1.Event) {
	if j.settled {
		return
	}
	j.warnings = slices.DeleteFunc(j.warnings, func(known *corev1.Event) bool { return known.UID == event.UID })
	j.warnings = append(j.warnings, event)
	j.warnings = j.warnings[max(0, len(j.warnings)-maxWarnings):]
	j.notify()
}

func (j *trackedJob) ownPods() []diagnosis.Pod {
	var own []diagnosis.Pod
	for _, pod := range j.pods {
		if controller := metav1.GetControllerOfNoCopy(pod); j.uid != "" && controller != nil && controller.UID == j.uid {
			own = append(own, pod)
		}
	}
	return own
}

// ownWarnings are the warnings without those about another Job of the name.
func (j *trackedJob) ownWarnings() []*corev1.Event {
	return slices.DeleteFunc(slices.Clone(j.warnings), func(event *corev1.Event) bool {
		involved := event.InvolvedObject
		return involved.Kind == "Job" && involved.UID != "" && involved.UID != j.uid
	})
}

// markDeleted handles a Job that a list does not contain: it is deleted if it was
// observed, or created, before the last of these lists was begun. True means that it is
// deleted now.
func (j *trackedJob) markDeleted(existing map[types.UID]bool, lists int) bool {
	observed := j.job != nil && !existing[j.job.UID]
	created := j.job == nil && j.createdAt > 0 && j.createdAt < lists
	if j.deleted || !observed && !created {
		return false
	}
	j.deleted = true
	j.notify()
	return true
}

func (j *trackedJob) markPodsGone(existing map[types.UID]bool) {
	for at := range j.pods {
		if pod := &j.pods[at]; !pod.Gone && !existing[pod.UID] {
			pod.Gone = true
			j.notify()
		}
	}
}

// observation is the observed state; failures are the requests that fail at present.
func (j *trackedJob) observation(failures string) diagnosis.Observation {
	return diagnosis.Observation{
		Check: j.check, Job: j.job, Deleted: j.deleted, Pods: j.ownPods(), Warnings: j.ownWarnings(), APIErrors: failures,
	}
}

func (j *trackedJob) notify() {
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

// objectState is the last state of an object, which no longer exists if gone.
type objectState struct {
	object any
	gone   bool
}
