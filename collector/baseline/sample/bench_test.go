package sample_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// lists are the bodies of responses, by the path and the token of the page.
type lists map[string][]byte

// page is the number of objects of a response.
const page = 500

// add adds a list in pages; of makes one of some of the items.
func add[T any](b *testing.B, to lists, path string, items []T, of func([]T, metav1.ListMeta) runtime.Object) {
	b.Helper()
	for from := 0; from < len(items); from += page {
		meta := metav1.ListMeta{}
		if from+page < len(items) {
			meta.Continue = fmt.Sprint(from + page)
		}
		list := of(items[from:min(from+page, len(items))], meta)
		kinds, _, err := scheme.Scheme.ObjectKinds(list)
		if err != nil {
			b.Fatal(err)
		}
		list.GetObjectKind().SetGroupVersionKind(kinds[0])
		var body bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &body); err != nil {
			b.Fatal(err)
		}
		to[path+fmt.Sprint(from)] = body.Bytes()
	}
}

func (l lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if body, ok := l[r.URL.Path]; ok {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write(body)
		return
	}
	body, ok := l[r.URL.Path+cmp.Or(r.URL.Query().Get("continue"), "0")]
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	if !ok {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		w.WriteHeader(http.StatusNotFound)
		body = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
	_, _ = w.Write(body)
}

// large has 5000 Deployments with a Service and 5 pods each, in 200 namespaces.
func large(b *testing.B) lists {
	b.Helper()
	const workloads, replicas = 5000, 5
	var pods []corev1.Pod
	var deployments []appsv1.Deployment
	var services []corev1.Service
	var slices []discoveryv1.EndpointSlice
	for i := range workloads {
		meta := metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%03d", i%200), Name: fmt.Sprintf("workload-%04d", i),
			CreationTimestamp: metav1.NewTime(now()), Labels: map[string]string{"app": fmt.Sprint(i), "pod-template-hash": "7d9f"},
		}
		owned := func(kind, name, suffix string) metav1.ObjectMeta {
			of := meta
			of.Name += suffix
			of.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: new(true)}}
			return of
		}
		status := appsv1.DeploymentStatus{ReadyReplicas: replicas, UpdatedReplicas: replicas}
		deployments = append(deployments, appsv1.Deployment{
			ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(replicas))},
			Status: status,
		})
		services = append(services, corev1.Service{
			ObjectMeta: meta,
			Spec:       corev1.ServiceSpec{Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: 443}}},
		})
		slice := discoveryv1.EndpointSlice{ObjectMeta: meta}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: meta.Name}
		for j := range replicas {
			pod := corev1.Pod{
				ObjectMeta: owned("ReplicaSet", meta.Name+"-7d9f", fmt.Sprint("-", j)),
				Status:     corev1.PodStatus{Phase: corev1.PodRunning},
			}
			for range 2 {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c", RestartCount: int32(i % 3)})
			}
			pods = append(pods, pod)
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: new(i%10 > 0)}})
		}
		slices = append(slices, slice)
	}
	all := lists{}
	add(b, all, "/api/v1/pods", pods, func(items []corev1.Pod, meta metav1.ListMeta) runtime.Object {
		return &corev1.PodList{ListMeta: meta, Items: items}
	})
	add(b, all, "/api/v1/services", services, func(items []corev1.Service, meta metav1.ListMeta) runtime.Object {
		return &corev1.ServiceList{ListMeta: meta, Items: items}
	})
	add(b, all, "/apis/apps/v1/deployments", deployments, func(items []appsv1.Deployment, meta metav1.ListMeta) runtime.Object {
		return &appsv1.DeploymentList{ListMeta: meta, Items: items}
	})
	add(b, all, "/apis/discovery.k8s.io/v1/endpointslices", slices,
		func(items []discoveryv1.EndpointSlice, meta metav1.ListMeta) runtime.Object {
			return &discoveryv1.EndpointSliceList{ListMeta: meta, Items: items}
		})
	text, err := yaml.YAMLToJSON([]byte(version))
	if err != nil {
		b.Fatal(err)
	}
	all["/apis/config.openshift.io/v1/clusterversions/version"] = text
	return all
}

// BenchmarkTake measures a sample of a large cluster, of which the snapshot has read everything before.
func BenchmarkTake(b *testing.B) {
	server := httptest.NewServer(large(b))
	b.Cleanup(server.Close)
	api, err := cluster.Connect(&rest.Config{Host: server.URL, QPS: -1}, "test")
	if err != nil {
		b.Fatal(err)
	}
	of := snapshot.Of(api)
	b.ReportAllocs()
	for range 2 { // the second one reads nothing
		state, err := sample.Take(b.Context(), of, nil, nil, now())
		if err != nil || len(state.Objects) < 10000 || len(state.Unread) > 2 { // the alerts, and the kinds without a row
			b.Fatalf("%d objects, %v: %v", len(state.Objects), state.Unread, err)
		}
	}
	for b.Loop() {
		if _, err := sample.Take(b.Context(), of, nil, nil, now()); err != nil {
			b.Fatal(err)
		}
	}
}
