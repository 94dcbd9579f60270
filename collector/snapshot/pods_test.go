package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// responding is a server that responds to each request with the same.
func responding(tb testing.TB, kind string, body func() []byte) *rest.Config {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body())
	}))
	tb.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// snapshotOf is a snapshot of a server that responds with a list.
func snapshotOf(tb testing.TB, kind string, list runtime.Object) *snapshot.Cluster {
	tb.Helper()
	var body bytes.Buffer
	kinds, _, err := scheme.Scheme.ObjectKinds(list)
	if err != nil {
		tb.Fatal(err)
	}
	list.GetObjectKind().SetGroupVersionKind(kinds[0])
	err = json.NewEncoder(&body).Encode(list)
	if kind == runtime.ContentTypeProtobuf {
		body.Reset()
		err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &body)
	}
	if err != nil {
		tb.Fatal(err)
	}
	reached, err := cluster.Connect(responding(tb, kind, body.Bytes), "test")
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot.Of(reached)
}

// kept is a pod without what is dropped.
func kept(pod corev1.Pod) corev1.Pod {
	meta, spec, status := &pod.ObjectMeta, &pod.Spec, &pod.Status
	meta.ManagedFields, meta.GenerateName, meta.ResourceVersion, meta.UID = nil, "", "", ""
	mirror, ok := meta.Annotations[corev1.MirrorPodAnnotationKey]
	if meta.Annotations = nil; ok {
		meta.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: mirror}
	}
	spec.EphemeralContainers, spec.HostAliases, spec.ImagePullSecrets, spec.DNSConfig, spec.ReadinessGates = nil, nil, nil, nil, nil
	dropContent(spec)
	volumes := spec.Volumes
	spec.Volumes = nil
	for _, volume := range volumes {
		if volume.ConfigMap == nil && volume.Secret == nil && volume.Projected == nil && volume.DownwardAPI == nil && volume.EmptyDir == nil {
			spec.Volumes = append(spec.Volumes, volume)
		}
	}
	for i := range status.Conditions {
		status.Conditions[i] = corev1.PodCondition{
			Type: status.Conditions[i].Type, Status: status.Conditions[i].Status,
			Reason: status.Conditions[i].Reason,
		}
	}
	status.Message, status.HostIP, status.HostIPs, status.PodIP, status.PodIPs, status.ObservedGeneration = "", "", nil, "", nil, 0
	status.EphemeralContainerStatuses, status.ResourceClaimStatuses = nil, nil
	status.ContainerStatuses, status.InitContainerStatuses = disturbed(status.ContainerStatuses), disturbed(status.InitContainerStatuses)
	return pod
}

// disturbed are what is kept of the containers that wait or have restarted.
func disturbed(containers []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, of := range containers {
		state := corev1.ContainerStatus{RestartCount: of.RestartCount}
		if of.State.Waiting != nil {
			state.State.Waiting = &corev1.ContainerStateWaiting{Reason: of.State.Waiting.Reason}
		}
		if ended := of.LastTerminationState.Terminated; ended != nil && of.RestartCount > 0 {
			state.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ended.FinishedAt}
		}
		if of.RestartCount > 0 || of.State.Waiting != nil && of.State.Waiting.Reason != "" {
			kept = append(kept, state)
		}
	}
	return kept
}

// decoded are the differences that an encoding makes.
func decoded() cmp.Option {
	return cmp.Options{cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }), cmpopts.EquateEmpty()}
}

// dropContent drops what the containers of a pod run.
func dropContent(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			of := &containers[i]
			containers[i] = corev1.Container{
				Name: of.Name, Ports: of.Ports, Resources: of.Resources, ResizePolicy: of.ResizePolicy, RestartPolicy: of.RestartPolicy,
				RestartPolicyRules: of.RestartPolicyRules,
				SecurityContext:    of.SecurityContext, StartupProbe: of.StartupProbe, Stdin: of.Stdin, StdinOnce: of.StdinOnce, TTY: of.TTY,
			}
		}
	}
}

// Nothing of a pod is lost but what no check reads, and no pod has what is another's, in both encodings.
func TestPodsKeepWhatIsRead(t *testing.T) {
	const seed, count = 1, 300
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	list := &corev1.PodList{Items: make([]corev1.Pod, count)}
	for i := range list.Items {
		pod := &list.Items[i]
		random.Fill(&pod.ObjectMeta)
		random.Fill(&pod.Spec)
		random.Fill(&pod.Status)
		if i%3 > 0 { // of the same controller as the pod before
			pod.Namespace, pod.Labels, pod.OwnerReferences, pod.Annotations = list.Items[i-1].Namespace, list.Items[i-1].Labels,
				list.Items[i-1].OwnerReferences, nil
			own := pod.Spec
			list.Items[i-1].Spec.DeepCopyInto(&pod.Spec)
			pod.Spec.NodeName, pod.Spec.Hostname, pod.Spec.Affinity, pod.Spec.Volumes = own.NodeName, own.Hostname, own.Affinity, own.Volumes
			list.Items[i-1].Status.DeepCopyInto(&pod.Status)
		}
		if i%5 == 0 {
			pod.Annotations = map[string]string{"a": "b", corev1.MirrorPodAnnotationKey: fmt.Sprint(i)}
		}
	}
	for _, kind := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(kind, func(t *testing.T) {
			got, err := snapshotOf(t, kind, list.DeepCopy()).Pods(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if diff := cmp.Diff(kept(*list.Items[i].DeepCopy()), got[i], decoded()); diff != "" {
					t.Fatalf("pod %d: -want +got:\n%s", i, diff)
				}
			}
		})
	}
}

// An object that cannot be decoded is an error that names it, so that no list has a part of the objects.
func TestUndecodablePodIsNamed(t *testing.T) {
	body := []byte(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"namespace":"a","name":"b"},"spec":{"priority":"much"}}]}`)
	reached, err := cluster.Connect(responding(t, runtime.ContentTypeJSON, func() []byte { return body }), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Of(reached).Pods(t.Context()); err == nil || !strings.Contains(err.Error(), "pods a/b cannot be decoded") {
		t.Errorf("error %v, want one that names pod a/b", err)
	}
}

// FuzzPods reads what client-go reads from the same response, and nothing else.
func FuzzPods(f *testing.F) {
	var body []byte
	config := responding(f, runtime.ContentTypeProtobuf, func() []byte { return body })
	client := kubernetes.NewForConfigOrDie(config)
	reached, err := cluster.Connect(config, "test")
	if err != nil {
		f.Fatal(err)
	}
	var seed bytes.Buffer
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"b": "c"}},
			Spec:       corev1.PodSpec{NodeName: "d", Containers: []corev1.Container{{Name: "e", Image: "f"}}},
		},
		{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
			Name:         "h",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/i"}},
		}}}},
	}}
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &seed); err != nil {
		f.Fatal(err)
	}
	f.Add(seed.Bytes())
	f.Fuzz(func(t *testing.T, response []byte) {
		body = response
		want, wantErr := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if wantErr != nil || want.Continue != "" {
			return
		}
		got, err := snapshot.Of(reached).Pods(t.Context())
		if err == nil && len(got) != len(want.Items) {
			t.Errorf("%d pods, client-go has read %d", len(got), len(want.Items))
		}
		for i := range got {
			if got[i].Name != want.Items[i].Name || got[i].Namespace != want.Items[i].Namespace ||
				got[i].Spec.NodeName != want.Items[i].Spec.NodeName {
				t.Errorf("pod %d is %s/%s, client-go has read %s/%s", i, got[i].Namespace, got[i].Name, want.Items[i].Namespace, want.Items[i].Name)
			}
		}
	})
}
