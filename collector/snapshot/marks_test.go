package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pods of the cluster itself have the keys of foreign annotations, each its own, and other pods have none.
func TestPodsKeepMarks(t *testing.T) {
	const network, patches = `{"default":{"ip_addresses":["10.128.0.1/23"]}}`, "policies.kyverno.io/last-applied-patches"
	type annotations = map[string]string
	list, want := &corev1.PodList{}, map[string]annotations{}
	for _, tc := range []struct {
		reason, namespace string
		has, want         annotations
	}{
		{
			reason: "values of foreign ones are dropped", namespace: "openshift-dns", has: annotations{patches: "long"},
			want: annotations{patches: ""},
		},
		{reason: "SCCs are kept", namespace: "openshift-dns", has: annotations{
			"openshift.io/scc":          "anyuid",
			"openshift.io/required-scc": "anyuid",
		}, want: annotations{"openshift.io/scc": "anyuid", "openshift.io/required-scc": "anyuid"}},
		{
			reason: "another pod of the same controller", namespace: "openshift-dns", has: annotations{"openshift.io/scc": "restricted-v2"},
			want: annotations{"openshift.io/scc": "restricted-v2"},
		},
		{reason: "none is kept of it", namespace: "openshift-dns", has: annotations{
			"k8s.ovn.org/pod-networks":          network,
			"kubectl.kubernetes.io/restartedAt": "a", "k8s.v1.cni.cncf.io/network-status": network, "plain": "b",
		}},
		{
			reason: "a domain that only ends as one of Kubernetes", namespace: "kube-system",
			has: annotations{"notk8s.io/a": "b", "x.k8s.io/a": "b"}, want: annotations{"notk8s.io/a": ""},
		},
		{
			reason: "a static pod", namespace: "openshift-etcd", has: annotations{corev1.MirrorPodAnnotationKey: "1", "a.example/b": "c"},
			want: annotations{corev1.MirrorPodAnnotationKey: "1"},
		},
		{reason: "a pod of a user", namespace: "team", has: annotations{"openshift.io/scc": "anyuid", patches: "long"}},
		{reason: "a name that only begins as that of the platform", namespace: "openshifty", has: annotations{patches: "long"}},
		{reason: "no annotations", namespace: "openshift-dns"},
	} {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: tc.namespace, Name: tc.reason, Annotations: tc.has,
			Labels: map[string]string{"app": "a"},
		}})
		want[tc.reason] = tc.want
	}
	for _, kind := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		found, err := snapshotOf(t, kind, list.DeepCopy()).Pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]annotations{}
		for i := range found {
			got[found[i].Name] = found[i].Annotations
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", kind, diff)
		}
	}
}

// A DaemonSet has the template of its pods, without what they run.
func TestDaemonSetsHaveTemplatesOfPods(t *testing.T) {
	set := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}}}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"a.example/b": "c"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "registry.example.com/a", Command: []string{"a"}}}},
	}
	want := *set.DeepCopy()
	want.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a"}}
	for _, kind := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		found, err := snapshotOf(t, kind, &appsv1.DaemonSetList{Items: []appsv1.DaemonSet{set}}).DaemonSets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]appsv1.DaemonSet{want}, found); diff != "" {
			t.Errorf("%s: -want +got:\n%s", kind, diff)
		}
	}
}
