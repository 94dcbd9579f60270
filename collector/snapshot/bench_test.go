package snapshot_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// pods are 25000 pods of 5000 workloads with two containers, of which one in that many has restarted; none for 0.
func pods(restarted int) *corev1.PodList {
	const workloads, replicas = 5000, 5
	list := &corev1.PodList{}
	for i := range workloads * replicas {
		workload := fmt.Sprintf("workload-%04d", i/replicas)
		started := metav1.Date(2026, 11, 25, 12, 0, i%60, 0, time.UTC)
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("team-%03d", i/replicas%200), Name: fmt.Sprintf("%s-7d9f8b6c5d-%05d", workload, i),
				UID:               types.UID(fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d", i)),
				CreationTimestamp: started, Labels: map[string]string{"app": workload, "pod-template-hash": "7d9f8b6c5d"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload + "-7d9f8b6c5d",
					UID: types.UID(workload), Controller: new(true),
				}},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("worker-%03d", i%500), Containers: []corev1.Container{{
				Name:  "app",
				Image: "registry.example.com/app@sha256:0123456789",
			}, {Name: "proxy", Image: "registry.example.com/proxy"}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, StartTime: &started,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started}},
			},
		}
		for _, container := range pod.Spec.Containers {
			status := corev1.ContainerStatus{
				Name: container.Name, Ready: true, Started: new(true), Image: container.Image, ImageID: container.Image,
				ContainerID: fmt.Sprintf("cri-o://%064d", i),
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			}
			if restarted > 0 && i%restarted == 0 {
				status.RestartCount = 1
				status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
					ExitCode: 137, Reason: "Error",
					Message: "the node has rebooted", FinishedAt: started, ContainerID: status.ContainerID,
				}
			}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		list.Items = append(list.Items, pod)
	}
	return list
}

// paged is a snapshot of a server that responds with pages of 500 pods.
func paged(b *testing.B, list *corev1.PodList) *snapshot.Cluster {
	b.Helper()
	const size = 500
	bodies := map[string][]byte{}
	for from := 0; from < len(list.Items); from += size {
		page := &corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
			Items:    list.Items[from:min(from+size, len(list.Items))],
		}
		if from+size < len(list.Items) {
			page.Continue = fmt.Sprint(from + size)
		}
		var body bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(page, &body); err != nil {
			b.Fatal(err)
		}
		bodies[fmt.Sprint(from)] = body.Bytes()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kruntime.ContentTypeProtobuf)
		_, _ = w.Write(bodies[cmp.Or(r.URL.Query().Get("continue"), "0")])
	}))
	b.Cleanup(server.Close)
	reached, err := cluster.Connect(&rest.Config{Host: server.URL, QPS: -1}, "test")
	if err != nil {
		b.Fatal(err)
	}
	return snapshot.Of(reached)
}

// BenchmarkPods measures how long all pods take, and what of them remains in memory.
func BenchmarkPods(b *testing.B) {
	for name, restarted := range map[string]int{"NeverRestarted": 0, "FifthRestarted": 5} {
		b.Run(name, func(b *testing.B) {
			reached := paged(b, pods(restarted))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				read, err := reached.Pods(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(read)), "kept-B/pod")
			}
		})
	}
}
