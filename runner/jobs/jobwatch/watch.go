package jobwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/alteration"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Start starts the watches, which last until ctx is done, and returns when the
// existing Jobs and pods have been listed. It returns an error when the user may
// not watch.
func Start(ctx context.Context, client kubernetes.Interface, uid func(jobplan.Check) types.UID, plan jobplan.Plan,
	parallelism int,
) (*Tracker, error) {
	started, denied := context.WithCancelCause(ctx)
	t := newTracker(plan, uid, parallelism, denied)
	ofRun := labels.Set{label.Run: plan.Run.ID}.String()
	namespace := plan.Run.Namespace // of a run that has none, all
	jobs := &resourceWatch{
		tracker: t, resource: watchJobs, example: &batchv1.Job{}, synced: make(chan struct{}),
		selection: metav1.ListOptions{LabelSelector: ofRun},
		listFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.BatchV1().Jobs(namespace).List(ctx, options)
		},
		watchFunc: client.BatchV1().Jobs(namespace).Watch,
	}
	// Admission may remove the label of a pod, which is then listed by the UID of its Job (diagnosis.Classification, ListPods).
	pods := &resourceWatch{
		tracker: t, resource: watchPods, example: &corev1.Pod{}, synced: make(chan struct{}),
		selection: metav1.ListOptions{LabelSelector: ofRun},
		listFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Pods(namespace).List(ctx, options)
		},
		watchFunc: client.CoreV1().Pods(namespace).Watch,
	}
	events := &resourceWatch{
		tracker: t, resource: watchEvents, example: &corev1.Event{}, synced: make(chan struct{}),
		// Events have no labels, and cannot be selected by the prefix of a name.
		selection: metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning},
		listFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Events(namespace).List(ctx, options)
		},
		watchFunc: client.CoreV1().Events(namespace).Watch,
	}
	for _, watched := range []*resourceWatch{jobs, pods, events} {
		go watched.reflector(client).RunWithContext(ctx)
	}
	for _, required := range []*resourceWatch{jobs, pods} {
		select {
		case <-required.synced:
		case <-started.Done():
			return nil, fmt.Errorf("could not watch the %s of the run: %w", required.resource, context.Cause(started))
		}
	}
	return t, nil
}

// resourceWatch passes what the list and watch of one resource return on to the
// tracker. It is the store of a reflector, which lists again when a watch was
// interrupted or its resourceVersion expired; it stores nothing itself.
type resourceWatch struct {
	tracker   *Tracker
	resource  string
	example   runtime.Object
	selection metav1.ListOptions
	listFunc  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

	// synced is closed after the first list.
	synced chan struct{}
	once   sync.Once
}

var _ cache.TransformingStore = (*resourceWatch)(nil)

const (
	// backOff is the first delay before a watch is retried, maxBackOff the longest.
	// client-go's default of a minute is a considerable part of a run, and there are
	// three watches only.
	backOff    = 500 * time.Millisecond
	maxBackOff = 5 * time.Second
	// pageSize bounds how many untrimmed objects of a list are held.
	pageSize = 500
)

func (w *resourceWatch) reflector(client kubernetes.Interface) *cache.Reflector {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}, client)
	reflector := cache.NewReflectorWithOptions(source, w.example, w, cache.ReflectorOptions{
		Name:    "preflight " + w.resource,
		Backoff: &wait.Backoff{Duration: backOff, Cap: maxBackOff, Steps: 10, Factor: 2, Jitter: 0.5},
	})
	reflector.WatchListPageSize = pageSize
	return reflector
}

// list requests the most recent state, never an older one from a cache of the API
// server: an object that it does not return does not exist.
func (w *resourceWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		w.tracker.listBegins(w.resource)
	}
	options.LabelSelector, options.FieldSelector = w.selection.LabelSelector, w.selection.FieldSelector
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	found, err := w.listFunc(ctx, options)
	w.tracker.Failures.watchResult(w.resource, err)
	if err != nil {
		return nil, err
	}
	return found, meta.EachListItem(found, w.trimItem)
}

func (w *resourceWatch) trimItem(item runtime.Object) error {
	switch trimmed := trim(item, w.tracker.indexes).(type) {
	case *batchv1.Job:
		if job, ok := item.(*batchv1.Job); ok {
			*job = *trimmed
		}
	case *corev1.Pod:
		if pod, ok := item.(*corev1.Pod); ok {
			*pod = *trimmed
		}
	case *corev1.Event:
		if event, ok := item.(*corev1.Event); ok {
			*event = *trimmed
		}
	}
	return nil
}

// watch may begin with all existing objects, like list.
func (w *resourceWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		w.tracker.listBegins(w.resource)
		options.ResourceVersion = ""
	}
	options.LabelSelector, options.FieldSelector = w.selection.LabelSelector, w.selection.FieldSelector
	watching, err := w.watchFunc(ctx, options)
	w.tracker.Failures.watchResult(w.resource, err)
	return watching, err
}

func (w *resourceWatch) Add(object any) error { return w.Update(object) }

func (w *resourceWatch) Update(object any) error {
	w.tracker.apply(objectState{object: trim(object, w.tracker.indexes)})
	return nil
}

func (w *resourceWatch) Delete(object any) error {
	w.tracker.apply(objectState{object: trim(object, w.tracker.indexes), gone: true})
	return nil
}

// Replace is called with all objects that exist.
func (w *resourceWatch) Replace(objects []any, _ string) error {
	w.tracker.replace(w.resource, objects)
	w.once.Do(func() { close(w.synced) })
	return nil
}

// Resync does nothing: nothing has to be repeated.
func (w *resourceWatch) Resync() error { return nil }

func (w *resourceWatch) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return trim(object, w.tracker.indexes), nil }
}

// queue decides which Jobs may be created: at most limit Jobs are unfinished at
// one time, and at most one of a series. The order is first in, first out; a check
// that waits for another of its series does not delay the others.
//
// Checks are identified by their index in the plan. The queue is pure, its
// operations do not depend on the number of waiting checks, and it is not safe
// for concurrent use.
type queue struct {
	limit int
	// series is the series of each check, by index; "" is none.
	series []string
	// open are the checks whose Job is unfinished or is being created. More than
	// limit may be open if their Jobs existed before.
	open map[int]bool
	// busy counts the open checks of a series.
	busy map[string]int
	// waiting are the checks that wait for capacity; next, whose series has just become free, precede them.
	next, waiting fifo
	// blocked are the checks that wait for another of their series.
	blocked map[string]*fifo
	// expendable are open checks with findings, whose Job may be deleted.
	expendable map[int]bool
}

func newQueue(limit int, series []string) *queue {
	return &queue{
		limit: limit, series: series, open: map[int]bool{}, busy: map[string]int{},
		blocked: map[string]*fifo{}, expendable: map[int]bool{},
	}
}

func (q *queue) join(i int) {
	if !q.open[i] {
		q.waiting.add(i)
	}
}

// take opens a check regardless of the limit: its Job exists and is unfinished.
func (q *queue) take(i int) {
	if q.open[i] {
		return
	}
	q.open[i] = true
	if series := q.series[i]; series != "" {
		q.busy[series]++
	}
}

// free closes a check: its Job is finished or deleted.
func (q *queue) free(i int) {
	if !q.open[i] {
		return
	}
	delete(q.open, i)
	delete(q.expendable, i)
	series := q.series[i]
	if series == "" {
		return
	}
	q.busy[series]--
	if blocked := q.blocked[series]; q.busy[series] == 0 && blocked != nil {
		if next, ok := blocked.take(); ok {
			q.next.add(next)
		}
	}
}

func (q *queue) start() []int {
	var started []int
	for len(q.open) < q.limit {
		i, ok := q.next.take()
		if !ok {
			i, ok = q.waiting.take()
		}
		if !ok {
			break
		}
		if series := q.series[i]; series != "" && q.busy[series] > 0 {
			q.block(series, i)
			continue
		}
		q.take(i)
		started = append(started, i)
	}
	return started
}

func (q *queue) block(series string, i int) {
	if q.blocked[series] == nil {
		q.blocked[series] = &fifo{}
	}
	q.blocked[series].add(i)
}

// release marks the Job of an open check as one that may be deleted.
func (q *queue) release(i int) {
	if q.open[i] {
		q.expendable[i] = true
	}
}

// contended is true for an open check whose capacity others wait for.
func (q *queue) contended(i int) bool {
	if blocked := q.blocked[q.series[i]]; blocked != nil && len(*blocked) > 0 {
		return q.open[i]
	}
	return q.open[i] && len(q.open) >= q.limit && len(q.next)+len(q.waiting) > 0
}

// evict returns the expendable checks whose capacity others wait for, each once.
func (q *queue) evict() []int {
	var evicted []int
	for _, i := range slices.Sorted(maps.Keys(q.expendable)) {
		if q.contended(i) {
			delete(q.expendable, i)
			evicted = append(evicted, i)
		}
	}
	return evicted
}

// fifo is a queue of indexes, first in, first out.
type fifo []int

func (f *fifo) add(i int) { *f = append(*f, i) }

func (f *fifo) take() (int, bool) {
	if len(*f) == 0 {
		return 0, false
	}
	i := (*f)[0]
	*f = (*f)[1:]
	return i, true
}

// trim returns the used fields of an object; of an event about an object of
// another run only its name, since there may be many thousands.
func trim(object any, indexes map[types.NamespacedName]int) any {
	switch object := object.(type) {
	case *batchv1.Job:
		return trimJob(object)
	case *corev1.Pod:
		return trimPod(object)
	case *corev1.Event:
		if _, ours := involvedJob(object, indexes); !ours {
			return &corev1.Event{ObjectMeta: trimMeta(object.ObjectMeta)}
		}
		return trimEvent(object)
	}
	return object
}

// involvedJob finds the Job that an event is about. The name of a pod is the name of
// its Job with a dash and five characters appended.
func involvedJob(event *corev1.Event, indexes map[types.NamespacedName]int) (int, bool) {
	name := event.InvolvedObject.Name
	if event.InvolvedObject.Kind == "Pod" {
		name = name[:max(0, strings.LastIndex(name, "-"))]
	}
	i, ok := indexes[types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: name}]
	return i, ok
}

// trimJob returns the fields of a Job that are used, since thousands of Jobs may
// be held. Its spec as requested is in the check, but for the deadline of a run that was taken over.
func trimJob(job *batchv1.Job) *batchv1.Job {
	deadline := corev1.EnvVar{Name: jobplan.VariableDeadline, Value: alteration.Deadline(job.Spec.Template.Spec)}
	return &batchv1.Job{
		ObjectMeta: trimMeta(job.ObjectMeta),
		Spec: batchv1.JobSpec{Suspend: job.Spec.Suspend, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{deadline}}}},
		}},
		Status: batchv1.JobStatus{
			Conditions: job.Status.Conditions, Active: job.Status.Active, Succeeded: job.Status.Succeeded, Failed: job.Status.Failed,
		},
	}
}

// trimPod returns the owner and the status of a pod, and what admission may change of it.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	status := pod.Status
	trimmed := &corev1.Pod{
		ObjectMeta: trimMeta(pod.ObjectMeta), Spec: pod.Spec,
		Status: corev1.PodStatus{
			Phase: status.Phase, Reason: status.Reason, Message: status.Message, StartTime: status.StartTime, Conditions: status.Conditions,
			InitContainerStatuses: trimContainers(status.InitContainerStatuses), ContainerStatuses: trimContainers(status.ContainerStatuses),
		},
	}
	trimmed.Labels = pod.Labels
	trimmed.Annotations = alteration.NodeAnnotations(pod.Annotations)
	if controller := metav1.GetControllerOf(pod); controller != nil {
		trimmed.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return trimmed
}

func trimMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

func trimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, 0, len(statuses))
	for _, status := range statuses {
		trimmed = append(trimmed, corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, State: status.State,
			LastTerminationState: status.LastTerminationState, RestartCount: status.RestartCount,
		})
	}
	return trimmed
}

// trimEvent returns the involved object, reason and message of an event.
func trimEvent(event *corev1.Event) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: trimMeta(event.ObjectMeta), InvolvedObject: event.InvolvedObject, Reason: event.Reason, Message: event.Message,
	}
}
