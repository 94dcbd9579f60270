package jobs

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/runner/jobplan"
)

// The watched resources.
const (
	watchJobs   = "Jobs"
	watchPods   = "pods"
	watchEvents = "events"
)

// tracker holds the observed state of the Jobs of a run, from one watch each on
// Jobs, pods and warning events, and advances the queue when a Job finishes.
type tracker struct {
	// indexes are those of the Jobs in the plan; immutable.
	indexes map[types.NamespacedName]int
	// failures are the requests that fail at present.
	failures *failures
	// evicted are checks with findings whose Job has to be deleted, because other
	// checks wait for its capacity.
	evicted chan jobplan.Check

	mutex sync.Mutex
	jobs  []trackedJob
	queue *queue
	// lists counts the lists of Jobs that were begun.
	lists int
}

// newTracker returns a tracker without observed objects. uid returns the UID of the
// Job of a check that exists already.
func newTracker(plan jobplan.Plan, uid func(jobplan.Check) types.UID, parallelism int, denied context.CancelCauseFunc) *tracker {
	t := &tracker{
		indexes: map[types.NamespacedName]int{}, failures: &failures{denied: denied, failing: map[string]error{}},
		evicted: make(chan jobplan.Check, len(plan.Checks)), jobs: make([]trackedJob, len(plan.Checks)),
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

// listBegins records that a list of the resource is requested.
func (t *tracker) listBegins(resource string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if resource == watchJobs {
		t.lists++
	}
}

// apply records the last state of an object.
func (t *tracker) apply(state objectState) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.observed(state)
	t.advance()
}

// replace records all existing objects of a resource: what is not among them no
// longer exists.
func (t *tracker) replace(resource string, objects []any) {
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

// replacePods records all existing pods of a Job.
func (t *tracker) replacePods(i int, pods []corev1.Pod) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	existing := map[types.UID]bool{}
	for at := range pods {
		existing[pods[at].UID] = true
		t.jobs[i].observedPod(Pod{Pod: trimPod(&pods[at])})
	}
	t.jobs[i].markPodsGone(existing)
}

// observed records the last state of one object.
func (t *tracker) observed(state objectState) {
	switch object := state.object.(type) {
	case *batchv1.Job:
		t.observedJob(object, state)
	case *corev1.Pod:
		job := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[batchv1.JobNameLabel]}
		if i, ok := t.indexes[job]; ok {
			t.jobs[i].observedPod(Pod{Pod: object, Gone: state.gone})
		}
	case *corev1.Event:
		if i, ok := involvedJob(object, t.indexes); ok && !state.gone {
			t.jobs[i].observedWarning(object)
		}
	}
}

func (t *tracker) observedJob(job *batchv1.Job, state objectState) {
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

// advance starts the queued checks for which there is capacity, and evicts Jobs
// for those without.
func (t *tracker) advance() {
	for _, i := range t.queue.start() {
		t.jobs[i].queued, t.jobs[i].granted = false, true
		t.jobs[i].notify()
	}
	for _, i := range t.queue.evict() {
		t.evicted <- t.jobs[i].check // the buffer has room for each check once
	}
}

// enqueueAll enqueues the checks in the order of the plan, without those whose Job
// exists and those that have findings.
func (t *tracker) enqueueAll(hasFindings func(jobplan.Check) bool) {
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

// enqueue enqueues a check unless it is queued or granted. False means that its
// Job exists.
func (t *tracker) enqueue(i int) bool {
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

// granted is true when a check may create its Job; the channel signals changes.
func (t *tracker) granted(i int) (bool, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.jobs[i].granted, t.jobs[i].changed
}

// created records the UID of a Job that has just been created or adopted. Its first
// states may have been observed before.
func (t *tracker) created(i int, uid types.UID) {
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

// reset forgets a Job that no longer exists, so that another can replace it.
func (t *tracker) reset(i int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	tracked := &t.jobs[i]
	tracked.job, tracked.deleted, tracked.pods, tracked.warnings, tracked.createdAt, tracked.granted = nil, false, nil, nil, 0, false
	tracked.uid, tracked.unconfirmed = "", objectState{}
}

// settle records that a check has its findings, and drops its state. The capacity of a Job
// that was never created is freed, and so is that of one whose containers have ended and
// which makes no further pod, although it does not have the condition Complete or Failed yet.
func (t *tracker) settle(i int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	tracked := &t.jobs[i]
	observed := tracked.observation("")
	tracked.over = observed.over()
	if tracked.over || tracked.job == nil && tracked.createdAt == 0 {
		t.queue.free(i)
	}
	if observed.lingers() {
		t.queue.release(i)
	}
	tracked.settled, tracked.pods, tracked.warnings = true, nil, nil
	t.advance()
}

// contended is true when others wait for the capacity of a check.
func (t *tracker) contended(i int) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.queue.contended(i)
}

// observe returns the observed state of the Job of a check, and a channel that
// signals changes of it.
func (t *tracker) observe(i int) (Observation, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.jobs[i].observation(t.failures.String()), t.jobs[i].changed
}
