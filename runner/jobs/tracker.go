package jobs

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

	"github.com/openshift/update-preflight/runner/launch"
)

// maxWarnings bounds the events that are kept for one Job.
const maxWarnings = 20

// follower keeps what one watch on Jobs, one on pods and one on warnings say
// about the Jobs of a run, and has the queue move on when one is finished.
type follower struct {
	// places are those of the Jobs in the plan; never changed.
	places map[types.NamespacedName]int
	// refused is closed over by the watches: it takes the first error that no
	// waiting makes better.
	refused context.CancelCauseFunc
	// dismissed are the Jobs that nobody waits for, while others wait for their
	// place.
	dismissed chan launch.Check

	mutex sync.Mutex
	jobs  []followed
	queue *queue
	// lists counts the lists of Jobs that were begun.
	lists int
	// trouble is what does not work for now, by what it is about.
	trouble map[string]error
}

// followed is what is known about one Job.
type followed struct {
	check    launch.Check
	job      *batchv1.Job
	deleted  bool
	pods     []Pod
	warnings []*corev1.Event
	// asked counts the lists begun when the Job had just been created; 0 before.
	asked int
	// former is the Job that this one stands in for.
	former types.UID
	// queued is true while the check waits for its turn, granted while it has it,
	// answered when all is over.
	queued, granted, answered bool
	// changed has a value when something changed since it was last read.
	changed chan struct{}
}

func newFollower(plan launch.Plan, parallelism int, refused context.CancelCauseFunc) *follower {
	f := &follower{
		places: map[types.NamespacedName]int{}, refused: refused, dismissed: make(chan launch.Check, len(plan.Checks)),
		jobs: make([]followed, len(plan.Checks)), trouble: map[string]error{},
	}
	series := make([]string, len(plan.Checks))
	for i, check := range plan.Checks {
		f.places[nameOf(check.Job)] = i
		f.jobs[i] = followed{check: check, changed: make(chan struct{}, 1)}
		if check.Serial {
			series[i] = check.Component
		}
	}
	f.queue = newQueue(parallelism, series)
	return f
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// begin takes note of a list that is asked for.
func (f *follower) begin(what string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if what == watchJobs {
		f.lists++
	}
}

// outcome takes note of whether a watch works.
func (f *follower) outcome(what string, err error) {
	if what != watchEvents && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		f.refused(err)
	}
	f.report("the watch on "+what, err)
}

// report takes note of what works, or does not.
func (f *follower) report(what string, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.trouble, what)
	if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		f.trouble[what] = err
	}
}

// slim is an object without what nobody reads. Of an event about others, of which
// there may be many thousands, only the name is left.
func (f *follower) slim(object any) any {
	switch object := object.(type) {
	case *batchv1.Job:
		return slimJob(object)
	case *corev1.Pod:
		return slimPod(object)
	case *corev1.Event:
		if _, ours := f.about(object); !ours {
			return &corev1.Event{ObjectMeta: slimMeta(object.ObjectMeta)}
		}
		return slimEvent(object)
	}
	return object
}

// about finds the Job that an event is about. The names of pods are the Job's
// with a dash and five characters more.
func (f *follower) about(event *corev1.Event) (int, bool) {
	name := event.InvolvedObject.Name
	if event.InvolvedObject.Kind == "Pod" {
		name = name[:max(0, strings.LastIndex(name, "-"))]
	}
	i, ok := f.places[types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: name}]
	return i, ok
}

// show takes note of an object that is there.
func (f *follower) show(object any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.note(sight{object: object})
	f.proceed()
}

// gone takes note of an object that is not there any more, in its last state.
func (f *follower) gone(object any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.note(sight{object: object, gone: true})
	f.proceed()
}

// replace takes note of all that is there. What is not among it is gone.
func (f *follower) replace(what string, objects []any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	there := map[types.UID]bool{}
	for _, object := range objects {
		if object, ok := object.(metav1.Object); ok && what != watchEvents {
			there[object.GetUID()] = true
		}
		f.note(sight{object: object})
	}
	for i := range f.jobs {
		switch what {
		case watchJobs:
			f.missJob(i, there)
		case watchPods:
			f.missPods(i, there)
		}
	}
	f.proceed()
}

// list takes note of all pods that a Job has.
func (f *follower) list(i int, pods []corev1.Pod) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	there := map[types.UID]bool{}
	for at := range pods {
		there[pods[at].UID] = true
		f.jobs[i].notePod(Pod{Pod: slimPod(&pods[at])})
	}
	f.missPods(i, there)
}

// missJob takes note of a Job that a list does not have: it is gone if it was
// seen, or created, before the list was begun.
func (f *follower) missJob(i int, there map[types.UID]bool) {
	known := &f.jobs[i]
	seen := known.job != nil && !there[known.job.UID]
	created := known.job == nil && known.asked > 0 && known.asked < f.lists
	if !known.deleted && (seen || created) {
		known.deleted = true
		f.queue.free(i)
		known.wake()
	}
}

func (f *follower) missPods(i int, there map[types.UID]bool) {
	known := &f.jobs[i]
	for at := range known.pods {
		if pod := &known.pods[at]; !pod.Gone && !there[pod.UID] {
			pod.Gone = true
			known.wake()
		}
	}
}

// sight is an object as it was seen last. It is not there any more if it is
// gone.
type sight struct {
	object any
	gone   bool
}

// note takes note of one object.
func (f *follower) note(seen sight) {
	switch object := seen.object.(type) {
	case *batchv1.Job:
		f.noteJob(object, seen)
	case *corev1.Pod:
		job := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[batchv1.JobNameLabel]}
		if i, ok := f.places[job]; ok {
			f.jobs[i].notePod(Pod{Pod: object, Gone: seen.gone})
		}
	case *corev1.Event:
		if i, ok := f.about(object); ok && !seen.gone {
			f.jobs[i].warn(object)
		}
	}
}

func (f *follower) noteJob(job *batchv1.Job, seen sight) {
	i, ok := f.places[nameOf(job)]
	if !ok || f.jobs[i].former == job.UID {
		return
	}
	known := &f.jobs[i]
	known.job, known.deleted = job, seen.gone
	if seen.gone || !unfinished(job) {
		f.queue.free(i)
	} else {
		f.queue.take(i)
	}
	known.wake()
}

// unfinished is the Job's own word: as Kubernetes has it, a Job is finished that
// is Complete or Failed, which it says when all its pods have ended. One that
// is suspended has none.
func unfinished(job *batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return false
		}
	}
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend && job.Status.Active == 0
	return !suspended
}

// proceed gives those their turn for whom there is room now, and makes room.
func (f *follower) proceed() {
	for _, i := range f.queue.start() {
		f.jobs[i].queued, f.jobs[i].granted = false, true
		f.jobs[i].wake()
	}
	for _, i := range f.queue.dismiss() {
		f.dismissed <- f.jobs[i].check // there is room for each check once
	}
}

// notePod keeps the last state of a pod.
func (k *followed) notePod(pod Pod) {
	if k.answered || k.former != "" && pod.Labels[batchv1.ControllerUidLabel] == string(k.former) {
		return
	}
	defer k.wake()
	for i := range k.pods {
		if k.pods[i].UID == pod.UID {
			k.pods[i] = pod
			return
		}
	}
	k.pods = append(k.pods, pod)
	slices.SortStableFunc(k.pods, func(a, b Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

func (k *followed) warn(event *corev1.Event) {
	if k.answered || k.former != "" && event.InvolvedObject.UID == k.former {
		return
	}
	k.warnings = slices.DeleteFunc(k.warnings, func(known *corev1.Event) bool { return known.UID == event.UID })
	k.warnings = append(k.warnings, event)
	k.warnings = k.warnings[max(0, len(k.warnings)-maxWarnings):]
	k.wake()
}

// wake has whoever follows this Job look again.
func (k *followed) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// line has checks wait for their turn in the order of the plan: all but those
// whose Job is there, and those that are answered.
func (f *follower) line(answered func(launch.Check) bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for i := range f.jobs {
		if f.jobs[i].job == nil && !answered(f.jobs[i].check) {
			f.jobs[i].queued = true
			f.queue.join(i)
		}
	}
	f.proceed()
}

// enter has a check wait for its turn, if it does not already. False means that
// its Job is there: it has had its turn.
func (f *follower) enter(i int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known := &f.jobs[i]
	if known.job != nil && !known.deleted {
		return false
	}
	if !known.queued && !known.granted {
		known.queued = true
		f.queue.join(i)
		f.proceed()
	}
	return true
}

// turn is true when a check has its turn, and what tells of changes.
func (f *follower) turn(i int) (bool, <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.jobs[i].granted, f.jobs[i].changed
}

// created takes note of a Job that was created just now.
func (f *follower) created(i int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.jobs[i].asked = max(1, f.lists)
}

// renew forgets a Job that is gone, so that another one can stand in for it.
func (f *follower) renew(i int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known := &f.jobs[i]
	if known.job != nil {
		known.former = known.job.UID
	}
	known.job, known.deleted, known.pods, known.warnings, known.asked, known.granted = nil, false, nil, nil, 0, false
}

// settle takes note that a check has its answer: nothing of it is needed any
// more. A Job that was never created gives its place back.
func (f *follower) settle(i int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known := &f.jobs[i]
	if known.job == nil && known.asked == 0 {
		f.queue.free(i)
	}
	if f.observation(i).lingers() {
		f.queue.dispensable(i)
	}
	known.answered, known.pods, known.warnings = true, nil, nil
	f.proceed()
}

// pressed is true when others wait for the place of a check.
func (f *follower) pressed(i int) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.queue.pressed(i)
}

// observe is what is known about the Job of a check now, and what tells when
// there is more.
func (f *follower) observe(i int) (Observation, <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.observation(i), f.jobs[i].changed
}

func (f *follower) observation(i int) Observation {
	known := &f.jobs[i]
	var trouble []string
	for _, what := range slices.Sorted(maps.Keys(f.trouble)) {
		trouble = append(trouble, fmt.Sprintf("%s: %v", what, f.trouble[what]))
	}
	return Observation{
		Check: known.check, Job: known.job, Deleted: known.deleted,
		Pods: slices.Clone(known.pods), Warnings: slices.Clone(known.warnings), Trouble: strings.Join(trouble, "; "),
	}
}
