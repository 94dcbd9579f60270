//go:build faults

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

// witness sees every pod of every check, by itself and from the beginning. It is
// the store of a reflector.
type witness struct {
	mutex sync.Mutex
	pods  map[types.UID]*corev1.Pod
	seen  []types.UID // in order
	news  chan struct{}

	// listed is closed after the first list.
	listed chan struct{}
	once   sync.Once
}

var _ cache.ReflectorStore = (*witness)(nil)

func newWitness(t *testing.T, client kubernetes.Interface) *witness {
	t.Helper()
	w := &witness{pods: map[types.UID]*corev1.Pod{}, news: make(chan struct{}), listed: make(chan struct{})}
	source := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.LabelSelector = "preflight.openshift.io/run"
	})
	// An informer waits up to a minute after failed requests. A pod that lives for
	// some seconds must not be missed when the API server is back.
	reflector := cache.NewReflectorWithOptions(source, &corev1.Pod{}, w, cache.ReflectorOptions{
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond},
	})
	go reflector.RunWithContext(t.Context())
	select {
	case <-w.listed:
	case <-time.After(patience):
		t.Fatal("the witness could not list pods")
	}
	return w
}

// Add implements cache.ReflectorStore.
func (w *witness) Add(object any) error { return w.Update(object) }

// Update implements cache.ReflectorStore.
func (w *witness) Update(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("a %T is not a pod", object)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.pods[pod.UID] == nil {
		w.seen = append(w.seen, pod.UID)
	}
	w.pods[pod.UID] = pod
	close(w.news)
	w.news = make(chan struct{})
	return nil
}

// Delete implements cache.ReflectorStore: a pod that was deleted has run.
func (w *witness) Delete(object any) error { return w.Update(object) }

// Replace implements cache.ReflectorStore: pods that are not among the objects were
// deleted, and have run.
func (w *witness) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if err := w.Update(object); err != nil {
			return err
		}
	}
	w.once.Do(func() { close(w.listed) })
	return nil
}

// Resync implements cache.ReflectorStore. Nothing has to be repeated.
func (w *witness) Resync() error { return nil }

// executions is how many pods each check in a namespace has had.
func (w *witness) executions(namespace string) map[string]int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	counted := map[string]int{}
	for _, pod := range w.pods {
		if pod.Namespace == namespace {
			counted[author(pod.Labels[batchv1.JobNameLabel])]++
		}
	}
	return counted
}

// story is what became of the pods in a namespace.
func (w *witness) story(namespace string) []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var story []string
	for _, uid := range w.seen {
		if pod := w.pods[uid]; pod.Namespace == namespace {
			story = append(story, fmt.Sprintf("%s %s %s", pod.CreationTimestamp.Format("15:04:05"), pod.Name, pod.Status.Phase))
		}
	}
	return story
}

// running are the pods of a check that are at work now, as far as is known.
func (w *witness) running(namespace, check string) []*corev1.Pod {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var running []*corev1.Pod
	for _, uid := range slices.Backward(w.seen) {
		pod := w.pods[uid]
		if pod.Namespace == namespace && author(pod.Labels[batchv1.JobNameLabel]) == check && pod.Status.Phase == corev1.PodRunning {
			running = append(running, pod)
		}
	}
	return running
}

// until returns when that holds of what was seen.
func (w *witness) until(t *testing.T, holds func() bool) {
	t.Helper()
	late := time.After(patience)
	for {
		w.mutex.Lock()
		news := w.news
		w.mutex.Unlock()
		if holds() {
			return
		}
		select {
		case <-news:
		case <-late:
			t.Fatal("what has to come did not come")
		}
	}
}
