// Package jobwatch answers: what is the state of a run's Jobs, and which check may create its Job?
//
// [Start] returns the [Tracker] of a run. All state comes from one list and watch each of Jobs, pods and events, which
// all checks share; a watch that was interrupted or whose resourceVersion expired starts again with a list.
package jobwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// The watched resources.
const (
	watchJobs   = "Jobs"
	watchPods   = "pods"
	watchEvents = "events"
)

// Tracker holds the observed state of the Jobs of a run, from one watch each on
// Jobs, pods and warning events, and advances the queue when a Job finishes.
type Tracker struct {
	// indexes maps the Jobs to their positions in the plan; immutable.
	indexes map[types.NamespacedName]int
	// Failures are the requests that fail at present.
	Failures *failures
	// Evicted are checks with findings whose Job has to be deleted, because other checks wait for its capacity.
	Evicted chan jobplan.Check

	mutex sync.Mutex
	jobs  []trackedJob
	queue *queue
	lists int
}

// newTracker returns a tracker without observed objects. uid returns the UID of the
// Job of a check that exists already.
func newTracker(plan jobplan.Plan, uid func(jobplan.Check) types.UID, parallelism int, denied context.CancelCauseFunc) *Tracker {
	t := &Tracker{
		indexes: map[types.NamespacedName]int{}, Failures: &failures{denied: denied, failing: map[string]error{}},
		Evicted: make(chan jobplan.Check, len(plan.Checks)), jobs: make([]trackedJob, len(plan.Checks)),
	}
	series := make([]string, len(plan.Checks))
	for i, check := range plan.Checks {
		t.indexes[nameOf(check.Job)] = i
		t.jobs[i] = trackedJob{check: check, uid: uid(check), changed: make(chan struct{}, 1)}
		if check.Serial {
			series[i] = check.Component
		}
	}
	t.queue = newQueue(parallelism, series)
	return t
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (t *Tracker) listBegins(resource string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if resource == watchJobs {
		t.lists++
	}
}

func (t *Tracker) apply(state objectState) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.observed(state)
	t.advance()
}

// replace records all existing objects of a resource: what is not among them no longer exists.
func (t *Tracker) replace(resource string, objects []any) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	existing := map[types.UID]bool{}
	for _, object := range objects {
		if object, ok := object.(metav1.Object); ok && resource != watchEvents {
			existing[object.GetUID()] = true
		}
		t.observed(objectState{object: object})
	}
	for i := range t.jobs {
		switch resource {
		case watchJobs:
			if t.jobs[i].markDeleted(existing, t.lists) {
				t.queue.free(i)
			}
		case watchPods:
			t.jobs[i].markPodsGone(existing)
		}
	}
	t.advance()
}

// ReplacePods records all existing pods of a Job, including pods that the watch does not select.
func (t *Tracker) ReplacePods(i int, pods []corev1.Pod) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	existing := map[types.UID]bool{}
	for at := range pods {
		existing[pods[at].UID] = true
		t.jobs[i].observedPod(diagnosis.Pod{Pod: trimPod(&pods[at])})
	}
	t.jobs[i].markPodsGone(existing)
}

func (t *Tracker) observed(state objectState) {
	switch object := state.object.(type) {
	case *batchv1.Job:
		t.observedJob(object, state)
	case *corev1.Pod:
		controller := metav1.GetControllerOfNoCopy(object)
		if controller == nil {
			return
		}
		if i, ok := t.indexes[types.NamespacedName{Namespace: object.Namespace, Name: controller.Name}]; ok {
			t.jobs[i].observedPod(diagnosis.Pod{Pod: object, Gone: state.gone})
		}
	case *corev1.Event:
		if i, ok := involvedJob(object, t.indexes); ok && !state.gone {
			t.jobs[i].observedWarning(object)
		}
	}
}

func (t *Tracker) observedJob(job *batchv1.Job, state objectState) {
	i, ok := t.indexes[nameOf(job)]
	if !ok {
		return
	}
	tracked := &t.jobs[i]
	if job.UID != tracked.uid {
		tracked.unconfirmed = state
		return
	}
	tracked.job, tracked.deleted = job, state.gone
	if state.gone || tracked.over || !unfinished(job) {
		t.queue.free(i)
	} else {
		t.queue.take(i)
	}
	tracked.notify()
}

// unfinished follows Kubernetes: a Job is finished with the condition Complete or
// Failed, which it gets when all its pods have terminated. A suspended Job has no
// pods.
func unfinished(job *batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return false
		}
	}
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend && job.Status.Active == 0
	return !suspended
}

// advance starts the queued checks for which there is capacity, and evicts Jobs for those without.
func (t *Tracker) advance() {
	for _, i := range t.queue.start() {
		t.jobs[i].queued, t.jobs[i].granted = false, true
		t.jobs[i].notify()
	}
	for _, i := range t.queue.evict() {
		t.Evicted <- t.jobs[i].check // the buffer has room for each check once
	}
}

// EnqueueAll enqueues the checks in the order of the plan, without those whose Job
// exists and those that have findings.
func (t *Tracker) EnqueueAll(hasFindings func(jobplan.Check) bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for i := range t.jobs {
		if t.jobs[i].job == nil && !hasFindings(t.jobs[i].check) {
			t.jobs[i].queued = true
			t.queue.join(i)
		}
	}
	t.advance()
}

// Enqueue enqueues a check unless it is queued or granted. False means that its Job exists.
func (t *Tracker) Enqueue(i int) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	tracked := &t.jobs[i]
	if tracked.job != nil && !tracked.deleted {
		return false
	}
	if !tracked.queued && !tracked.granted {
		tracked.queued = true
		t.queue.join(i)
		t.advance()
	}
	return true
}

// Granted is true when a check may create its Job; the channel signals changes.
func (t *Tracker) Granted(i int) (bool, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.jobs[i].granted, t.jobs[i].changed
}

// Created records the UID of a Job that has just been created or adopted. Its first
// states may have been observed before.
func (t *Tracker) Created(i int, uid types.UID) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	tracked := &t.jobs[i]
	tracked.uid, tracked.createdAt = uid, max(1, t.lists)
	early := tracked.unconfirmed
	tracked.unconfirmed = objectState{}
	if job, ok := early.object.(*batchv1.Job); ok && job.UID == uid {
		t.observedJob(job, early)
		t.advance()
	}
}

// Reset forgets a Job that no longer exists, so that another can replace it.
func (t *Tracker) Reset(i int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	tracked := &t.jobs[i]
	tracked.job, tracked.deleted, tracked.pods, tracked.warnings, tracked.createdAt, tracked.granted = nil, false, nil, nil, 0, false
	tracked.uid, tracked.unconfirmed = "", objectState{}
}

// Settle records that a check has its findings, and drops its state. It frees the capacity of a Job that was never
// created, and of a Job whose containers have terminated and which creates no further pod, even if it does not have the
// condition Complete or Failed yet.
func (t *Tracker) Settle(i int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	tracked := &t.jobs[i]
	observed := tracked.observation("")
	tracked.over = observed.Over()
	if tracked.over || tracked.job == nil && tracked.createdAt == 0 {
		t.queue.free(i)
	}
	if observed.Lingers() {
		t.queue.release(i)
	}
	tracked.settled, tracked.pods, tracked.warnings = true, nil, nil
	t.advance()
}

// Contended is true when others wait for the capacity of a check.
func (t *Tracker) Contended(i int) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.queue.contended(i)
}

// Observe returns the observed state of the Job of a check, and a channel that signals changes of it.
func (t *Tracker) Observe(i int) (diagnosis.Observation, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.jobs[i].observation(t.Failures.String()), t.jobs[i].changed
}

type failures struct {
	// denied cancels the start of the watches with the first error that a retry cannot fix.
	denied context.CancelCauseFunc

	mutex   sync.Mutex
	failing map[string]error
}

// watchResult records whether a watch works.
func (f *failures) watchResult(resource string, err error) {
	if resource != watchEvents && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		f.denied(err)
	}
	f.Record("the watch on "+resource, err)
}

func (f *failures) Record(operation string, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.failing, operation)
	if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		f.failing[operation] = err
	}
}

func (f *failures) String() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var texts []string
	for _, operation := range slices.Sorted(maps.Keys(f.failing)) {
		texts = append(texts, fmt.Sprintf("%s: %v", operation, f.failing[operation]))
	}
	return strings.Join(texts, "; ")
}

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
