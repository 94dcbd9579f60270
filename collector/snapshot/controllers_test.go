package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A ReplicaSet has the template of its pods, without what they run, unless it has no pods and is to have none.
func TestReplicaSetsHaveTemplatesOfPods(t *testing.T) {
	template := func(image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "a", Containers: []corev1.Container{{Name: "c", Image: image}}}}
	}
	list := &appsv1.ReplicaSetList{}
	add := func(name string, replicas *int32, pods int32) {
		list.Items = append(list.Items, appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.ReplicaSetSpec{Replicas: replicas, Template: template("example.com/image")}, Status: appsv1.ReplicaSetStatus{Replicas: pods},
		})
	}
	add("present", new(int32(3)), 3)
	add("earlier", new(int32(0)), 0)
	add("scaled-down", new(int32(0)), 1)
	add("default", nil, 0)
	for _, kind := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		found, err := snapshotOf(t, kind, list).ReplicaSets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]corev1.PodTemplateSpec{}
		for _, set := range found {
			got[set.Name] = set.Spec.Template
		}
		want := map[string]corev1.PodTemplateSpec{"present": template(""), "earlier": {}, "scaled-down": template(""), "default": template("")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", kind, diff)
		}
	}
}
