package narrative_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var updateGolden = flag.Bool("update", false, "rewrite the golden files")

// The cluster of accepted-risks, with what keeps it in 4.18 besides: an
// operator and an acknowledgement. CVO has both in one condition.
func crossroads(t *testing.T) *scene {
	t.Helper()
	s := storied(t, &techPreview)
	s.evaluated()
	s.state.Operators = append(s.state.Operators, operator("storage", configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "VSphereTooOld", Message: "vSphere 7 is not supported by 4.19",
	}))
	s.state.Gates = map[string]string{"ack-4.18-boot-images": "Read https://docs.example.com/boot-images first."}
	s.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "MultipleReasons",
		Message: "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* vSphere 7 is not supported by 4.19\n* Read https://docs.example.com/boot-images first.",
	}}
	s.state.Available["4.18.18"] = digested("8")
	s.accept(dualStack, bootImages, leaked)
	s.apply()
	return s
}

func TestTargets(t *testing.T) {
	t.Parallel()
	s := crossroads(t)
	for name, args := range map[string][]string{"targets": nil, "target-4.18.16": {"--to", "4.18.16"}, "target-4.19.1": {"--to", "4.19.1"}} {
		code := ready
		if len(args) > 0 {
			code = blocked
		}
		got := s.call(code, append([]string{"targets", "--prometheus", s.monitoring}, args...)...)
		text := got.stdout
		for _, update := range s.state.Conditional {
			text = strings.ReplaceAll(text, update.Release.Image, "IMAGE") // a registry has another port each time
		}
		golden(t, name+".text", text)
		if name == "targets" && strings.Contains(text, "MultipleReasons") {
			t.Errorf("%s says MultipleReasons, and not which:\n%s", name, text)
		}
	}
}

// The golden files are what people see. They are rewritten by
// go test ./test/narrative -run TestTargets -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updateGolden {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got (rewrite with -update):\n%s", name, diff)
	}
}

// What each target says for itself is what all of them say together.
func TestTargetsTellWhatOneTells(t *testing.T) {
	t.Parallel()
	s := crossroads(t)
	all := s.targets()
	var order []string
	for _, target := range all.Targets {
		order = append(order, target.Version)
		code := map[verdict.Decision]int{verdict.Ready: ready, verdict.Blocked: blocked, verdict.Undecided: undecided}[target.Verdict.Decision]
		one := s.explain(code, target.Version)
		if diff := cmp.Diff(target.Verdict, one.verdict); diff != "" {
			t.Errorf("%s: -among all +alone:\n%s", target.Version, diff)
		}
	}
	if diff := cmp.Diff([]string{"4.19.1", "4.18.18", "4.18.17", "4.18.16"}, order); diff != "" {
		t.Errorf("newest first: -want +got:\n%s", diff)
	}
	got := s.call(badInput, "targets", "--to", "4.18.99")
	if !strings.Contains(got.stderr, `no update to "4.18.99"`) || !strings.Contains(got.stderr, "4.18.17") {
		t.Errorf("it does not say which updates there are: %s", got.stderr)
	}
}

func (s *scene) targets(args ...string) report.Targets {
	s.t.Helper()
	got := s.call(ready, append([]string{"targets", "--prometheus", s.monitoring, "-o", "json"}, args...)...)
	var decided report.Targets
	if err := json.Unmarshal([]byte(got.stdout), &decided); err != nil {
		s.t.Fatalf("%v\n%s", err, got.stdout)
	}
	return decided
}

// What the update service should not have sent, nothing of it is dropped.
func TestUpdatesThatAreWrong(t *testing.T) {
	t.Parallel()
	s := storied(t, &byDefault)
	another := riskNamed(bootImages)
	another.Message = "Something else altogether."
	wrong := conditional("4.18.18", digested("8"))
	unnamed := riskNamed(dualStack)
	unnamed.Name = "not_a_name"
	wrong.Risks = []configv1.ConditionalUpdateRisk{another, unnamed}
	s.state.Conditional = append(s.state.Conditional, wrong, conditional("4.18.x", digested("a"), bootImages), conditional("4.18.17", digested("b"), highLoad))
	s.apply()
	all := s.targets()
	if len(all.Targets) != len(s.state.Conditional) {
		t.Errorf("%d targets, want %d", len(all.Targets), len(s.state.Conditional))
	}
	last := all.Targets[len(all.Targets)-1]
	if last.Version != "4.18.x" || last.Verdict.Decision == verdict.Ready {
		t.Errorf("the version that cannot be compared is %s: %s", last.Version, last.Verdict.Decision)
	}
	decided := decided{t: t}
	for _, f := range all.Findings {
		decided.findings = append(decided.findings, f.Finding)
	}
	decided.finds("Update", preflight.Unknown, "UnknownUpdateKind", "4.18.x").
		finds("ClusterVersionRecommendedUpdate", preflight.Warn, "InvalidVersions", "4.18.x").
		finds("ClusterVersionRecommendedUpdate", preflight.Warn, "DivergentDefinitions", bootImages).
		finds("ClusterVersionRecommendedUpdate", preflight.Warn, "DuplicateUpdates", "4.18.17")
	// One whose name ClusterVersion would not take is accepted by another.
	invalid := s.explain(blocked, "4.18.18").finds(bootImages, preflight.Fail, "RiskApplies", "Something else altogether.")
	for _, name := range invalid.verdict.Blocking {
		if strings.HasPrefix(name, "InvalidRiskName-") {
			s.explain(ready, "4.18.18", "--accept", name+","+bootImages)
			return
		}
	}
	t.Errorf("the risk with an invalid name is not among %q", invalid.verdict.Blocking)
}

// A run waits until CVO has processed a change of the spec. A status that is still
// older than the spec is not evaluated.
func TestStatusThatIsStale(t *testing.T) {
	t.Parallel()
	s := storied(t, &techPreview)
	s.evaluated()
	s.apply()
	s.call(ready, "accept", bootImages)
	s.run(undecided, "--to", "4.18.17", "--no-jobs", "--timeout", "30s").
		finds("ClusterVersionRequest", preflight.Unknown, "StaleStatus", "generation").
		finds("ClusterVersionRecommendedUpdate", preflight.Skipped, "StaleStatus").
		finds("ClusterVersionUpdating", preflight.Skipped, "StaleStatus")
	following := s.command("run", "--to", "4.18.17", "-o", "json", "--prometheus", s.monitoring)
	var stdout bytes.Buffer
	following.Stdout = &stdout
	progress, err := following.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := following.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if strings.Contains(lines.Text(), "for CVO to process the last change of ClusterVersion") {
			s.catchUp()
		}
	}
	if err := following.Wait(); err != nil {
		t.Errorf("the run that waited for CVO: %v\n%s", err, &stdout)
	}
}

// Bad input is rejected before anything is read, with its location.
func TestInputThatIsWrong(t *testing.T) {
	t.Parallel()
	s := patchable(t, &byDefault)
	const head = "apiVersion: preflight.openshift.io/v1alpha1\nkind: AcceptedRisks\nrisks:\n"
	for name, story := range map[string]struct{ content, says string }{
		"NotYAML":    {"risks: [", "yaml"},
		"Other":      {"apiVersion: v1\nkind: ConfigMap\n", `kind "ConfigMap"`},
		"Misspelled": {head + "- {risk: RiskA, reasons: r, owner: o}\n", `entry 1 ("RiskA")`},
		"NoReason":   {head + "- {risk: RiskA, owner: o}\n", "reason"},
		"BadName":    {head + "- {risk: risk_a, reason: r, owner: o}\n", `illegal risk "risk_a"`},
		"BadExpiry":  {head + "- {risk: RiskA, reason: r, owner: o, expires: soon}\n", "soon"},
		"BadRange":   {head + "- {risk: RiskA, reason: r, owner: o, versions: newer}\n", "newer"},
		"Twice":      {head + "- {risk: RiskA, reason: r, owner: o}\n- {risk: RiskA, reason: r, owner: o}\n", `entry 2 ("RiskA"): entry 1 accepts the same risk`},
	} {
		got := s.call(badInput, "targets", "--accept-file", s.file(name+".yaml", story.content))
		if !strings.Contains(got.stderr, story.says) || !strings.Contains(got.stderr, name+".yaml") || got.stdout != "" {
			t.Errorf("%s: it does not say %q: %s%s", name, story.says, got.stderr, got.stdout)
		}
	}
	for _, args := range [][]string{
		{"targets", "--accept", "risk_a"},
		{"targets", "--accept-file", "absent.yaml"},
		{"targets", "--prometheus", "ftp://prometheus"},
		{"run", "--to", "4.18"},
		{"run", "--to", "4.18.16", "--to-latest"},
		{"run", "--to", "4.18.99"},
		{"targets", "-o", "xml"},
	} {
		s.call(badInput, args...)
	}
}
