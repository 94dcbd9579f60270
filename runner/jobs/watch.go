package jobs

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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

// What is watched.
const (
	watchJobs   = "Jobs"
	watchPods   = "pods"
	watchEvents = "events"
)

// follow starts the watches, and returns when they know what is there by now.
// They go on until ctx is done. A user who may not watch gets an error.
func follow(ctx context.Context, client kubernetes.Interface, plan launch.Plan, parallelism int) (*follower, error) {
	started, refused := context.WithCancelCause(ctx)
	f := newFollower(plan, parallelism, refused)
	ofRun := labels.Set{label.Run: plan.Run.ID}.String()
	all := metav1.NamespaceAll
	jobs := &mirror{
		follower: f, what: watchJobs, example: &batchv1.Job{}, synced: make(chan struct{}),
		selection: metav1.ListOptions{LabelSelector: ofRun},
		lists: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.BatchV1().Jobs(all).List(ctx, options)
		},
		watches: client.BatchV1().Jobs(all).Watch,
	}
	pods := &mirror{
		follower: f, what: watchPods, example: &corev1.Pod{}, synced: make(chan struct{}),
		selection: metav1.ListOptions{LabelSelector: ofRun},
		lists: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Pods(all).List(ctx, options)
		},
		watches: client.CoreV1().Pods(all).Watch,
	}
	events := &mirror{
		follower: f, what: watchEvents, example: &corev1.Event{}, synced: make(chan struct{}),
		// Events have no labels, and cannot be selected by the prefix of a name.
		selection: metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning},
		lists: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Events(all).List(ctx, options)
		},
		watches: client.CoreV1().Events(all).Watch,
	}
	for _, watched := range []*mirror{jobs, pods, events} {
		go watched.reflector(client).RunWithContext(ctx)
	}
	for _, needed := range []*mirror{jobs, pods} {
		select {
		case <-needed.synced:
		case <-started.Done():
			return nil, fmt.Errorf("could not watch the %s of the run: %w", needed.what, context.Cause(started))
		}
	}
	return f, nil
}

// mirror shows the follower what one watch sees. It is the store of a
// reflector, which lists again when a watch was cut or is too old; it keeps
// nothing itself.
type mirror struct {
	follower  *follower
	what      string
	example   runtime.Object
	selection metav1.ListOptions
	lists     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watches   func(context.Context, metav1.ListOptions) (watch.Interface, error)

	// synced is closed after the first list.
	synced chan struct{}
	once   sync.Once
}

var _ cache.TransformingStore = (*mirror)(nil)

const (
	// backOff is between the first tries to watch again, maxBackOff the longest
	// time between two. client-go's own is a minute, which is a good part of a
	// run, and there are three watches only.
	backOff    = 500 * time.Millisecond
	maxBackOff = 5 * time.Second
	// pageSize bounds how much of a list is held before it is made small.
	pageSize = 500
)

func (m *mirror) reflector(client kubernetes.Interface) *cache.Reflector {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: m.list, WatchFuncWithContext: m.watch}, client)
	reflector := cache.NewReflectorWithOptions(source, m.example, m, cache.ReflectorOptions{
		Name:    "preflight " + m.what,
		Backoff: &wait.Backoff{Duration: backOff, Cap: maxBackOff, Steps: 10, Factor: 2, Jitter: 0.5},
	})
	reflector.WatchListPageSize = pageSize
	return reflector
}

// list asks for the newest state, and never for an older one that an API server
// may have at hand: what it does not show is not there.
func (m *mirror) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		m.follower.begin(m.what)
	}
	options.LabelSelector, options.FieldSelector = m.selection.LabelSelector, m.selection.FieldSelector
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	found, err := m.lists(ctx, options)
	m.follower.outcome(m.what, err)
	if err != nil {
		return nil, err
	}
	return found, meta.EachListItem(found, m.shrink)
}

// shrink makes an item of a list small where it is.
func (m *mirror) shrink(item runtime.Object) error {
	switch slim := m.follower.slim(item).(type) {
	case *batchv1.Job:
		if job, ok := item.(*batchv1.Job); ok {
			*job = *slim
		}
	case *corev1.Pod:
		if pod, ok := item.(*corev1.Pod); ok {
			*pod = *slim
		}
	case *corev1.Event:
		if event, ok := item.(*corev1.Event); ok {
			*event = *slim
		}
	}
	return nil
}

// watch may begin with all that is there, as list does.
func (m *mirror) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		m.follower.begin(m.what)
		options.ResourceVersion = ""
	}
	options.LabelSelector, options.FieldSelector = m.selection.LabelSelector, m.selection.FieldSelector
	watching, err := m.watches(ctx, options)
	m.follower.outcome(m.what, err)
	return watching, err
}

// Add implements cache.ReflectorStore.
func (m *mirror) Add(object any) error { return m.Update(object) }

// Update implements cache.ReflectorStore.
func (m *mirror) Update(object any) error {
	m.follower.show(m.follower.slim(object))
	return nil
}

// Delete implements cache.ReflectorStore.
func (m *mirror) Delete(object any) error {
	m.follower.gone(m.follower.slim(object))
	return nil
}

// Replace implements cache.ReflectorStore: these are all there are.
func (m *mirror) Replace(objects []any, _ string) error {
	m.follower.replace(m.what, objects)
	m.once.Do(func() { close(m.synced) })
	return nil
}

// Resync implements cache.ReflectorStore. Nothing is ever told twice.
func (m *mirror) Resync() error { return nil }

// Transformer implements cache.TransformingStore.
func (m *mirror) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return m.follower.slim(object), nil }
}
