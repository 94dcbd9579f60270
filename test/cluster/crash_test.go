package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openshift/update-preflight/test/cluster"
)

// TestCrashAndRevive kills each component while a pod runs. After each revival the
// cluster has its objects and completes a Job, and it can still be removed.
func TestCrashAndRevive(t *testing.T) {
	c := start(t)
	image := pushReader(t, c)
	runPod(t, c, "bystander", "hold", "/version")
	bystander := podUID(t, c, "bystander")
	components := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd"}
	for _, component := range components {
		if err := c.Crash(t.Context(), component); err != nil {
			t.Fatal(err)
		}
		if err := c.Crash(t.Context(), component); err == nil || !strings.Contains(err.Error(), "has ended already") {
			t.Errorf("%s: want an error because it has ended already, got %v", component, err)
		}
		if err := c.Revive(t.Context(), component); err != nil {
			t.Fatal(err)
		}
		runJob(t, c, "after-"+component, image)
	}
	if diff := cmp.Diff(bystander, podUID(t, c, "bystander")); diff != "" {
		t.Errorf("the running pod has changed: -before, +after:\n%s", diff)
	}
	for name, tc := range map[string]struct {
		reason string
		got    error
		want   string
	}{
		"Alive": {
			reason: "a second process must not use the same port and directory",
			got:    c.Revive(t.Context(), "etcd"), want: "etcd is running",
		},
		"Unknown": {
			reason: "a misspelled component must not count as a survived crash",
			got:    c.Crash(t.Context(), "apiserver"), want: "this cluster has: containerd, etcd, kube-apiserver,",
		},
		"Foreign": {
			reason: "only the starter has the command of a component",
			got:    opened(t, c).Crash(t.Context(), "etcd"), want: "only the process that has started a cluster",
		},
	} {
		if tc.got == nil || !strings.Contains(tc.got.Error(), tc.want) {
			t.Errorf("%s: %s: want an error with %q, got %v", name, tc.reason, tc.want, tc.got)
		}
	}
	o := ownerOf(t, c)
	things := o.things(t)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-c.Failed():
		t.Errorf("ends that were wanted are reported: %v", err)
	default:
	}
	if diff := cmp.Diff([]string(nil), o.still(t, things)); diff != "" {
		t.Errorf("a stopped cluster with revived components must leave nothing: -want, +got:\n%s", diff)
	}
}

// TestReviveQuotesTheLog holds that the error names a component that does not
// start again, and its log.
func TestReviveQuotesTheLog(t *testing.T) {
	c := start(t, cluster.ControlPlaneOnly())
	if err := c.Crash(t.Context(), "etcd"); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(c.Dir, "etcd")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := c.Revive(t.Context(), "etcd")
	for _, want := range []string{"etcd ended (exit status 1)", filepath.Join(c.Dir, "logs", "etcd.log")} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("etcd without its directory: want an error with %q, got %v", want, err)
		}
	}
}

func opened(t *testing.T, c *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	found, err := cluster.Open(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func podUID(t *testing.T, c *cluster.Cluster, name string) string {
	t.Helper()
	pod, err := clients(t, c).CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(pod.UID)
}

// runJob returns when a Job with one pod is complete, which needs every component
// of the cluster.
func runJob(t *testing.T, c *cluster.Cluster, name, image string) {
	t.Helper()
	jobs := clients(t, c).BatchV1().Jobs("default")
	_, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "reader", Image: image, Args: []string{"read", "/version"},
			}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := jobs.Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + name, TimeoutSeconds: new(int64(120)), // bounds the wait for a broken cluster
	})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if ended(t, event) {
			return
		}
	}
	t.Fatalf("Job %s did not complete", name)
}

// ended reports whether a Job is complete.
func ended(t *testing.T, event watch.Event) bool {
	t.Helper()
	job, ok := event.Object.(*batchv1.Job)
	if !ok {
		return false
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		if condition.Type == batchv1.JobFailed {
			t.Fatalf("Job %s failed: %s", job.Name, condition.Message)
		}
		if condition.Type == batchv1.JobComplete {
			return true
		}
	}
	return false
}
