package snapshot_test

import (
	"context"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/openshift/update-preflight/collector/snapshot"
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
			Spec:       appsv1.ReplicaSetSpec{Replicas: replicas, Template: template("example.com/image")},
			Status:     appsv1.ReplicaSetStatus{Replicas: pods},
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

// Nothing of a controller is lost but what its pods run, and none has what is another's with the same spec of pods.
func TestControllersKeepWhatIsRead(t *testing.T) {
	const seed, count = 1, 100
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	sets, states, controllers, jobs := &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}, &corev1.ReplicationControllerList{},
		&batchv1.JobList{}
	for i := range count {
		var set appsv1.ReplicaSet
		var state appsv1.StatefulSet
		var controller corev1.ReplicationController
		var job batchv1.Job
		random.Fill(&set)
		random.Fill(&state)
		random.Fill(&controller)
		random.Fill(&job)
		set.Spec.Replicas, controller.Spec.Template = new(int32(1)), &corev1.PodTemplateSpec{}
		random.Fill(controller.Spec.Template)
		if i%2 > 0 { // a revision of the one before
			sets.Items[i-1].Spec.Template.Spec.DeepCopyInto(&set.Spec.Template.Spec)
			set.Spec.MinReadySeconds = sets.Items[i-1].Spec.MinReadySeconds
			states.Items[i-1].Spec.DeepCopyInto(&state.Spec)
			controllers.Items[i-1].Spec.DeepCopyInto(&controller.Spec)
			jobs.Items[i-1].Spec.DeepCopyInto(&job.Spec)
			random.Fill(&job.Spec.Template.ObjectMeta)
		}
		sets.Items, states.Items = append(sets.Items, set), append(states.Items, state)
		controllers.Items, jobs.Items = append(controllers.Items, controller), append(jobs.Items, job)
	}
	deployments, daemons := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
	for range count {
		var deployment appsv1.Deployment
		var daemon appsv1.DaemonSet
		random.Fill(&deployment)
		random.Fill(&daemon)
		deployments.Items, daemons.Items = append(deployments.Items, deployment), append(daemons.Items, daemon)
	}
	expect(t, deployments, deployments.Items, (*snapshot.Cluster).Deployments,
		func(of *appsv1.Deployment) *corev1.PodTemplateSpec { return &of.Spec.Template })
	expect(t, daemons, daemons.Items, (*snapshot.Cluster).DaemonSets,
		func(of *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &of.Spec.Template })
	expect(t, sets, sets.Items, (*snapshot.Cluster).ReplicaSets,
		func(of *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &of.Spec.Template })
	expect(t, states, states.Items, (*snapshot.Cluster).StatefulSets,
		func(of *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &of.Spec.Template })
	expect(t, controllers, controllers.Items, (*snapshot.Cluster).ReplicationControllers,
		func(of *corev1.ReplicationController) *corev1.PodTemplateSpec { return of.Spec.Template })
	expect(t, jobs, jobs.Items, (*snapshot.Cluster).Jobs, func(of *batchv1.Job) *corev1.PodTemplateSpec { return &of.Spec.Template })
}

// expect reads a list in both encodings, and compares it with what it has without what the pods run.
func expect[T any](t *testing.T, list runtime.Object, items []T, read func(*snapshot.Cluster, context.Context) ([]T, error),
	template func(*T) *corev1.PodTemplateSpec,
) {
	t.Helper()
	for kind, encoded := range map[string]*snapshot.Cluster{ // before the items are changed
		runtime.ContentTypeProtobuf: snapshotOf(t, runtime.ContentTypeProtobuf, list),
		runtime.ContentTypeJSON:     snapshotOf(t, runtime.ContentTypeJSON, list),
	} {
		got, err := read(encoded, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range items {
			want := items[i]
			spec := &template(&want).Spec
			dropContent(spec)
			dropFiles(spec)
			if of, ok := any(&want).(metav1.Object); ok {
				of.SetManagedFields(nil)
			}
			if diff := cmp.Diff(want, got[i], decoded(), cmpopts.IgnoreFields(metav1.TypeMeta{}, "Kind", "APIVersion")); diff != "" {
				t.Fatalf("%s, %T %d: -want +got:\n%s", kind, want, i, diff)
			}
		}
	}
}

// dropFiles drops the names of the files in the volumes of a pod.
func dropFiles(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if volume.ConfigMap != nil {
			volume.ConfigMap.Items = nil
		}
		if volume.Secret != nil {
			volume.Secret.Items = nil
		}
		if volume.Projected != nil {
			volume.Projected.Sources = nil
		}
		if volume.DownwardAPI != nil {
			volume.DownwardAPI.Items = nil
		}
	}
}
