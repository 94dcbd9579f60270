package faults_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// podObserver records all pods of all checks, independently of the runs. It is the store
// of a reflector.
type podObserver struct {
	mutex   sync.Mutex
	pods    map[types.UID]*corev1.Pod
	order   []types.UID   // of the first observation
	changed chan struct{} // closed at the next change

	// listed is closed after the first list.
	listed chan struct{}
	once   sync.Once
}

var _ cache.ReflectorStore = (*podObserver)(nil)

func newPodObserver(t *testing.T, client kubernetes.Interface) *podObserver {
	t.Helper()
	o := &podObserver{pods: map[types.UID]*corev1.Pod{}, changed: make(chan struct{}), listed: make(chan struct{})}
	source := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		func(options *metav1.ListOptions) {
			options.LabelSelector = "preflight.openshift.io/run"
		})
	// An informer waits up to a minute after failed requests, and would miss pods that
	// exist for some seconds after a restart of the API server.
	reflector := cache.NewReflectorWithOptions(source, &corev1.Pod{}, o, cache.ReflectorOptions{
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond},
	})
	go reflector.RunWithContext(t.Context())
	select {
	case <-o.listed:
	case <-time.After(time.Minute):
		t.Fatal("cannot list pods")
	}
	return o
}

// Add implements cache.ReflectorStore.
func (o *podObserver) Add(object any) error { return o.Update(object) }

// Update implements cache.ReflectorStore.
func (o *podObserver) Update(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("%T is not a pod", object)
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.pods[pod.UID] == nil {
		o.order = append(o.order, pod.UID)
	}
	o.pods[pod.UID] = pod
	close(o.changed)
	o.changed = make(chan struct{})
	return nil
}

// Delete implements cache.ReflectorStore: a deleted pod counts as an execution.
func (o *podObserver) Delete(object any) error { return o.Update(object) }

// Replace implements cache.ReflectorStore: pods that are not among the objects were
// deleted, and count as executions.
func (o *podObserver) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if err := o.Update(object); err != nil {
			return err
		}
	}
	o.once.Do(func() { close(o.listed) })
	return nil
}

// Resync implements cache.ReflectorStore; it has no effect.
func (o *podObserver) Resync() error { return nil }

// executions returns the number of pods that each check in a namespace has had.
func (o *podObserver) executions(namespace string) map[string]int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	counted := map[string]int{}
	for _, pod := range o.pods {
		if pod.Namespace == namespace {
			counted[checkOf(pod.Labels[batchv1.JobNameLabel])]++
		}
	}
	return counted
}

// history returns the times, names and last phases of the pods in a namespace.
func (o *podObserver) history(namespace string) []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var history []string
	for _, uid := range o.order {
		if pod := o.pods[uid]; pod.Namespace == namespace {
			history = append(history, fmt.Sprintf("%s %s %s", pod.CreationTimestamp.Format("15:04:05"), pod.Name, pod.Status.Phase))
		}
	}
	return history
}

// running returns the pods of a check whose last observed phase is Running.
func (o *podObserver) running(namespace, check string) []*corev1.Pod {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var running []*corev1.Pod
	for _, uid := range slices.Backward(o.order) {
		pod := o.pods[uid]
		if pod.Namespace == namespace && checkOf(pod.Labels[batchv1.JobNameLabel]) == check && pod.Status.Phase == corev1.PodRunning {
			running = append(running, pod)
		}
	}
	return running
}

// await returns when a condition on the observed pods of a run holds, and fails the test
// when the run has ended before.
func (o *podObserver) await(t *testing.T, run proxiedRun, what string, holds func() bool) {
	t.Helper()
	for {
		o.mutex.Lock()
		changed := o.changed
		o.mutex.Unlock()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-run.Ended():
			t.Fatalf("the run ended before %s; the output:\n%s", what, run.Stderr())
		}
	}
}
