package logs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// retryInterval is the time before an interrupted log is continued.
const retryInterval = time.Second

// Follow writes the output of the pods of a Job, also of those that are created
// later, until the Job has ended or was deleted. An interrupted log is continued. It
// returns the number of logs.
func Follow(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, sink Sink) (int, error) {
	f := &follower{
		client: client, job: job, sink: sink, readings: map[string]*reading{}, changed: make(chan struct{}, 1),
	}
	var background sync.WaitGroup
	defer background.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := f.watch(ctx, &background); err != nil {
		return 0, err
	}
	for {
		f.read(ctx, &background)
		if f.over() {
			return len(f.readings), f.flush()
		}
		select {
		case <-ctx.Done():
			return len(f.readings), context.Cause(ctx)
		case <-f.changed:
		}
	}
}

type follower struct {
	client     kubernetes.Interface
	job        *batchv1.Job
	sink       Sink
	pods, jobs cache.Store
	// changed has a value when a pod or the Job has changed.
	changed chan struct{}

	mutex sync.Mutex
	// readings has the progress in each container's log, by pod and name.
	readings map[string]*reading
}

// reading is the progress of reading one log.
type reading struct {
	out *output
	// waiting is the last note about a container that has not started.
	waiting string
	active  bool
	// done is true when the log was read to its end.
	done bool
}

// watch watches the pods and the Job until ctx is done, also across restarts of the
// API server.
func (f *follower) watch(ctx context.Context, background *sync.WaitGroup) error {
	narrowed := func(narrow func(*metav1.ListOptions)) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace(f.job.Namespace), informers.WithTweakListOptions(narrow))
	}
	pods := narrowed(func(options *metav1.ListOptions) { options.LabelSelector = ofJob(f.job) }).Core().V1().Pods().Informer()
	jobs := narrowed(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, f.job.Name).String()
	}).Batch().V1().Jobs().Informer()
	f.pods, f.jobs = pods.GetStore(), jobs.GetStore()
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{pods, jobs} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { f.wake() }, UpdateFunc: func(any, any) { f.wake() }, DeleteFunc: func(any) { f.wake() },
		})
		if err != nil {
			return fmt.Errorf("could not watch Job %s/%s: %w", f.job.Namespace, f.job.Name, err)
		}
		synced = append(synced, registration.HasSynced)
		background.Go(func() { informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return context.Cause(ctx)
	}
	return nil
}

func (f *follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// containers lists the containers of all pods, the oldest pod first.
func (f *follower) containers() []container {
	var pods []*corev1.Pod
	for _, item := range f.pods.List() {
		if pod, ok := item.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, oldestFirst)
	var all []container
	for _, pod := range pods {
		all = append(all, containersOf(pod)...)
	}
	return all
}

// read begins to read the logs that have become readable.
func (f *follower) read(ctx context.Context, background *sync.WaitGroup) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, each := range f.containers() {
		reading := f.readings[each.key()]
		if reading == nil {
			reading = f.begin(each)
		}
		switch {
		case reading.active, reading.done:
		case each.started():
			reading.active = true
			background.Go(func() { f.follow(ctx, each, reading) })
		case reading.waiting != each.waiting():
			reading.waiting = each.waiting()
			reading.out.note(reading.waiting)
		}
	}
}

func (f *follower) begin(c container) *reading {
	begun := &reading{out: f.sink.one(c)}
	f.readings[c.key()] = begun
	return begun
}

// follow reads one log; unless the container has ended, reading continues at the next
// change.
func (f *follower) follow(ctx context.Context, c container, reading *reading) {
	err := c.stream(ctx, f.client, &corev1.PodLogOptions{Follow: true}, reading.out)
	ended := c.status.State.Terminated != nil
	if ctx.Err() == nil && !ended {
		if err != nil {
			reading.out.note(err.Error())
		}
		pause := time.NewTimer(retryInterval)
		defer pause.Stop()
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	reading.active, reading.done = false, ended
	f.wake()
}

// over reports whether the Job has ended and all logs were read.
func (f *follower) over() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, each := range f.containers() {
		if reading := f.readings[each.key()]; reading != nil && (reading.active || (each.started() && !reading.done)) {
			return false
		}
	}
	for _, item := range f.jobs.List() {
		if job, ok := item.(*batchv1.Job); ok && !ended(job) {
			return false
		}
	}
	return true
}

// flush writes the unterminated last lines.
func (f *follower) flush() error {
	var failures []error
	for _, key := range slices.Sorted(maps.Keys(f.readings)) {
		failures = append(failures, f.readings[key].out.flush())
	}
	return errors.Join(failures...)
}

func ended(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed)
	})
}
