package commands_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/prometheus"
)

// The risks of the enhancement accepted-risks. The administrator accepts all but the last.
const (
	dualStack  = "DualStackNeedsController"
	bootImages = "OldBootImagesPodmanMissingAuthFlag"
	leaked     = "LeakedMachineConfigBlocksMCO"
	highLoad   = "RHELKernelHighLoadIOWait"

	acceptable = dualStack + "," + bootImages + "," + leaked
)

// riskMetrics returns the series in the queries of these risks.
func riskMetrics() []prometheus.Rule {
	return []prometheus.Rule{
		{Record: "old_boot_images", Expr: "vector(1)"},
		{Record: "kernel_high_load", Expr: "vector(1)"},
		{Record: "leaked_machine_configs", Expr: "vector(0)"},
	}
}

// riskNamed returns one of these risks as in the update graph.
func riskNamed(name string) configv1.ConditionalUpdateRisk {
	query := func(promql string) []configv1.ClusterCondition {
		return []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: promql}}}
	}
	return map[string]configv1.ConditionalUpdateRisk{
		dualStack: {
			Name: name, URL: "https://issues.redhat.com/browse/SDN-3996", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
			Message: "Upgrade can get stuck on clusters that use multiple networks together with dual stack.",
		},
		bootImages: {
			Name: name, URL: "https://issues.redhat.com/browse/MCO-1555", MatchingRules: query("max(old_boot_images)"),
			Message: "Nodes that are scaled up from old boot images cannot pull the release.",
		},
		leaked: {
			Name: name, URL: "https://issues.redhat.com/browse/SDN-2212", MatchingRules: query("max(leaked_machine_configs)"),
			Message: "MCO update might be blocked if some condition holds",
		},
		highLoad: {
			Name: name, URL: "https://issues.redhat.com/browse/COS-2705", MatchingRules: query("max(kernel_high_load)"),
			Message: "The kernel reports high load from I/O wait.",
		},
	}[name]
}

// conditionalUpdate returns an update with these risks, which CVO has not evaluated yet.
func conditionalUpdate(version, image string, risks ...string) configv1.ConditionalUpdate {
	update := configv1.ConditionalUpdate{
		Release: configv1.Release{Version: version, Image: image, URL: configv1.URL("https://access.redhat.com/errata/" + version)},
		Conditions: []metav1.Condition{{
			Type: "Recommended", Status: metav1.ConditionUnknown, Reason: "EvaluationFailed", LastTransitionTime: metav1.Now(),
			Message: "Could not evaluate exposure to update risk: evaluation is throttled",
		}},
	}
	for _, name := range risks {
		update.Risks = append(update.Risks, riskNamed(name))
	}
	return update
}

// newRiskEnvironment returns the cluster of the enhancement, at 4.18.15 with three conditional
// updates to signed releases.
func newRiskEnvironment(t *testing.T, on *plane) *environment {
	t.Helper()
	e := newEnvironment(t, on, riskMetrics()...)
	images := e.publish("4.18.16", "4.18.17", "4.19.1")
	e.state.Conditional = []configv1.ConditionalUpdate{
		conditionalUpdate("4.18.16", images["4.18.16"], dualStack, bootImages, highLoad),
		conditionalUpdate("4.18.17", images["4.18.17"], bootImages),
		conditionalUpdate("4.19.1", images["4.19.1"], leaked),
	}
	return e
}

// evaluateRisks adds the evaluation of the risks by CVO in a feature set with accepted risks.
// The status has each risk once, with a condition that states whether it applies.
func (e *environment) evaluateRisks() {
	applies := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Applies", Status: status, Reason: reason, LastTransitionTime: metav1.Now()}}
	}
	for _, name := range []string{dualStack, bootImages, highLoad} {
		risk := riskNamed(name)
		risk.Conditions = applies(metav1.ConditionTrue, "Match")
		e.state.Risks = append(e.state.Risks, risk)
	}
	risk := riskNamed(leaked)
	risk.Conditions = applies(metav1.ConditionFalse, "NotMatch")
	e.state.Risks = append(e.state.Risks, risk)
	for i := range e.state.Conditional {
		update := &e.state.Conditional[i]
		for _, risk := range update.Risks {
			update.RiskNames = append(update.RiskNames, risk.Name)
		}
		update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionFalse, "ExposedToRisks"
		if update.Release.Version == "4.19.1" {
			update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionTrue, "NotExposedToRisks"
			e.state.Available = map[string]string{"4.19.1": update.Release.Image}
		}
	}
}

// accepted returns the accepted risks in ClusterVersion.
func (e *environment) accepted() []string {
	e.t.Helper()
	version, err := configclient.NewForConfigOrDie(e.config).ConfigV1().ClusterVersions().Get(e.t.Context(), "version", metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	var names []string
	if version.Spec.DesiredUpdate != nil {
		for _, risk := range version.Spec.DesiredUpdate.AcceptRisks {
			names = append(names, risk.Name)
		}
	}
	return names
}

// reconcile updates the status by the spec as CVO does: an update is available once all of its
// risks that apply are accepted.
func (e *environment) reconcile() {
	e.t.Helper()
	e.accept(e.accepted()...)
	e.apply()
}

// accept sets the accepted risks in the state, and their effect on the updates.
func (e *environment) accept(risks ...string) {
	e.state.Desired = nil
	for _, name := range risks {
		if e.state.Desired == nil {
			e.state.Desired = &configv1.Update{}
		}
		e.state.Desired.AcceptRisks = append(e.state.Desired.AcceptRisks, configv1.AcceptRisk{Name: name})
	}
	for i := range e.state.Conditional {
		update := &e.state.Conditional[i]
		open := func(name string) bool { return name != leaked && !slices.Contains(risks, name) }
		recommended := &update.Conditions[0]
		if recommended.Status == metav1.ConditionFalse && !slices.ContainsFunc(update.RiskNames, open) {
			recommended.Status, recommended.Reason = metav1.ConditionTrue, "AllExposedRisksAccepted"
			e.state.Available[update.Release.Version] = update.Release.Image
		}
	}
}

// Workflow 2 of the enhancement: the risks are accepted once, in ClusterVersion, for all
// updates.
func TestThreeRisksAreAcceptedInClusterVersion(t *testing.T) {
	e := newRiskEnvironment(t, &techPreview)
	e.evaluateRisks()
	e.apply()
	e.run(exit.Blocked, "--to", "4.18.16").expectCauses(causes{blocking: []string{dualStack, bootImages, highLoad}})

	e.call(exit.Ready, "accept", acceptable)
	e.reconcile()
	e.run(exit.Blocked, "--to", "4.18.16").
		expectCauses(causes{blocking: []string{highLoad}, accepted: []string{dualStack, bootImages}}).
		expectFinding(highLoad, preflight.Fail, "RiskApplies", "4.18.16", "high load from I/O wait", "--accept "+highLoad, "COS-2705").
		expectCVORejects("InvalidClusterVersion", "when image is empty the update must be an available update")
	e.run(exit.Ready, "--to", "4.18.17").
		expectCauses(causes{accepted: []string{bootImages}}).
		expectStart("adm upgrade --to 4.18.17").
		expectFinding("ReleaseSignature", preflight.Pass, "Verified").
		expectFinding("AcceptanceUnused", preflight.Warn, "Unused", dualStack+" (spec.desiredUpdate.acceptRisks)", leaked).
		expectCVOAccepts()
	e.run(exit.Ready, "--to", "4.19.1").expectCauses(causes{}).expectFinding(leaked, preflight.Pass, "RiskDoesNotApply")
	// Workflow 1: a further risk is accepted for this update only.
	e.run(exit.Ready, "--to", "4.18.16", "--accept", highLoad).
		expectCauses(causes{accepted: []string{dualStack, bootImages, highLoad}}).
		expectStart("adm upgrade --allow-not-recommended --to 4.18.16").
		expectCVOAccepts()
}

func TestAcceptWritesClusterVersion(t *testing.T) {
	e := newRiskEnvironment(t, &techPreview)
	e.evaluateRisks()
	e.apply()
	for _, step := range []struct {
		reason string
		args   []string
		code   int
		want   []string
		output string
	}{
		{reason: "risks are added", args: []string{dualStack + "," + leaked}, want: []string{dualStack, leaked}, output: "now accepts"},
		{reason: "existing risks remain", args: []string{bootImages}, want: []string{dualStack, leaked, bootImages}, output: "now accepts"},
		{
			reason: "an accepted risk changes nothing", args: []string{bootImages}, want: []string{dualStack, leaked, bootImages},
			output: "ClusterVersion is unchanged",
		},
		{
			reason: "a trailing dash removes a risk", args: []string{leaked + "-," + highLoad}, want: []string{dualStack, bootImages, highLoad},
			output: "now accepts",
		},
		{
			reason: "removing an absent risk is no error", args: []string{leaked + "-"}, want: []string{dualStack, bootImages, highLoad},
			output: "ClusterVersion is unchanged",
		},
		{
			reason: "the API would reject the name", args: []string{"no_risk"}, code: exit.BadInput, want: []string{dualStack, bootImages, highLoad},
			output: `illegal risk "no_risk"`,
		},
		{
			reason: "a risk cannot be both added and removed", args: []string{dualStack + "," + dualStack + "-"}, code: exit.BadInput,
			want: []string{dualStack, bootImages, highLoad}, output: dualStack,
		},
		{
			reason: "no argument is an error", args: nil, code: exit.BadInput, want: []string{dualStack, bootImages, highLoad},
			output: "no risks given",
		},
		{
			reason: "--replace removes all others", args: []string{"RiskA,RiskB", "--replace"}, want: []string{"RiskA", "RiskB"},
			output: "now accepts these risks: RiskA, RiskB",
		},
		{reason: "--clear removes all", args: []string{"--clear"}, want: nil, output: "now accepts these risks: none"},
	} {
		got := e.call(step.code, append([]string{"accept"}, step.args...)...)
		if !strings.Contains(got.Stdout+got.Stderr, step.output) {
			t.Errorf("accept %q (%s): no %q in the output: %s%s", step.args, step.reason, step.output, got.Stdout, got.Stderr)
		}
		if diff := cmp.Diff(step.want, e.accepted()); diff != "" {
			t.Errorf("accept %q (%s): -want +got:\n%s", step.args, step.reason, diff)
		}
	}
}

// In most clusters ClusterVersion has no field for accepted risks, which the API server drops
// silently.
func TestClusterVersionWithoutAcceptRisks(t *testing.T) {
	e := newRiskEnvironment(t, &byDefault)
	e.apply()
	got := e.call(exit.Failed, "accept", acceptable)
	for _, words := range []string{"ClusterUpdateAcceptRisks is off", "nothing was changed", "--accept RISK,... or --accept-file FILE"} {
		if !strings.Contains(got.Stderr, words) {
			t.Errorf("the output of accept does not contain %q: %s", words, got.Stderr)
		}
	}
	if names := e.accepted(); len(names) > 0 {
		t.Errorf("the cluster accepts %q", names)
	}
	e.call(exit.Ready, "accept", "--clear")

	e.run(exit.Blocked, "--to", "4.18.16", "--accept", acceptable).
		expectCauses(causes{blocking: []string{highLoad}, accepted: []string{dualStack, bootImages}}).
		expectCVORejects("InvalidClusterVersion", "accepted risks make no difference without the feature gate ClusterUpdateAcceptRisks")
	// CVO accepts a conditional update by its image, but not by its version only.
	e.run(exit.Ready, "--to", "4.18.17", "--accept", acceptable).
		expectCauses(causes{accepted: []string{bootImages}}).
		expectStart("adm upgrade --allow-not-recommended --to 4.18.17").
		expectCVORejects("InvalidClusterVersion", "by version and image only")
	e.run(exit.Ready, "--to-image", e.state.Conditional[1].Release.Image, "--accept", bootImages).
		expectCauses(causes{accepted: []string{bootImages}}).
		expectCVOAccepts()
	e.run(exit.Ready, "--to", "4.19.1").expectCauses(causes{}).expectFinding(leaked, preflight.Pass, "RiskDoesNotApply")
}

// fleetRisks is an acceptance file of a fleet, as in git.
const fleetRisks = `apiVersion: preflight.openshift.io/v1alpha1
kind: AcceptedRisks
risks:
- {risk: DualStackNeedsController, reason: no dual stack here, owner: ann@example.com, versions: ">=4.18.0 <4.19.0"}
- {risk: OldBootImagesPodmanMissingAuthFlag, reason: nothing is scaled up, owner: ann@example.com, expires: 2099-12-31}
- {risk: LeakedMachineConfigBlocksMCO, reason: see SDN-2212, owner: bob@example.com}
- {risk: RHELKernelHighLoadIOWait, reason: only until the fix is out, owner: bob@example.com, expires: 2026-01-31}
`

func TestRisksAreAcceptedByAFile(t *testing.T) {
	e := newRiskEnvironment(t, &byDefault)
	e.apply()
	file := e.file("accepted-risks.yaml", fleetRisks)
	e.evaluate(exit.Blocked, "4.18.16", "--accept-file", file).
		expectCauses(causes{blocking: []string{highLoad}, accepted: []string{dualStack, bootImages}}).
		expectFinding("AcceptanceExpired", preflight.Warn, "Expired", highLoad, "entry 4", "bob@example.com", "2026-01-31").
		expectFinding("AcceptanceUnused", preflight.Warn, "Unused", leaked, "entry 3")
	e.evaluate(exit.Ready, "4.18.17", "--accept-file", file).expectCauses(causes{accepted: []string{bootImages}})
	// A risk without a definition in the cluster.
	e.evaluate(exit.Ready, "4.18.17", "--accept-file", file, "--accept", "OldBootImages").
		expectFinding("AcceptanceUnused", preflight.Warn, "Unused", "OldBootImages (--accept)")
}

// file writes a file, and returns its path.
func (e *environment) file(name, content string) string {
	e.t.Helper()
	path := filepath.Join(e.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// Since 4.23, CVO lists its gates among the risks. They can be accepted like risks, but the
// preconditions of CVO ignore the acceptance.
func TestAcceptingDoesNotOpenGates(t *testing.T) {
	const etcd, ack = "ClusterOperatorUpgradeable-etcd", "AdminAck-ack-4.18-boot-images"
	e := newRiskEnvironment(t, &techPreview)
	e.evaluateRisks()
	e.state.Operators = append(e.state.Operators[1:], operator("etcd", configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "NoQuorum", Message: "a member is missing",
	}))
	e.state.Gates = map[string]string{"ack-4.18-boot-images": "Read https://docs.example.com/boot-images first."}
	e.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "MultipleReasons",
		Message: "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* a member is missing\n* Read " +
			"https://docs.example.com/boot-images first.",
	}}
	update := &e.state.Conditional[2]
	e.state.Available = map[string]string{}
	for _, name := range []string{etcd, ack} {
		risk := riskNamed(dualStack)
		risk.Name = name
		risk.Conditions = []metav1.Condition{{Type: "Applies", Status: metav1.ConditionTrue, Reason: "Match", LastTransitionTime: metav1.Now()}}
		e.state.Risks = append(e.state.Risks, risk)
		risk.Conditions = nil
		update.Risks, update.RiskNames = append(update.Risks, risk), append(update.RiskNames, name)
	}
	update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionFalse, "ExposedToRisks"
	e.apply()
	e.call(exit.Ready, "accept", etcd+","+ack)
	e.reconcile()
	e.run(exit.Blocked, "--to", "4.19.1").
		expectCauses(causes{blocking: []string{ack, etcd, "ClusterVersionUpgradeable"}}).
		expectFinding(etcd, preflight.Fail, "NoQuorum", "a member is missing", "oc get clusteroperator etcd").
		expectFinding(ack, preflight.Fail, "AdminAckRequired", "https://docs.example.com/boot-images", "oc preflight ack ack-4.18-boot-images").
		expectFinding("AcceptanceWithoutEffect", preflight.Warn, "NotAcceptable").
		expectCVORejects("PreconditionChecks", "a member is missing")
	// The gates do not apply to patch updates.
	e.run(exit.Ready, "--to", "4.18.17", "--accept", bootImages).expectCauses(causes{accepted: []string{bootImages}}).expectNoFinding(etcd)
	if result := e.run(exit.Blocked, "--to", "4.19.1", "--force", "--force-reason", "the fix of an outage"); !result.verdict.Forced {
		t.Error("the verdict is not marked as forced")
	}
}
