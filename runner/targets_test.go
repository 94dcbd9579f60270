package runner_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/runner"
)

// Tests of: collector/scene/departure, collector/targets

// The risks of the enhancement accepted-risks.
const (
	dualStack  = "DualStackNeedsController"
	bootImages = "OldBootImagesPodmanMissingAuthFlag"
	highLoad   = "RHELKernelHighLoadIOWait"
	leaked     = "LeakedMachineConfigBlocksMCO"
)

// conditional is an update with risks that apply to every cluster.
func conditional(version, digit string, names ...string) configv1.ConditionalUpdate {
	update := configv1.ConditionalUpdate{
		Release: configv1.Release{Version: version, Image: digested(digit)}, RiskNames: names,
		Conditions: []metav1.Condition{{
			Type: "Recommended", Status: metav1.ConditionFalse, Reason: "MultipleReasons", Message: "m",
			LastTransitionTime: metav1.Now(),
		}},
	}
	for _, name := range names {
		update.Risks = append(update.Risks, risk(name))
	}
	return update
}

func risk(name string) configv1.ConditionalUpdateRisk {
	return configv1.ConditionalUpdateRisk{
		URL: "https://example.com/" + name, Name: name, Message: name + " does harm.",
		MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
		Conditions: []metav1.Condition{{
			Type: "Applies", Status: metav1.ConditionTrue, Reason: "Match", Message: "m",
			LastTransitionTime: metav1.Now(),
		}},
	}
}

// newFleet is the cluster of the enhancement accepted-risks.
func newFleet(t *testing.T) world {
	t.Helper()
	w := newWorld(t, map[string]string{})
	w.state.Version = "4.18.15"
	w.state.Available = nil
	w.state.Conditional = []configv1.ConditionalUpdate{
		conditional("4.18.16", "6", dualStack, bootImages, highLoad), conditional("4.18.17", "7", bootImages), conditional("4.19.1", "9", leaked),
	}
	for _, name := range []string{dualStack, bootImages, highLoad, leaked} {
		w.state.Risks = append(w.state.Risks, risk(name))
	}
	w.apply(t)
	w.target, w.options.Judgement.Accept = runner.Target{}, accepting(dualStack, bootImages, leaked)
	return w
}

func (w world) targets(t *testing.T) report.Targets {
	t.Helper()
	decided, err := w.judgeTargets(t)
	if err != nil {
		t.Fatal(err)
	}
	return decided
}

func (w world) judgeTargets(t *testing.T) (report.Targets, error) {
	t.Helper()
	s, err := scene.OpenSettled(t.Context(), w.cluster, w.options.Settings())
	if err != nil {
		t.Fatal(err)
	}
	return targets.Judge(t.Context(), s, w.target.Version)
}

// decisions returns version, kind, decision and causes of each target.
func decisions(decided report.Targets) []string {
	var lines []string
	for _, target := range decided.Targets {
		causes := slices.Concat(target.Verdict.Blocking, target.Verdict.Undecided)
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", target.Version, target.UpdateKind, target.Verdict.Decision,
			strings.Join(causes, ","))))
	}
	return lines
}

func TestTargetsOfTheEnhancement(t *testing.T) {
	decided := newFleet(t).targets(t)
	want := []string{"4.19.1 Minor Ready", "4.18.17 Patch Ready", "4.18.16 Patch Blocked " + highLoad}
	if diff := cmp.Diff(want, decisions(decided)); diff != "" {
		t.Errorf("-want +got:\n%s\n%+v", diff, decided.Findings)
	}
	if got := decided.Targets[2].Verdict.Accepted; !slices.Equal(got, []string{dualStack, bootImages}) {
		t.Errorf("4.18.16 has %q accepted", got)
	}
	for _, f := range decided.Findings {
		if f.Name == bootImages && !slices.Equal(f.Targets, []string{"4.18.17", "4.18.16"}) {
			t.Errorf("%s has the targets %q, want one finding with both: %+v", bootImages, f.Targets, f)
		}
		if f.Reason == "Unused" {
			t.Errorf("%s, although each is needed for some target", f.Message)
		}
	}
}

func TestTargetsExplainOne(t *testing.T) {
	w := newFleet(t)
	w.target.Version = "4.18.16"
	decided := w.targets(t)
	if diff := cmp.Diff([]string{"4.18.16 Patch Blocked " + highLoad}, decisions(decided)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.target.Version = "4.18.99"
	decided = w.targets(t)
	if len(decided.Targets) != 1 || decided.Targets[0].Available ||
		!slices.ContainsFunc(decided.Findings, func(f report.TargetFinding) bool { return f.Reason == "UnknownUpdate" }) {
		t.Errorf("a version that the cluster does not list: got %+v, want a finding that says so", decided)
	}
	w.target.Version = "latest"
	_, err := w.judgeTargets(t)
	if _, bad := errors.AsType[*input.Error](err); !bad {
		t.Errorf("a text that is no version: error %v, want an input.Error", err)
	}
}

func TestTargetsAreSortedAndComplete(t *testing.T) {
	w := newFleet(t)
	w.state.Available = map[string]string{
		"4.18.9": digested("1"), "4.18.20": digested("2"), "4.18.17": digested("7"),
		"not-a-version": digested("3"),
	}
	w.state.Conditional = append(w.state.Conditional, conditional("4.20", "4", leaked))
	w.apply(t)
	decided := w.targets(t)
	var versions []string
	for _, target := range decided.Targets {
		versions = append(versions, target.Version)
		if strings.HasPrefix(target.Version, "4.20") || strings.HasPrefix(target.Version, "not") {
			if target.Verdict.Decision != "Undecided" || target.UpdateKind != "" {
				t.Errorf("%s: %+v; it cannot be compared", target.Version, target)
			}
		}
		if target.Version == "4.18.17" && (!target.Available || !target.Conditional || target.Recommended != "False") {
			t.Errorf("4.18.17 is in both lists: %+v", target)
		}
	}
	want := []string{"4.19.1", "4.18.20", "4.18.17", "4.18.16", "4.18.9", "not-a-version", "4.20"}
	if diff := cmp.Diff(want, versions); diff != "" {
		t.Errorf("want the newest first, invalid versions last: -want +got:\n%s", diff)
	}
}

func TestNoTargets(t *testing.T) {
	w := newFleet(t)
	w.state.Conditional, w.state.Risks = nil, nil
	w.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.RetrievedUpdates, Status: configv1.ConditionFalse, Reason: "VersionNotFound",
		Message: "not found in the \"stable\" channel",
	}}
	w.apply(t)
	decided := w.targets(t)
	if len(decided.Targets) != 0 || len(decided.Findings) == 0 ||
		!strings.Contains(decided.Findings[len(decided.Findings)-1].Message, "VersionNotFound") {
		t.Errorf("%+v, want no targets, and a finding with the reason", decided)
	}
	for reason, target := range map[string]runner.Target{"the version": {Version: "4.18.99"}, "the latest": {Latest: true}} {
		if _, err := runner.Run(t.Context(), w.cluster, target, w.options); err == nil ||
			!strings.Contains(err.Error(), `(VersionNotFound): not found in the "stable" channel`) {
			t.Errorf("%s: %v, want CVO's reason why the cluster knows no update", reason, err)
		}
	}
}

// count counts requests by method and URL.
type count struct {
	http.RoundTripper

	mutex    *sync.Mutex
	requests map[string]int
}

func (c count) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	query.Del("limit")
	c.mutex.Lock()
	c.requests[request.Method+" "+request.URL.Path+"?"+query.Encode()]++
	c.mutex.Unlock()
	return c.RoundTripper.RoundTrip(request)
}

func TestTargetsReadTheClusterOnce(t *testing.T) {
	w := newFleet(t)
	for i := range 60 {
		w.state.Conditional = append(w.state.Conditional, conditional(fmt.Sprintf("4.19.%d", i+2), "a", leaked, dualStack))
	}
	w.state.Operators = []configv1.ClusterOperator{{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}, Status: configv1.ClusterOperatorStatus{
		Conditions: []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: metav1.Now()},
			{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: metav1.Now()},
		},
	}}}
	w.apply(t)
	counting := count{mutex: &sync.Mutex{}, requests: map[string]int{}}
	counted := rest.CopyConfig(config)
	counted.WarningHandlerWithContext = rest.NoWarnings{}
	counted.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return count{inner, counting.mutex, counting.requests}
	})
	w.cluster = connect(t, counted)
	if decided := w.targets(t); len(decided.Targets) != 63 {
		t.Errorf("%d targets, want 63", len(decided.Targets))
	}
	for request, times := range counting.requests {
		if times != 1 {
			t.Errorf("%s: %d times", request, times)
		}
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("%s: it must only read", request)
		}
	}
	if len(counting.requests) < 5 {
		t.Errorf("only %d requests were counted: %v", len(counting.requests), counting.requests)
	}
}

func TestTargetsWithoutPermissions(t *testing.T) {
	w := newFleet(t)
	w.state.Conditional = w.state.Conditional[1:2] // 4.18.17
	w.apply(t)
	w.cluster.Kubernetes = kubernetes.NewForConfigOrDie(unprivileged(t))
	decided := w.targets(t)
	if decided.Targets[0].Verdict.Decision != "Undecided" {
		t.Errorf("%+v, want Undecided without permission to read", decided.Targets[0].Verdict)
	}
	for _, f := range decided.Findings {
		if f.Outcome == "Unknown" && f.Reason != "Forbidden" {
			t.Errorf("%s: %s, want Forbidden: %s", f.Name, f.Reason, f.Message)
		}
	}
}

// unprivileged is a user without any role.
func unprivileged(t *testing.T) *rest.Config {
	t.Helper()
	config := rest.CopyConfig(config)
	config.Impersonate.UserName = "unprivileged"
	return config
}

// The text of a finding about several targets has no version; a longer version that
// begins with that of a target is not replaced.
func TestTargetsShareTheirFindings(t *testing.T) {
	w := newFleet(t)
	w.options.Judgement.Accept = nil
	w.state.Conditional = []configv1.ConditionalUpdate{conditional("4.18.1", "1", leaked), conditional("4.18.16", "2", leaked)}
	w.apply(t)
	for _, f := range w.targets(t).Findings {
		if len(f.Targets) == 2 && (strings.Contains(f.Message, "4.18.16") || strings.Contains(f.Message, report.AnyTarget+"6")) {
			t.Errorf("%s: the message %q names one of the targets %q", f.Name, f.Message, f.Targets)
		}
		if f.Name == leaked && (len(f.Targets) != 2 || !slices.Equal(f.BlockedTargets, f.Targets)) {
			t.Errorf("%s has the targets %q, and blocks %q", f.Name, f.Targets, f.BlockedTargets)
		}
		if len(f.Targets) == 1 && strings.Contains(f.Message, report.AnyTarget) {
			t.Errorf("%s: the message %q of a single target does not name it", f.Name, f.Message)
		}
	}
}
