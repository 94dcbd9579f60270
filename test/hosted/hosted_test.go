package hosted_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/hostedruns"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/script"
)

// The story of `make hosted-demo`, and what follows it: both sides are judged, the guest has the record, and
// one that cannot be reached is one finding.
func TestHostedCluster(t *testing.T) {
	w := startWorld(t)
	err := script.Hosted(t.Context(), w.Terminal, guest)
	t.Logf("%s", w.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"annotate hostedcluster example hypershift.openshift.io/force-upgrade-to-", "NodePoolSkew (NodePoolTooOld)",
		"PodDisruptionBudget-shop.orders (NeverSatisfied)",
		"HyperShift would refuse this update", "BLOCKED", "READY", "HyperShift would accept this update",
	} {
		if !strings.Contains(w.out.String(), want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
	t.Run("Status", w.testStatus) // of the last run of the story, which is Ready
	t.Run("After", w.testAfter)
	t.Run("BothSides", w.testBothSides)
	t.Run("FailsAbove", w.testFailsAbove)
	t.Run("NoNodeAbove", w.testNoNodeAbove)
	t.Run("Plan", w.testPlan)
	t.Run("Drains", w.testDrains)
	t.Run("Controller", w.testController)
	t.Run("Killed", w.testKilled)
	t.Run("Unreachable", w.testUnreachable)
}

func (w world) hosted(args ...string) []string {
	return append(args, "--hosted-cluster", story.HostedCluster, "--nodepool", story.NodePool)
}

// A recorded run is judged again with both sides, or not at all.
func (w world) testStatus(t *testing.T) {
	if code, stdout, stderr := w.call(t, w.Cluster.Kubeconfig,
		w.hosted("status", "--to", story.Patch, "--prometheus", w.Monitoring)...); code != exit.Ready {
		t.Errorf("status: exit code %d, want Ready\n%s%s", code, stdout, stderr)
	}
	code, _, stderr := w.call(t, guest.Kubeconfig, "status", "--to", story.Patch)
	if code != exit.BadInput || !strings.Contains(stderr, "add --hosted-cluster clusters/example --nodepool workers") {
		t.Errorf("status of the guest alone: exit code %d, want an error that names the flags\n%s", code, stderr)
	}
}

// The baseline of the run has both sides, and so has the judgement, before the update has begun.
func (w world) testAfter(t *testing.T) {
	_, stdout, stderr := w.call(t, w.Cluster.Kubeconfig, w.hosted("status", "--to", story.Patch, "-o", "json")...)
	var stored report.Report
	if err := json.Unmarshal([]byte(stdout), &stored); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	args := []string{"after", stored.Run.ID, "--hosted-cluster", story.HostedCluster, "--prometheus", w.Monitoring, "-o", "json"}
	code, stdout, stderr := w.call(t, w.Cluster.Kubeconfig, args...)
	var judged afterupdate.Report
	if err := json.Unmarshal([]byte(stdout), &judged); err != nil || code != exit.Undecided || judged.Decision != afterupdate.Unfinished ||
		judged.Baseline == nil {
		t.Fatalf("exit code %d, want Unfinished with a baseline: %v\n%s%s", code, err, stdout, stderr)
	}
	for _, unread := range judged.Unread {
		if strings.HasPrefix(unread, "HostedCluster") || strings.HasPrefix(unread, "NodePool") {
			t.Errorf("not read: %s", unread)
		}
	}
}

// The control plane precedes its NodePool, each with its command.
func (w world) testPlan(t *testing.T) {
	const graph = `{"nodes":[{"version":"%s","payload":"registry.example.com/openshift/release@sha256:%064d"},{"version":"%s","payload":"registry.example.com/openshift/release@sha256:%064d"}],"edges":[[0,1]]}`
	path := filepath.Join(t.TempDir(), "stable-5.1.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, graph, story.From, 0, story.Patch, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := w.call(t, w.Cluster.Kubeconfig,
		w.hosted("plan", "--to", story.Patch, "--graph", path, "--prometheus", w.Monitoring)...)
	for _, want := range []string{
		"1. HostedCluster clusters/example: 5.1.3 to 5.1.4", "2. NodePool clusters/workers: 5.1.3 to 5.1.4",
		`oc --kubeconfig ` + w.Cluster.Kubeconfig +
			` -n clusters patch nodepool workers --type=merge -p '{"spec":{"release":{"image":"registry.example.com/openshift/release@sha256:` +
			fmt.Sprintf(
				"%064d", 4) + `"}}}'`,
	} {
		if code != exit.Ready || !strings.Contains(stdout, want) {
			t.Errorf("plan: exit code %d, want %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}

// The drains of the NodePool are rehearsed in the guest, after the remedy of the budget.
func (w world) testDrains(t *testing.T) {
	code, stdout, stderr := w.call(t, w.Cluster.Kubeconfig, w.hosted("drain-plan")...)
	if code != exit.Ready || !strings.Contains(stdout, story.NodePool) {
		t.Errorf("drain-plan: exit code %d, want the NodePool %s, whose drains end\n%s%s", code, story.NodePool, stdout, stderr)
	}
}

// The controller of the management cluster makes the same run.
func (w world) testController(t *testing.T) {
	management, err := cluster.Connect(w.Cluster.Config, "hosted_test")
	if err != nil {
		t.Fatal(err)
	}
	object, err := management.Dynamic.Resource(hypershift.GroupVersion().WithResource("hostedclusters")).Namespace("clusters").Get(t.Context(),
		"example", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := &hypershift.HostedCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, of); err != nil {
		t.Fatal(err)
	}
	target := runplan.Target{Requester: record.Ahead}
	target.Version, target.Image = story.Patch, of.Status.Version.AvailableUpdates[0].Image
	decided, err := hostedruns.OnGuests(management, runner.Options{})(t.Context(), of, target)
	if err != nil {
		t.Fatal(err)
	}
	if decided.Verdict.Decision == verdict.Blocked || !has(decided, "HostedClusterRequest") ||
		!has(decided, "CloudCredentialOperator.CloudPermissions") {
		t.Errorf("the run of the controller: %+v, want the findings of both sides, none of which blocks for certain", decided.Verdict)
	}
}

// A guest whose kubeconfig is gone is one finding, and the side of the management cluster is judged.
func (w world) testUnreachable(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(w.Cluster.Config)
	if err := client.CoreV1().Secrets("clusters").Delete(context.Background(), "example-admin-kubeconfig",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := w.call(t, w.Cluster.Kubeconfig, w.hosted("run", "--to", story.Patch)...)
	if code != exit.Undecided || strings.Count(stdout, "GuestUnreachable") != 1 || !strings.Contains(stdout, "HyperShift would accept") {
		t.Errorf("exit code %d, want Undecided with one GuestUnreachable and the judgement of the management cluster\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := w.call(t, w.Cluster.Kubeconfig, w.hosted("status")...); code != exit.Failed ||
		!strings.Contains(stderr, "the records of the runs are in the guest") {
		t.Errorf("status: exit code %d, want an error that names the guest\n%s", code, stderr)
	}
}

func has(decided report.Report, name string) bool {
	for _, f := range decided.Findings {
		if f.Name == name {
			return true
		}
	}
	return false
}
