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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// witness sees every pod of every check, by itself and from the beginning.
type witness struct {
	mutex sync.Mutex
	pods  map[types.UID]*corev1.Pod
	seen  []types.UID // in order
	news  chan struct{}
}

func newWitness(t *testing.T, client kubernetes.Interface) *witness {
	t.Helper()
	w := &witness{pods: map[types.UID]*corev1.Pod{}, news: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.LabelSelector = "preflight.openshift.io/run"
	}))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: w.note, UpdateFunc: func(_, object any) { w.note(object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("there is no witness")
	}
	return w
}

func (w *witness) note(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.pods[pod.UID] == nil {
		w.seen = append(w.seen, pod.UID)
	}
	w.pods[pod.UID] = pod
	close(w.news)
	w.news = make(chan struct{})
}

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
