// Package logs answers: what has a check printed?
//
// It reads the logs of the containers of the Job's pods while they exist.
package logs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/label"
)

// Needs are the permissions to find the Job of a check and to read and follow the
// logs of its pods. The namespace is not known beforehand.
func Needs() access.Needs {
	return access.Needs{Required: slices.Concat(
		access.Verbs(access.Request{Group: batchv1.GroupName, Resource: "jobs"}, "list", "watch"),
		access.Verbs(access.Request{Resource: "pods"}, "list", "watch"),
		access.Verbs(access.Request{Resource: "pods", Subresource: "log"}, "get"),
	)}
}

// Find is the Job of a check of a run in a namespace, or in all for an empty one; nil when there is none.
func Find(ctx context.Context, client kubernetes.Interface, namespace, runID, check string) (*batchv1.Job, error) {
	selector := labels.Set{label.Run: runID}.String()
	listed, err := client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("could not list the Jobs of run %s: %w", runID, err)
	}
	for i := range listed.Items {
		if listed.Items[i].Annotations[label.AnnotationCheck] == check {
			return &listed.Items[i], nil
		}
	}
	return nil, nil
}

// Copy writes the output of the pods of a Job so far, the oldest first. It returns
// the number of pods; without pods nothing is written.
func Copy(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, sink Sink) (int, error) {
	listed, err := client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: ofJob(job)})
	if err != nil {
		return 0, fmt.Errorf("could not list the pods of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	slices.SortFunc(listed.Items, func(a, b corev1.Pod) int { return oldestFirst(&a, &b) })
	var all []container
	for i := range listed.Items {
		all = append(all, containersOf(&listed.Items[i])...)
	}
	for _, each := range all {
		out := sink.one(each)
		if len(all) == 1 {
			out = sink.only(each)
		}
		if err := each.copy(ctx, client, out); err != nil {
			return len(listed.Items), err
		}
	}
	return len(listed.Items), nil
}

func ofJob(job *batchv1.Job) string { return labels.Set{batchv1.JobNameLabel: job.Name}.String() }

// copy writes the log of the previous start of a container, then its log.
func (c container) copy(ctx context.Context, client kubernetes.Interface, out *output) error {
	if c.status.LastTerminationState.Terminated != nil {
		out.note("output of the previous start:")
		before := *out // another log than the current one
		if err := errors.Join(c.stream(ctx, client, &corev1.PodLogOptions{Previous: true}, &before), before.flush()); err != nil {
			out.note("the output of the previous start is no longer available: " + err.Error())
		}
	}
	if !c.started() {
		out.note(c.waiting())
		return nil
	}
	return errors.Join(c.stream(ctx, client, &corev1.PodLogOptions{}, out), out.flush())
}

// stream writes one log, without what was written of it before.
func (c container) stream(ctx context.Context, client kubernetes.Interface, options *corev1.PodLogOptions, out *output) error {
	options.Container = c.name
	body, err := client.CoreV1().Pods(c.namespace).GetLogs(c.pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("could not read the log of container %s in pod %s/%s: %w", c.name, c.namespace, c.pod, err)
	}
	defer body.Close()
	if err := out.copy(body); err != nil {
		return fmt.Errorf("the log of container %s in pod %s/%s was cut off: %w", c.name, c.namespace, c.pod, err)
	}
	return nil
}

type container struct {
	namespace, pod, name string
	status               corev1.ContainerStatus
}

func (c container) key() string { return c.pod + "/" + c.name }

// containersOf lists the containers of a pod in the order in which they start.
func containersOf(pod *corev1.Pod) []container {
	statuses := map[string]corev1.ContainerStatus{}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		statuses[status.Name] = status
	}
	var all []container
	for _, each := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, container{namespace: pod.Namespace, pod: pod.Name, name: each.Name, status: statuses[each.Name]})
	}
	return all
}

// started reports whether the container has a log.
func (c container) started() bool {
	return c.status.State.Running != nil || c.status.State.Terminated != nil
}

// waiting is why a container has not started.
func (c container) waiting() string {
	why := c.status.State.Waiting
	if why == nil {
		return "the container has not started"
	}
	if why.Message == "" {
		return "the container has not started: " + why.Reason
	}
	return fmt.Sprintf("the container has not started: %s: %s", why.Reason, why.Message)
}

func oldestFirst(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// Sink writes logs, one line at a time from any number of goroutines.
type Sink struct {
	lines, notes io.Writer
	turn         *sync.Mutex
}

// To makes a Sink: the output is written to lines, remarks about it to notes.
func To(lines, notes io.Writer) Sink { return Sink{lines: lines, notes: notes, turn: &sync.Mutex{}} }

// only is the output for the only container: its lines are not labeled.
func (s Sink) only(c container) *output { return &output{sink: s, label: "[" + c.key() + "] "} }

// one is the output for one of several containers: its lines are labeled.
func (s Sink) one(c container) *output {
	out := s.only(c)
	out.prefix = out.label
	return out
}

// output writes the lines of one container.
type output struct {
	sink          Sink
	label, prefix string
	// taken counts the bytes of the log that were written.
	taken int64
	// rest is an unterminated last line.
	rest []byte
}

func (o *output) note(text string) {
	o.sink.turn.Lock()
	defer o.sink.turn.Unlock()
	fmt.Fprintf(o.sink.notes, "%s%s\n", o.label, words.Printable(text))
}

// maxLine bounds the part of a line that is written at once, in bytes.
const maxLine = 64 << 10

// copy writes the lines of a log that were not written before. An unterminated last
// line is kept for flush: an API server that stops ends a log anywhere.
func (o *output) copy(log io.Reader) error {
	o.rest = nil
	switch _, err := io.CopyN(io.Discard, log, o.taken); {
	case errors.Is(err, io.EOF):
		return nil // the log was rotated meanwhile
	case err != nil:
		return err
	}
	lines := bufio.NewReaderSize(log, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			o.rest = slices.Clone(line)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		if err := o.write(line); err != nil {
			return err
		}
	}
}

// flush writes the unterminated last line.
func (o *output) flush() error {
	if len(o.rest) == 0 {
		return nil
	}
	line := o.rest
	o.rest = nil
	return o.write(line)
}

// write writes a line, or as much of it as fits, without control characters.
func (o *output) write(line []byte) error {
	o.sink.turn.Lock()
	defer o.sink.turn.Unlock()
	o.taken += int64(len(line))
	_, err := fmt.Fprintf(o.sink.lines, "%s%s\n", o.prefix, words.Printable(strings.TrimSuffix(string(line), "\n")))
	return err
}

// retryInterval is the time before an interrupted log is continued.
const retryInterval = time.Second

// Follow writes the output of the pods of a Job, also of pods that are created
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
		return informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace(f.job.Namespace),
			informers.WithTweakListOptions(narrow))
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
