// Package kubelet answers: how do the pods of checks end on a control plane without nodes?
package kubelet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/runner/label"
)

// Kubelet replaces the missing node: it ends the pods of runs in a namespace once End was
// called, and counts them. Its fields may be set before.
type Kubelet struct {
	// Code returns the exit code of a pod.
	Code func(*corev1.Pod) int32
	// Held selects pods that end only after Free was called; nil for none.
	Held func(*corev1.Pod) bool
	// Created receives the first pods.
	Created chan *corev1.Pod

	pods       corev1client.PodInterface
	end, freed chan struct{}

	mutex sync.Mutex
	seen  map[types.UID]bool
}

// Start begins to watch the pods of runs in a namespace, whose exit code is code.
func Start(tb testing.TB, client kubernetes.Interface, namespace string, code int32) *Kubelet {
	tb.Helper()
	const first = 100
	k := &Kubelet{
		Code: func(*corev1.Pod) int32 { return code }, Created: make(chan *corev1.Pod, first),
		pods: client.CoreV1().Pods(namespace), end: make(chan struct{}), freed: make(chan struct{}), seen: map[types.UID]bool{},
	}
	created, err := k.pods.Watch(tb.Context(), metav1.ListOptions{LabelSelector: label.Run})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	var working sync.WaitGroup
	tb.Cleanup(func() {
		cancel()
		created.Stop()
		working.Wait()
	})
	working.Go(func() {
		for event := range created.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != watch.Added {
				continue
			}
			k.note(pod)
			working.Go(func() {
				if err := k.work(ctx, pod); err != nil && ctx.Err() == nil {
					tb.Error(err)
				}
			})
		}
	})
	return k
}

// End ends all pods, also those that do not exist yet.
func (k *Kubelet) End() { close(k.end) }

// Free ends the pods that are held.
func (k *Kubelet) Free() { close(k.freed) }

// Pods returns how many pods were created.
func (k *Kubelet) Pods() int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return len(k.seen)
}

// OfTarget selects the pods of runs of a target with a version.
func OfTarget(version string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return slices.Contains(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "PREFLIGHT_TARGET_VERSION", Value: version})
	}
}

func (k *Kubelet) note(pod *corev1.Pod) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.seen[pod.UID] = true
	select {
	case k.Created <- pod:
	default:
	}
}

// work ends a pod in time.
func (k *Kubelet) work(ctx context.Context, pod *corev1.Pod) error {
	if err := await(ctx, k.end); err != nil {
		return err
	}
	if k.Held != nil && k.Held(pod) {
		if err := await(ctx, k.freed); err != nil {
			return err
		}
	}
	return k.finish(ctx, pod.Name, k.Code(pod))
}

func await(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish ends a pod. The scheduler updates it, too, and a run that has ended has deleted it.
func (k *Kubelet) finish(ctx context.Context, pod string, code int32) error {
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	status := fmt.Appendf(nil, `{"status":{"phase":%q,"containerStatuses":[{"name":"preflight","image":"i","imageID":"i",
		"state":{"terminated":{"exitCode":%d,"startedAt":%[3]q,"finishedAt":%[3]q}}}]}}`, phase, code, time.Now().UTC().Format(time.RFC3339))
	_, err := k.pods.Patch(ctx, pod, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
