package commands_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/program"
)

// newBlockedEnvironment returns the cluster of accepted-risks whose update to 4.19 is also blocked
// by an operator and an acknowledgement, both in one condition of CVO.
func newBlockedEnvironment(t *testing.T) *environment {
	t.Helper()
	e := newRiskEnvironment(t, &techPreview)
	e.evaluateRisks()
	e.state.Operators = append(e.state.Operators, operator("storage", configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "VSphereTooOld",
		Message: "vSphere 7 is not supported by 4.19",
	}))
	e.state.Gates = map[string]string{"ack-4.18-boot-images": "Read https://docs.example.com/boot-images first."}
	e.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "MultipleReasons",
		Message: "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* vSphere 7 is not supported by " +
			"4.19\n* Read https://docs.example.com/boot-images first.",
	}}
	e.state.Available["4.18.18"] = examplePullSpec("8")
	e.accept(dualStack, bootImages, leaked)
	e.apply()
	return e
}

func TestTargets(t *testing.T) {
	e := newBlockedEnvironment(t)
	for name, args := range map[string][]string{"targets": nil, "target-4.18.16": {"--to", "4.18.16"}, "target-4.19.1": {"--to", "4.19.1"}} {
		code := exit.Ready
		if len(args) > 0 {
			code = exit.Blocked
		}
		got := e.call(code, append([]string{"targets", "--prometheus", e.monitoring}, args...)...)
		// their ports vary
		text := timeless(strings.NewReplacer(e.monitoring, "http://monitoring", e.config.Host,
			"https://api.example.com:6443").Replace(got.Stdout))
		for _, update := range e.state.Conditional {
			text = strings.ReplaceAll(text, update.Release.Image, "IMAGE") // the port of the registry varies
		}
		golden.Compare(t, "testdata/"+name+".text", text)
		if name == "targets" && strings.Contains(text, "MultipleReasons") {
			t.Errorf("%s: MultipleReasons in place of the reasons:\n%s", name, text)
		}
	}
}

// timeless is a text of now as one of a fixed time.
func timeless(text string) string {
	return regexp.MustCompile("as of [0-9TZ:-]+").ReplaceAllString(text, "as of 2026-11-28T08:00:00Z")
}

// The verdict on each target is the same alone and among all targets.
func TestTargetsAloneAndTogether(t *testing.T) {
	e := newBlockedEnvironment(t)
	all := e.targets()
	var order []string
	for _, target := range all.Targets {
		order = append(order, target.Version)
		code := map[verdict.Decision]int{
			verdict.Ready: exit.Ready, verdict.Blocked: exit.Blocked,
			verdict.Undecided: exit.Undecided,
		}[target.Verdict.Decision]
		one := e.evaluate(code, target.Version)
		if diff := cmp.Diff(target.Verdict, one.verdict); diff != "" {
			t.Errorf("%s: -among all +alone:\n%s", target.Version, diff)
		}
	}
	if diff := cmp.Diff([]string{"4.19.1", "4.18.18", "4.18.17", "4.18.16"}, order); diff != "" {
		t.Errorf("newest first: -want +got:\n%s", diff)
	}
	if got := e.call(exit.Undecided, "targets", "--to", "4.18.99"); !strings.Contains(got.Stdout, "ClusterVersionRequest (UnknownUpdate)") {
		t.Errorf("a version that is not listed is judged, and said to be unknown: %s", got.Stdout)
	}
	got := e.call(exit.BadInput, "targets", "--to", "latest")
	if !strings.Contains(got.Stderr, `no update to "latest"`) || !strings.Contains(got.Stderr, "4.18.17") {
		t.Errorf("the error does not list the updates: %s", got.Stderr)
	}
}

// targets runs "targets", and returns its report.
func (e *environment) targets(args ...string) report.Targets {
	e.t.Helper()
	got := e.call(exit.Ready, append([]string{"targets", "--prometheus", e.monitoring, "-o", "json"}, args...)...)
	var result report.Targets
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil {
		e.t.Fatalf("%v\n%s", err, got.Stdout)
	}
	return result
}

// Invalid data of the update service is reported, not dropped.
func TestInvalidUpdates(t *testing.T) {
	e := newRiskEnvironment(t, &byDefault)
	another := riskNamed(bootImages)
	another.Message = "Another message."
	invalid := conditionalUpdate("4.18.18", examplePullSpec("8"))
	unnamed := riskNamed(dualStack)
	unnamed.Name = "not_a_name"
	invalid.Risks = []configv1.ConditionalUpdateRisk{another, unnamed}
	e.state.Conditional = append(e.state.Conditional, invalid, conditionalUpdate("4.18.x", examplePullSpec("a"), bootImages),
		conditionalUpdate("4.18.17", examplePullSpec("b"), highLoad))
	e.apply()
	all := e.targets()
	if len(all.Targets) != len(e.state.Conditional) {
		t.Errorf("%d targets, want %d", len(all.Targets), len(e.state.Conditional))
	}
	last := all.Targets[len(all.Targets)-1]
	if last.Version != "4.18.x" || last.Verdict.Decision == verdict.Ready {
		t.Errorf("the version that cannot be compared: %s, %s", last.Version, last.Verdict.Decision)
	}
	result := updateReport{t: t}
	for _, f := range all.Findings {
		result.findings = append(result.findings, f.Finding)
	}
	result.expectFinding("Update", preflight.Unknown, "UnknownUpdateKind", "4.18.x").
		expectFinding("ClusterVersionRecommendedUpdate", preflight.Warn, "InvalidVersions", "4.18.x").
		expectFinding("ClusterVersionRecommendedUpdate", preflight.Warn, "DivergentDefinitions", bootImages).
		expectFinding("ClusterVersionRecommendedUpdate", preflight.Warn, "DuplicateUpdates", "4.18.17")
	// A risk whose name is invalid in ClusterVersion is accepted by another name.
	evaluated := e.evaluate(exit.Blocked, "4.18.18").expectFinding(bootImages, preflight.Fail, "RiskApplies", "Another message.")
	for _, name := range evaluated.verdict.Blocking {
		if strings.HasPrefix(name, "InvalidRiskName-") {
			e.evaluate(exit.Ready, "4.18.18", "--accept", name+","+bootImages)
			return
		}
	}
	t.Errorf("the risk with an invalid name is not among %q", evaluated.verdict.Blocking)
}

// A run waits until CVO has processed a change of the spec. A status that is still
// older than the spec is not evaluated.
func TestStaleStatus(t *testing.T) {
	e := newRiskEnvironment(t, &techPreview)
	e.evaluateRisks()
	e.apply()
	e.call(exit.Ready, "accept", bootImages)
	e.run(exit.Undecided, "--to", "4.18.17", "--no-jobs", "--timeout", "30s").
		expectFinding("ClusterVersionRequest", preflight.Unknown, "StaleStatus", "generation").
		expectFinding("ClusterVersionRecommendedUpdate", preflight.Skipped, "StaleStatus").
		expectFinding("ClusterVersionUpdating", preflight.Skipped, "StaleStatus")
	following := program.Start(t, "run", "--to", "4.18.17", "-o", "json", "--prometheus", e.monitoring)
	following.AwaitStderr("for CVO to process the last change of ClusterVersion")
	e.reconcile()
	if got := following.Wait(); got.Code != exit.Ready {
		t.Errorf("the run that waited for CVO: exit code %d\n%s", got.Code, got.Stdout)
	}
}

// Bad input is rejected before anything is read, with its location.
func TestInvalidInput(t *testing.T) {
	e := newPatchEnvironment(t, &byDefault)
	const head = "apiVersion: preflight.openshift.io/v1alpha1\nkind: AcceptedRisks\nrisks:\n"
	for name, tc := range map[string]struct{ content, want string }{
		"NotYAML":    {"risks: [", "yaml"},
		"Other":      {"apiVersion: v1\nkind: ConfigMap\n", `kind "ConfigMap"`},
		"Misspelled": {head + "- {risk: RiskA, reasons: r, owner: o}\n", `entry 1 ("RiskA")`},
		"NoReason":   {head + "- {risk: RiskA, owner: o}\n", "reason"},
		"BadName":    {head + "- {risk: risk_a, reason: r, owner: o}\n", `illegal risk "risk_a"`},
		"BadExpiry":  {head + "- {risk: RiskA, reason: r, owner: o, expires: soon}\n", "soon"},
		"BadRange":   {head + "- {risk: RiskA, reason: r, owner: o, versions: newer}\n", "newer"},
		"Twice": {
			head + "- {risk: RiskA, reason: r, owner: o}\n- {risk: RiskA, reason: r, owner: o}\n",
			`entry 2 ("RiskA"): entry 1 accepts the same risk`,
		},
	} {
		got := e.call(exit.BadInput, "targets", "--accept-file", e.file(name+".yaml", tc.content))
		if !strings.Contains(got.Stderr, tc.want) || !strings.Contains(got.Stderr, name+".yaml") || got.Stdout != "" {
			t.Errorf("%s: no error with %q: %s%s", name, tc.want, got.Stderr, got.Stdout)
		}
	}
	for _, args := range [][]string{
		{"targets", "--accept", "risk_a"},
		{"targets", "--accept-file", "absent.yaml"},
		{"targets", "--prometheus", "ftp://prometheus"},
		{"run", "--to", "4.18"},
		{"run", "--to", "4.18.16", "--to-latest"},
		{"targets", "-o", "xml"},
	} {
		e.call(exit.BadInput, args...)
	}
}
