package hosted_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/story"
)

// A release has a check for each side: the report states where each ran, and nothing is left on either.
func (w world) testBothSides(t *testing.T) {
	decided := w.report(t, exit.Ready)
	f := findingOf(t, decided, story.ManagementCheck)
	if f.Outcome != preflight.Pass || f.Job == nil || f.Job.Namespace != story.ControlPlane || f.Job.Cluster != "management" {
		t.Errorf("%s: %+v, want a pass of a Job in the management cluster", f.Name, f)
	}
	if f := findingOf(t, decided, "CloudCredentialOperator.CloudPermissions"); f.Job == nil || f.Job.Cluster != "" {
		t.Errorf("%s: %+v, want a Job in the guest", f.Name, f)
	}
	for _, name := range []string{"ReadOnlyGuard", "ReadOnlyGuard-management"} {
		if f := findingOf(t, decided, name); f.Outcome != preflight.Pass {
			t.Errorf("%s: %+v", name, f)
		}
	}
	created := map[string]int{}
	for _, object := range decided.Created {
		created[object.Kind+object.Cluster]++
		if object.Cluster == "management" && object.Namespace != story.ControlPlane && !strings.HasPrefix(object.Kind, "ValidatingAdmission") {
			t.Errorf("%s is outside of the namespace of the control plane", object)
		}
	}
	for kind, want := range map[string]int{ // a policy is about the requests of the checks, and one about their pods
		"Job": 1, "Jobmanagement": 1, "ServiceAccountmanagement": 1, "ValidatingAdmissionPolicy": 2, "ValidatingAdmissionPolicymanagement": 2,
	} {
		if created[kind] != want {
			t.Errorf("created %v, want %d of %s", created, want, kind)
		}
	}
	w.expectNothingLeft(t)
}

// While the check of the management cluster runs, both guards deny what its pods would write; its failure
// blocks the update.
func (w world) testFailsAbove(t *testing.T) {
	defer w.cordon(t, true)()
	node := kubelet.Start(t, kubernetes.NewForConfigOrDie(w.Cluster.Config), story.ControlPlane, preflight.ExitFail)
	done := make(chan report.Report, 1)
	go func() { done <- w.report(t, exit.Blocked) }()
	pod := <-node.Created
	if pod.Labels["hypershift.openshift.io/need-management-kas-access"] != "true" {
		t.Errorf("the pod has the labels %v, by which the network policies of HyperShift deny it the API server", pod.Labels)
	}
	for name, config := range map[string]*rest.Config{"guest": guest.Config, "management cluster": w.Cluster.Config} {
		if err := writeAs(t, config, pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a preflight check only reads") {
			t.Errorf("%s: a write of the pod: %v, want a denial of the guard", name, err)
		}
	}
	node.End()
	f := findingOf(t, <-done, story.ManagementCheck)
	if f.Outcome != preflight.Fail || !strings.Contains(f.Message, "management cluster") {
		t.Errorf("%+v, want a failure that states its cluster", f)
	}
	w.expectNothingLeft(t)
}

// A check without a node to run on is inconclusive, with the cause.
func (w world) testNoNodeAbove(t *testing.T) {
	defer w.cordon(t, true)()
	f := findingOf(t, w.report(t, exit.Undecided, "--timeout", "45s"), story.ManagementCheck)
	if f.Outcome != preflight.Unknown || f.Reason != "NoSchedulableNode" {
		t.Errorf("%+v, want Unknown (NoSchedulableNode)", f)
	}
	w.expectNothingLeft(t)
}

// A killed run leaves objects on both sides. They are not deleted without the guest, which has the Lease; the
// next run continues with them, and "cleanup" deletes them.
func (w world) testKilled(t *testing.T) {
	uncordon := w.cordon(t, true)
	w.kill(t)
	if code, _, stderr := w.call(t, w.Cluster.Kubeconfig, "cleanup", "--all"); code != exit.Failed ||
		!strings.Contains(stderr, "add --hosted-cluster") {
		t.Errorf("cleanup in the management cluster alone: exit code %d, want a refusal\n%s", code, stderr)
	}
	uncordon()
	if f := findingOf(t, w.report(t, exit.Ready), story.ManagementCheck); f.Outcome != preflight.Pass {
		t.Errorf("the next run: %+v", f)
	}
	w.expectNothingLeft(t)

	uncordon = w.cordon(t, true)
	defer uncordon()
	w.kill(t)
	code, stdout, stderr := w.call(t, w.Cluster.Kubeconfig, "cleanup", "--all", "--hosted-cluster", story.HostedCluster)
	if code != exit.Ready || !strings.Contains(stdout, "in the management cluster") {
		t.Errorf("cleanup: exit code %d\n%s%s", code, stdout, stderr)
	}
	w.expectNothingLeft(t)
}

// kill kills a run whose check in the management cluster has a pod.
func (w world) kill(t *testing.T) {
	t.Helper()
	node := kubelet.Start(t, kubernetes.NewForConfigOrDie(w.Cluster.Config), story.ControlPlane, 0)
	run := exec.CommandContext(t.Context(), w.Preflight, w.args()...)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	<-node.Created
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	if w.left(t) == "" {
		t.Error("the killed run left nothing, so the test proves nothing")
	}
}

func (w world) args(more ...string) []string {
	args := w.hosted("run", "--to", story.Patch, "--prometheus", w.Monitoring, "--rerun", "-o", "json", "--kubeconfig", w.Cluster.Kubeconfig)
	return append(args, more...)
}

// report runs the preflight, which must end with that exit code.
func (w world) report(t *testing.T, code int, more ...string) report.Report {
	t.Helper()
	run := exec.CommandContext(t.Context(), w.Preflight, w.args(more...)...)
	var errors strings.Builder
	run.Stderr = &errors
	out, err := run.Output()
	if run.ProcessState == nil || run.ProcessState.ExitCode() != code {
		t.Errorf("exit code %v, want %d: %v\n%s%s", run.ProcessState, code, err, out, errors.String())
	}
	var decided report.Report
	if err := json.Unmarshal(out, &decided); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return decided
}

func findingOf(t *testing.T, decided report.Report, name string) finding.Finding {
	t.Helper()
	for _, f := range decided.Findings {
		if f.Name == name {
			return f
		}
	}
	t.Errorf("the report has no finding %s", name)
	return finding.Finding{}
}

// cordon makes the nodes of the management cluster unschedulable, and returns how to undo it.
func (w world) cordon(t *testing.T, unschedulable bool) (undo func()) {
	t.Helper()
	nodes := kubernetes.NewForConfigOrDie(w.Cluster.Config).CoreV1().Nodes()
	all, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
	for i := range all.Items {
		if _, err := nodes.Patch(t.Context(), all.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return func() { w.cordon(t, false) }
}

// writeAs is a write with the identity of a pod and the permissions of an administrator.
func writeAs(t *testing.T, config *rest.Config, pod *corev1.Pod) error {
	t.Helper()
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + pod.Namespace + ":" + pod.Spec.ServiceAccountName, Groups: []string{"system:masters"},
		Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {pod.Name}},
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}
	_, err := kubernetes.NewForConfigOrDie(as).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
	return err
}

func (w world) expectNothingLeft(t *testing.T) {
	t.Helper()
	if left := w.left(t); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

// left are the runs with objects on either side; empty for none.
func (w world) left(t *testing.T) string {
	t.Helper()
	var left []string
	for name, config := range map[string]*rest.Config{"guest": guest.Config, "management": w.Cluster.Config} {
		reached, err := cluster.Connect(config, "hosted_test")
		if err != nil {
			t.Fatal(err)
		}
		runs, err := cleanup.Runs(t.Context(), inventory.New(reached.Kubernetes, reached.Metadata))
		if err != nil {
			t.Fatal(err)
		}
		for id := range runs {
			left = append(left, name+": "+id)
		}
	}
	return strings.Join(left, ", ")
}
