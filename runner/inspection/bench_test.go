package inspection_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/inspection"
)

// The size of the cluster that is read.
const (
	workloads = 5000
	replicas  = 5
)

// pages are the responses of an API server in files of a directory, so that the process that reads them does not keep them.
type pages string

func (p pages) file(path, from string) string {
	return filepath.Join(string(p), strings.ReplaceAll(path, "/", "_")+from)
}

// add adds a list of that many items in pages; of makes one of the items in a range.
func (p pages) add(b *testing.B, path string, items int, of func(from, to int) (kruntime.Object, *metav1.ListMeta)) {
	b.Helper()
	const page = 500
	for from := 0; from < items; from += page {
		list, meta := of(from, min(from+page, items))
		if from+page < items {
			meta.Continue = fmt.Sprint(from + page)
		}
		kinds, _, err := scheme.Scheme.ObjectKinds(list)
		if err != nil {
			b.Fatal(err)
		}
		list.GetObjectKind().SetGroupVersionKind(kinds[0])
		var body bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &body); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p.file(path, fmt.Sprint(from)), body.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		_, _ = w.Write([]byte(`{"gitVersion":"v1.31.1"}`))
		return
	case "/apis/config.openshift.io/v1/clusterversions/version":
		w.Header().Set("Content-Type", kruntime.ContentTypeJSON)
		_, _ = w.Write([]byte(
			`{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version","generation":1},"spec":{"clusterID":"a"},"status":{"observedGeneration":1,"desired":{"version":"4.18.2"},"history":[
			{"state":"Completed","version":"4.18.2","startedTime":"2026-01-02T10:00:00Z","completionTime":"2026-01-02T11:00:00Z"},{"state":"Completed","version":"4.18.1","startedTime":"2026-01-01T10:00:00Z","completionTime":"2026-01-01T11:00:00Z"}]}}`))
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/") { // there is no run
		w.Header().Set("Content-Type", kruntime.ContentTypeJSON)
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMapList","items":[]}`))
		return
	}
	found, err := os.Open(p.file(r.URL.Path, cmp.Or(r.URL.Query().Get("continue"), "0")))
	if err != nil {
		w.Header().Set("Content-Type", kruntime.ContentTypeJSON)
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		return
	}
	defer func() { _ = found.Close() }()
	w.Header().Set("Content-Type", kruntime.ContentTypeProtobuf)
	if _, err := found.WriteTo(w); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func metaOf(i int, suffix string) metav1.ObjectMeta {
	name := fmt.Sprintf("workload-%04d", i)
	made := metav1.ObjectMeta{
		Namespace: fmt.Sprintf("team-%03d", i%200), Name: name + suffix, UID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)),
		Labels:            map[string]string{"app": name},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Operation: "Update", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:metadata":{"f:labels":{}}}`, 60)),
		}},
	}
	return made
}

func ownedBy(meta metav1.ObjectMeta, kind, name string) metav1.ObjectMeta {
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "a", Controller: new(true)}}
	return meta
}

// containers are those of one pod, with the content that they usually have.
func containers() []corev1.Container {
	var all []corev1.Container
	for _, name := range []string{"app", "proxy"} {
		of := corev1.Container{
			Name: name, Image: "registry.example.com/" + name + "@sha256:" + strings.Repeat("0", 64),
			Command: []string{"/bin/" + name},
		}
		for i := range 20 {
			of.Env = append(of.Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", i), Value: strings.Repeat("v", 40)})
		}
		all = append(all, of)
	}
	return all
}

func podOf(i int) corev1.Pod {
	workload := i / replicas
	pod := corev1.Pod{ObjectMeta: ownedBy(metaOf(workload, fmt.Sprintf("-7d9f-%05d", i)), "ReplicaSet",
		fmt.Sprintf("workload-%04d-7d9f", workload))}
	pod.Labels["pod-template-hash"] = "7d9f"
	pod.Spec = corev1.PodSpec{NodeName: fmt.Sprintf("worker-%03d", i%500), Containers: containers()}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &pod.CreationTimestamp,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for _, of := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: of.Name, Ready: true, Image: of.Image, ImageID: of.Image, ContainerID: "cri-o://" + strings.Repeat("0", 64),
			RestartCount: int32(1 - min(1, i%replicas)),
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				FinishedAt: pod.CreationTimestamp,
				Reason:     "Error",
			}},
		})
	}
	return pod
}

func sliceOf(i int) discoveryv1.EndpointSlice {
	made := discoveryv1.EndpointSlice{ObjectMeta: metaOf(i, "-abcde"), AddressType: discoveryv1.AddressTypeIPv4}
	made.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("workload-%04d", i)}
	for range replicas {
		made.Endpoints = append(made.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{"10.128.0.1"},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return made
}

// items are those of a range.
func items[T any](from, to int, of func(i int) T) []T {
	var all []T
	for i := from; i < to; i++ {
		all = append(all, of(i))
	}
	return all
}

// largeCluster serves 5000 Deployments with a Service and 5 pods each, and 500 nodes.
func largeCluster(b *testing.B) *cluster.Cluster {
	b.Helper()
	made := pages(b.TempDir())
	made.add(b, "/api/v1/pods", workloads*replicas, func(from, to int) (kruntime.Object, *metav1.ListMeta) {
		list := &corev1.PodList{Items: items(from, to, podOf)}
		return list, &list.ListMeta
	})
	made.add(b, "/apis/discovery.k8s.io/v1/endpointslices", workloads, func(from, to int) (kruntime.Object, *metav1.ListMeta) {
		list := &discoveryv1.EndpointSliceList{Items: items(from, to, sliceOf)}
		return list, &list.ListMeta
	})
	made.add(b, "/api/v1/services", workloads, func(from, to int) (kruntime.Object, *metav1.ListMeta) {
		list := &corev1.ServiceList{Items: items(from, to, func(i int) corev1.Service {
			meta := metaOf(i, "")
			return corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: 443}}}}
		})}
		return list, &list.ListMeta
	})
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers()}}
	made.add(b, "/apis/apps/v1/deployments", workloads, func(from, to int) (kruntime.Object, *metav1.ListMeta) {
		list := &appsv1.DeploymentList{Items: items(from, to, func(i int) appsv1.Deployment {
			return appsv1.Deployment{
				ObjectMeta: metaOf(i, ""), Spec: appsv1.DeploymentSpec{Replicas: new(int32(replicas)), Template: template},
				Status: appsv1.DeploymentStatus{ReadyReplicas: replicas, UpdatedReplicas: replicas},
			}
		})}
		return list, &list.ListMeta
	})
	made.add(b, "/api/v1/nodes", 500, func(from, to int) (kruntime.Object, *metav1.ListMeta) {
		list := &corev1.NodeList{Items: items(from, to, func(i int) corev1.Node {
			return corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%03d", i)},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
			}
		})}
		return list, &list.ListMeta
	})
	server := httptest.NewServer(made)
	b.Cleanup(server.Close)
	reached, err := cluster.Connect(&rest.Config{Host: server.URL, QPS: -1}, "test")
	if err != nil {
		b.Fatal(err)
	}
	return reached
}

// gcPercent is that of the program.
const gcPercent = 30

// BenchmarkLook measures two looks at a large cluster, as the verb "after" makes them, with the CPU of the server, which sends files.
func BenchmarkLook(b *testing.B) {
	reached := largeCluster(b)
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	none := func(context.Context) (*rest.Config, error) { return nil, errors.New("there is no monitoring") }
	for b.Loop() {
		debug.FreeOSMemory()
		began, stop := processorTime(b), make(chan struct{})
		peak := watch(stop)
		inspected := inspection.New(reached, inspection.Options{Monitoring: none})
		for range 2 {
			made, err := inspected.Look(b.Context())
			if err != nil || made.Counts.Good < 2*workloads {
				b.Fatalf("%+v: %v", made.Counts, err)
			}
		}
		b.ReportMetric((processorTime(b) - began).Seconds(), "s-CPU")
		close(stop)
		b.ReportMetric(<-peak, "MiB-peak")
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// watch sends the most memory that the process has had in use until stop is closed, in MiB.
func watch(stop <-chan struct{}) <-chan float64 {
	peak := make(chan float64, 1)
	go func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for most := uint64(0); ; {
			metrics.Read(used)
			most = max(most, used[0].Value.Uint64()-used[1].Value.Uint64())
			select {
			case <-ticker.C:
			case <-stop:
				peak <- float64(most) / (1 << 20)
				return
			}
		}
	}()
	return peak
}
