package commands_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/test/exit"
)

// --keep leaves the Jobs for inspection.
func TestKeepLeavesTheJobs(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	newKubelet(t, 0).End()
	result := runPreflight(t, exit.Ready, "--to", to, "--keep")
	if left := testCluster.Left(t, label.Run+"="+result.Run.ID); !slices.Contains(left,
		"jobs/"+zooNamespace+"/healthy-"+label.Suffix(result.Run.ID)) {
		t.Errorf("the Job was deleted, %q remain", left)
	}
	got := call(t, "cleanup", result.Run.ID)
	if got.Code != exit.Ready || !strings.Contains(got.Stdout, result.Run.ID) {
		t.Errorf("cleanup: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	// The report lists the objects to delete: Job, account and guard.
	if len(result.Created) != 6 {
		t.Errorf("created %+v, want a Job, a ServiceAccount, and two policies with their bindings", result.Created)
	}
	for _, object := range result.Created {
		if !strings.Contains(got.Stdout, "deleted "+object.Kind+" ") || !strings.Contains(got.Stdout, object.Name+"\n") {
			t.Errorf("%s %s was created, but not reported as deleted:\n%s", object.Kind, object.Name, got.Stdout)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// A killed run leaves its objects, which "cleanup" finds by their label. While the run is
// alive, its objects are not deleted.
func TestCleanupAfterAKilledRun(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"sleepy": {Plain: true}})
	node := newKubelet(t, 0)
	run := startProcess(t, "run", "--to", to)
	firstPod(t, node, run)
	if got := call(t, "cleanup", "--all"); got.Code != exit.Failed || got.Stdout != "" ||
		!strings.Contains(got.Stderr, "is in progress: ") || !strings.Contains(got.Stderr, "oc preflight cancel ") {
		t.Errorf("cleanup of a run in progress: exit code %d, %s%s; want its holder, and nothing deleted", got.Code, got.Stdout, got.Stderr)
	}
	run.Kill()
	if left := testCluster.Left(t, ""); !slices.ContainsFunc(left,
		func(name string) bool { return strings.HasPrefix(name, "jobs/"+zooNamespace+"/sleepy-") }) {
		t.Fatalf("the killed run left no Job, so the test proves nothing: %q", left)
	}
	if got := call(t, "cleanup", "--all"); got.Code != exit.Ready || !strings.Contains(got.Stdout, "has no objects in the cluster") ||
		!strings.Contains(got.Stdout, "deleted ValidatingAdmissionPolicyBinding ") ||
		!strings.Contains(got.Stdout, "deleted Pod "+zooNamespace+"/sleepy-") {
		t.Errorf("cleanup: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	testCluster.ExpectNothingLeft(t)
	if got := call(t, "cleanup", "--all"); got.Code != exit.Ready || !strings.Contains(got.Stdout, "no run has objects in the cluster") {
		t.Errorf("cleanup without objects: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// A run never has more checks without a result than --parallelism allows.
func TestParallelismIsLimited(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"one": {Plain: true}, "two": {Plain: true}, "three": {Plain: true}})
	node := newKubelet(t, 0)
	pods := testCluster.Client(t).CoreV1().Pods(zooNamespace)
	node.Code = func(pod *corev1.Pod) int32 {
		all, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: label.Run})
		if err != nil {
			t.Error(err)
			return 0
		}
		running := slices.DeleteFunc(all.Items, func(other corev1.Pod) bool { return other.Status.Phase == corev1.PodSucceeded })
		if len(running) != 1 {
			t.Errorf("%d pods have not ended when %s ends, want 1", len(running), pod.Name)
		}
		return 0
	}
	node.End()
	runPreflight(t, exit.Ready, "--to", to, "--parallelism", "1")
	if got := node.Pods(); got != 3 {
		t.Errorf("%d pods, want 3", got)
	}
}
