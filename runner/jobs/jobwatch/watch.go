package jobwatch

import (
	"context"
	"fmt"
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
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Start starts the watches, which last until ctx is done, and returns when the
// existing Jobs and pods have been listed. It returns an error when the user may
// not watch.
func Start(ctx context.Context, client kubernetes.Interface, uid func(jobplan.Check) types.UID, plan jobplan.Plan, parallelism int) (*Tracker, error) {
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
