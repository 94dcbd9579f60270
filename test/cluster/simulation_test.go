package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/cluster"
)

// The real controllers complete a Job on simulated nodes, whose pod has the
// termination message of its annotation.
func TestSimulatedNodesRunJobs(t *testing.T) {
	local := start(t, cluster.KWOK(2), cluster.ControllerRate(150, 300), cluster.QuickScheduler())
	c := clients(t, local)
	const message = "line \"one\"\nline two\n"
	_, err := c.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "annotated"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cluster.AnnotationTakes: "10ms", cluster.AnnotationMessage: message}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "check", Image: "registry.example.com/nothing"}},
			},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	jobs := cache.NewListWatchFromClient(c.BatchV1().RESTClient(), "jobs", "default", fields.Everything())
	_, err = watchtools.UntilWithSync(ctx, jobs, &batchv1.Job{}, nil, func(event watch.Event) (bool, error) {
		job, ok := event.Object.(*batchv1.Job)
		return ok && job.Status.CompletionTime != nil, nil
	})
	if err != nil {
		t.Fatalf("the Job does not complete: %v", err)
	}
	pods, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, want one: %v", len(pods.Items), err)
	}
	status := pods.Items[0].Status
	if len(status.ContainerStatuses) != 1 || status.ContainerStatuses[0].State.Terminated == nil {
		t.Fatalf("no container ended: %+v", status)
	}
	end := status.ContainerStatuses[0].State.Terminated
	if end.ExitCode != 0 || end.FinishedAt.IsZero() {
		t.Errorf("want exit code 0 and the time of the end, got %+v", end)
	}
	if diff := cmp.Diff(message, end.Message); diff != "" {
		t.Errorf("termination message: -want, +got:\n%s", diff)
	}
	for _, condition := range status.Conditions {
		if condition.Type == corev1.PodReady {
			if _, err := time.Parse(time.RFC3339Nano, condition.Message); err != nil {
				t.Errorf("the condition Ready must have the exact time of the end: %v", err)
			}
		}
	}
	t.Run("the scheduler serves its queues", func(t *testing.T) { showsQueues(t, local) })
}

// showsQueues creates a pod that no node is suitable for, and reads the queues of the scheduler.
func showsQueues(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	_, err := clients(t, c).CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "nowhere"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"no": "node"},
			Containers:   []corev1.Container{{Name: "c", Image: "registry.example.com/nothing"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the pod in the queue of those that are tried after a change", func(ctx context.Context) bool {
		queues, err := c.Unscheduled(ctx)
		if err != nil {
			t.Error(err)
		}
		return queues["active"]+queues["backoff"]+queues["gated"] == 0 && queues["unschedulable"] == 1
	})
}
