package scale_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// moment is a step in the life of a Job. The moments are in their order.
type moment int

const (
	jobCreated moment = iota
	podCreated
	podScheduled
	podRunning
	podEnded
	jobComplete
	moments
)

// phase describes the phase that ends with the moment: the component and its result.
func (m moment) phase() string {
	return [moments]string{
		"API server: Job created", "Job controller: pod created", "scheduler: pod scheduled",
		"kubelet (kwok): container running", "the check itself (1 s here)", "Job controller: Job complete",
	}[m]
}

// timeline has the moments of the Jobs with a label, as observed by a watch.
type timeline struct {
	tb    testing.TB
	mutex sync.Mutex
	jobs  map[string]*[moments]time.Time
	// finished is the time at which the last container ended, as reported by its node.
	finished time.Time
	ended    int
}

// observe starts the watch. The returned function stops it.
func (e *environment) observe(label string) (*timeline, func()) {
	e.tb.Helper()
	ctx, cancel := context.WithCancel(e.tb.Context())
	t := &timeline{tb: e.tb, jobs: map[string]*[moments]time.Time{}}
	factory := informers.NewSharedInformerFactoryWithOptions(e.client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label }))
	for _, informer := range []cache.SharedIndexInformer{factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Pods().Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: t.update, UpdateFunc: func(_, object any) { t.update(object) },
		})
		if err != nil {
			e.tb.Fatal(err)
		}
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return t, cancel
}

func (t *timeline) update(object any) {
	now := time.Now()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch object := object.(type) {
	case *batchv1.Job:
		t.at(object.Name, jobCreated, now)
		for _, condition := range object.Status.Conditions {
			if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
				t.at(object.Name, jobComplete, now)
			}
		}
	case *corev1.Pod:
		t.updatePod(object, now)
	}
}

func (t *timeline) updatePod(pod *corev1.Pod, now time.Time) {
	name := pod.Labels[batchv1.JobNameLabel]
	t.at(name, podCreated, now)
	if pod.Spec.NodeName != "" {
		t.at(name, podScheduled, now)
	}
	if pod.Status.Phase == corev1.PodRunning {
		t.at(name, podRunning, now)
	}
	if pod.Status.Phase != corev1.PodSucceeded || !t.at(name, podEnded, now) {
		return
	}
	t.ended++
	for _, condition := range pod.Status.Conditions {
		exact, err := time.Parse(time.RFC3339Nano, condition.Message)
		if condition.Type == corev1.PodReady && err == nil && exact.After(t.finished) {
			t.finished = exact
		}
	}
}

// at records the time of a moment of a Job. It returns false if it is recorded already.
func (t *timeline) at(job string, m moment, now time.Time) bool {
	if t.jobs[job] == nil {
		t.jobs[job] = &[moments]time.Time{}
	}
	if !t.jobs[job][m].IsZero() {
		return false
	}
	t.jobs[job][m] = now
	return true
}

// lastContainer returns the time at which the last of n containers ended.
func (t *timeline) lastContainer(n int) time.Time {
	t.tb.Helper()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.ended != n || t.finished.IsZero() {
		t.tb.Fatalf("observed the end of %d containers, want %d", t.ended, n)
	}
	return t.finished
}

// phase has the durations of one phase of the Jobs.
type phase struct {
	component string
	// median and longest are durations of the phase; first and last are the times since
	// the start at which it ended for the first and the last Job.
	median, longest, first, last time.Duration
	// count is the number of Jobs for which the phase ended before the verdict.
	count int
}

// phases returns the phases between start and verdict.
func (t *timeline) phases(start, verdict time.Time) []phase {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var phases []phase
	for m := range moments {
		p := phase{component: m.phase()}
		var took, ended []time.Duration
		for _, job := range t.jobs {
			if job[m].IsZero() || job[m].After(verdict) {
				continue
			}
			ended = append(ended, job[m].Sub(start))
			if m > 0 && !job[m-1].IsZero() {
				took = append(took, job[m].Sub(job[m-1]))
			}
		}
		if p.count = len(ended); p.count > 0 {
			slices.Sort(ended)
			p.first, p.last = ended[0], ended[len(ended)-1]
		}
		if len(took) > 0 {
			slices.Sort(took)
			p.median, p.longest = took[len(took)/2], took[len(took)-1]
		}
		phases = append(phases, p)
	}
	return phases
}
