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

// The moments of a Job's life, in their order, and what is between each and the
// one before.
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

// until says who is at work until the moment comes.
func (m moment) until() string {
	return [moments]string{
		"API server: Job created", "Job controller: pod created", "scheduler: pod scheduled",
		"kubelet (kwok): container running", "the check itself (1 s here)", "Job controller: Job complete",
	}[m]
}

// timeline has the times of the events of the Jobs with a label, from a watch.
type timeline struct {
	tb    testing.TB
	mutex sync.Mutex
	jobs  map[string]*[moments]time.Time
	// finished is when the last container ended, as its node says.
	finished time.Time
	ended    int
}

// observe begins to watch. The returned function ends it.
func (p *place) observe(label string) (*timeline, func()) {
	p.tb.Helper()
	ctx, cancel := context.WithCancel(p.tb.Context())
	t := &timeline{tb: p.tb, jobs: map[string]*[moments]time.Time{}}
	factory := informers.NewSharedInformerFactoryWithOptions(p.client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label }))
	for _, informer := range []cache.SharedIndexInformer{factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Pods().Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: t.note, UpdateFunc: func(_, object any) { t.note(object) },
		})
		if err != nil {
			p.tb.Fatal(err)
		}
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return t, cancel
}

func (t *timeline) note(object any) {
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
		t.pod(object, now)
	}
}

func (t *timeline) pod(pod *corev1.Pod, now time.Time) {
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
		exactly, err := time.Parse(time.RFC3339Nano, condition.Message)
		if condition.Type == corev1.PodReady && err == nil && exactly.After(t.finished) {
			t.finished = exactly
		}
	}
}

// at takes note of the first time that something is so.
func (t *timeline) at(job string, what moment, now time.Time) bool {
	if t.jobs[job] == nil {
		t.jobs[job] = &[moments]time.Time{}
	}
	if !t.jobs[job][what].IsZero() {
		return false
	}
	t.jobs[job][what] = now
	return true
}

// lastContainer is when the last of n containers ended.
func (t *timeline) lastContainer(n int) time.Time {
	t.tb.Helper()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.ended != n || t.finished.IsZero() {
		t.tb.Fatalf("%d containers were seen to end, want %d", t.ended, n)
	}
	return t.finished
}

// phase is how long one of those at work took.
type phase struct {
	who string
	// each and longest are the median and the longest of all Jobs, first and
	// last when the moment came for the first and the last of them.
	each, longest, first, last time.Duration
	count                      int
}

// phases are counted from start, and end with the verdict.
func (t *timeline) phases(start, verdict time.Time) []phase {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var phases []phase
	for what := range moments {
		p := phase{who: what.until()}
		var took, came []time.Duration
		for _, job := range t.jobs {
			if job[what].IsZero() || job[what].After(verdict) {
				continue
			}
			came = append(came, job[what].Sub(start))
			if what > 0 && !job[what-1].IsZero() {
				took = append(took, job[what].Sub(job[what-1]))
			}
		}
		if p.count = len(came); p.count > 0 {
			slices.Sort(came)
			p.first, p.last = came[0], came[len(came)-1]
		}
		if len(took) > 0 {
			slices.Sort(took)
			p.each, p.longest = took[len(took)/2], took[len(took)-1]
		}
		phases = append(phases, p)
	}
	return phases
}
