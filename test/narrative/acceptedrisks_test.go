package narrative_test

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
	"github.com/openshift/update-preflight/test/prometheus"
)

// The risks of the enhancement accepted-risks. Of these, the administrator
// accepts all but the last.
const (
	dualStack  = "DualStackNeedsController"
	bootImages = "OldBootImagesPodmanMissingAuthFlag"
	leaked     = "LeakedMachineConfigBlocksMCO"
	highLoad   = "RHELKernelHighLoadIOWait"

	acceptable = dualStack + "," + bootImages + "," + leaked
)

// measured are the series that the queries of these risks ask for.
func measured() []prometheus.Rule {
	return []prometheus.Rule{
		{Record: "old_boot_images", Expr: "vector(1)"}, {Record: "kernel_high_load", Expr: "vector(1)"}, {Record: "leaked_machine_configs", Expr: "vector(0)"},
	}
}

// riskNamed is one of these risks as the update service has it.
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

// conditional is an update with these risks, which are not evaluated
// anything yet.
func conditional(version, image string, risks ...string) configv1.ConditionalUpdate {
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

// storied is the cluster of the enhancement: 4.18.15, three conditional updates
// and one that is plainly available, all of them real releases.
func storied(t *testing.T, stage *stage) *scene {
	t.Helper()
	s := on(t, stage, measured()...)
	images := s.publish("4.18.16", "4.18.17", "4.19.1")
	s.state.Conditional = []configv1.ConditionalUpdate{
		conditional("4.18.16", images["4.18.16"], dualStack, bootImages, highLoad),
		conditional("4.18.17", images["4.18.17"], bootImages),
		conditional("4.19.1", images["4.19.1"], leaked),
	}
	return s
}

// evaluated adds what CVO makes of the risks where the feature set has accepted
// risks: each is published once, with whether it applies.
func (s *scene) evaluated() {
	applies := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Applies", Status: status, Reason: reason, LastTransitionTime: metav1.Now()}}
	}
	for _, name := range []string{dualStack, bootImages, highLoad} {
		risk := riskNamed(name)
		risk.Conditions = applies(metav1.ConditionTrue, "Match")
		s.state.Risks = append(s.state.Risks, risk)
	}
	risk := riskNamed(leaked)
	risk.Conditions = applies(metav1.ConditionFalse, "NotMatch")
	s.state.Risks = append(s.state.Risks, risk)
	for i := range s.state.Conditional {
		update := &s.state.Conditional[i]
		for _, risk := range update.Risks {
			update.RiskNames = append(update.RiskNames, risk.Name)
		}
		update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionFalse, "ExposedToRisks"
		if update.Release.Version == "4.19.1" {
			update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionTrue, "NotExposedToRisks"
			s.state.Available = map[string]string{"4.19.1": update.Release.Image}
		}
	}
}

// accepted are the risks that the cluster has in its ClusterVersion.
func (s *scene) accepted() []string {
	s.t.Helper()
	version, err := configclient.NewForConfigOrDie(s.config).ConfigV1().ClusterVersions().Get(s.t.Context(), "version", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	if version.Spec.DesiredUpdate != nil {
		for _, risk := range version.Spec.DesiredUpdate.AcceptRisks {
			names = append(names, risk.Name)
		}
	}
	return names
}

// catchUp has the cluster's status follow its spec, as CVO does: an update is
// available once all of its risks that apply are accepted.
func (s *scene) catchUp() {
	s.t.Helper()
	s.accept(s.accepted()...)
	s.apply()
}

func (s *scene) accept(risks ...string) {
	s.state.Desired = nil
	for _, name := range risks {
		if s.state.Desired == nil {
			s.state.Desired = &configv1.Update{}
		}
		s.state.Desired.AcceptRisks = append(s.state.Desired.AcceptRisks, configv1.AcceptRisk{Name: name})
	}
	for i := range s.state.Conditional {
		update := &s.state.Conditional[i]
		open := func(name string) bool { return name != leaked && !slices.Contains(risks, name) }
		recommended := &update.Conditions[0]
		if recommended.Status == metav1.ConditionFalse && !slices.ContainsFunc(update.RiskNames, open) {
			recommended.Status, recommended.Reason = metav1.ConditionTrue, "AllExposedRisksAccepted"
			s.state.Available[update.Release.Version] = update.Release.Image
		}
	}
}

// Workflow 2 of the enhancement: the risks are accepted once, in ClusterVersion,
// for whatever update comes.
func TestThreeRisksAreAcceptedInClusterVersion(t *testing.T) {
	t.Parallel()
	s := storied(t, &techPreview)
	s.evaluated()
	s.apply()
	s.run(blocked, "--to", "4.18.16").because(names{blocking: []string{dualStack, bootImages, highLoad}})

	s.call(ready, "accept", acceptable)
	s.catchUp()
	s.run(blocked, "--to", "4.18.16").
		because(names{blocking: []string{highLoad}, accepted: []string{dualStack, bootImages}}).
		finds(highLoad, preflight.Fail, "RiskApplies", "4.18.16", "high load from I/O wait", "--accept "+highLoad, "COS-2705").
		cvoRefuses("InvalidClusterVersion", "when image is empty the update must be an available update")
	s.run(ready, "--to", "4.18.17").
		because(names{accepted: []string{bootImages}}).
		finds("ReleaseSignature", preflight.Pass, "Verified").
		finds("AcceptanceUnused", preflight.Warn, "Unused", dualStack+" (spec.desiredUpdate.acceptRisks)", leaked).
		cvoTakes()
	s.run(ready, "--to", "4.19.1").because(names{}).finds(leaked, preflight.Pass, "RiskDoesNotApply")
	// Workflow 1: more is accepted for this update alone.
	s.run(ready, "--to", "4.18.16", "--accept", highLoad).
		because(names{accepted: []string{dualStack, bootImages, highLoad}}).
		cvoTakes()
}

func TestAcceptKeepsWhatItSays(t *testing.T) {
	t.Parallel()
	s := storied(t, &techPreview)
	s.evaluated()
	s.apply()
	for _, step := range []struct {
		reason string
		args   []string
		code   int
		want   []string
		says   string
	}{
		{reason: "they are appended", args: []string{dualStack + "," + leaked}, want: []string{dualStack, leaked}, says: "now accepts"},
		{reason: "what is there stays", args: []string{bootImages}, want: []string{dualStack, leaked, bootImages}, says: "now accepts"},
		{reason: "a second time changes nothing", args: []string{bootImages}, want: []string{dualStack, leaked, bootImages}, says: "ClusterVersion is unchanged"},
		{reason: "a dash takes one back", args: []string{leaked + "-," + highLoad}, want: []string{dualStack, bootImages, highLoad}, says: "now accepts"},
		{reason: "to take back what is not there is no error", args: []string{leaked + "-"}, want: []string{dualStack, bootImages, highLoad}, says: "ClusterVersion is unchanged"},
		{reason: "the API would not take the name", args: []string{"no_risk"}, code: badInput, want: []string{dualStack, bootImages, highLoad}, says: `illegal risk "no_risk"`},
		{reason: "both cannot be", args: []string{dualStack + "," + dualStack + "-"}, code: badInput, want: []string{dualStack, bootImages, highLoad}, says: dualStack},
		{reason: "no risk is not none", args: nil, code: badInput, want: []string{dualStack, bootImages, highLoad}, says: "no risks given"},
		{reason: "these and no others", args: []string{"RiskA,RiskB", "--replace"}, want: []string{"RiskA", "RiskB"}, says: "now accepts these risks: RiskA, RiskB"},
		{reason: "none is none", args: []string{"--clear"}, want: nil, says: "now accepts these risks: none"},
	} {
		got := s.call(step.code, append([]string{"accept"}, step.args...)...)
		if !strings.Contains(got.stdout+got.stderr, step.says) {
			t.Errorf("accept %q (%s) does not say %q: %s%s", step.args, step.reason, step.says, got.stdout, got.stderr)
		}
		if diff := cmp.Diff(step.want, s.accepted()); diff != "" {
			t.Errorf("accept %q (%s): -want +got:\n%s", step.args, step.reason, diff)
		}
	}
}

// Most clusters have no such field: the API server drops it without a word.
func TestWhereClusterVersionKeepsNoRisks(t *testing.T) {
	t.Parallel()
	s := storied(t, &byDefault)
	s.apply()
	got := s.call(failed, "accept", acceptable)
	for _, words := range []string{"ClusterUpdateAcceptRisks is off", "nothing was changed", "--accept RISK,... or --accept-file FILE"} {
		if !strings.Contains(got.stderr, words) {
			t.Errorf("accept does not say %q: %s", words, got.stderr)
		}
	}
	if names := s.accepted(); len(names) > 0 {
		t.Errorf("the cluster accepts %q", names)
	}
	s.call(ready, "accept", "--clear")

	s.run(blocked, "--to", "4.18.16", "--accept", acceptable).
		because(names{blocking: []string{highLoad}, accepted: []string{dualStack, bootImages}}).
		cvoRefuses("InvalidClusterVersion", "accepted risks make no difference without the feature gate ClusterUpdateAcceptRisks")
	// CVO takes no conditional update by its version alone, but by its image.
	s.run(ready, "--to", "4.18.17", "--accept", acceptable).
		because(names{accepted: []string{bootImages}}).
		cvoRefuses("InvalidClusterVersion", "by version and image only")
	s.run(ready, "--to-image", s.state.Conditional[1].Release.Image, "--accept", bootImages).
		because(names{accepted: []string{bootImages}}).
		cvoTakes()
	s.run(ready, "--to", "4.19.1").because(names{}).finds(leaked, preflight.Pass, "RiskDoesNotApply")
}

// fleet is an acceptance file that a fleet keeps in git.
const fleet = `apiVersion: preflight.openshift.io/v1alpha1
kind: AcceptedRisks
risks:
- {risk: DualStackNeedsController, reason: no dual stack here, owner: ann@example.com, versions: ">=4.18.0 <4.19.0"}
- {risk: OldBootImagesPodmanMissingAuthFlag, reason: nothing is scaled up, owner: ann@example.com, expires: 2099-12-31}
- {risk: LeakedMachineConfigBlocksMCO, reason: see SDN-2212, owner: bob@example.com}
- {risk: RHELKernelHighLoadIOWait, reason: only until the fix is out, owner: bob@example.com, expires: 2026-01-31}
`

func TestRisksAreAcceptedByAFile(t *testing.T) {
	t.Parallel()
	s := storied(t, &byDefault)
	s.apply()
	file := s.file("accepted-risks.yaml", fleet)
	s.explain(blocked, "4.18.16", "--accept-file", file).
		because(names{blocking: []string{highLoad}, accepted: []string{dualStack, bootImages}}).
		finds("AcceptanceExpired", preflight.Warn, "Expired", highLoad, "entry 4", "bob@example.com", "2026-01-31").
		finds("AcceptanceUnused", preflight.Warn, "Unused", leaked, "entry 3")
	s.explain(ready, "4.18.17", "--accept-file", file).because(names{accepted: []string{bootImages}})
	// A risk that has no definition in the cluster any more, or never had one.
	s.explain(ready, "4.18.17", "--accept-file", file, "--accept", "OldBootImages").
		finds("AcceptanceUnused", preflight.Warn, "Unused", "OldBootImages (--accept)")
}

func (s *scene) file(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Since 4.23 CVO has its gates among the risks, so that they look as if they
// could be accepted. But its precondition does not ask who accepted what.
func TestAcceptingDoesNotOpenGates(t *testing.T) {
	t.Parallel()
	const etcd, ack = "ClusterOperatorUpgradeable-etcd", "AdminAck-ack-4.18-boot-images"
	s := storied(t, &techPreview)
	s.evaluated()
	s.state.Operators = append(s.state.Operators[1:], operator("etcd", configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "NoQuorum", Message: "a member is missing",
	}))
	s.state.Gates = map[string]string{"ack-4.18-boot-images": "Read https://docs.example.com/boot-images first."}
	s.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "MultipleReasons",
		Message: "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* a member is missing\n* Read https://docs.example.com/boot-images first.",
	}}
	update := &s.state.Conditional[2]
	s.state.Available = map[string]string{}
	for _, name := range []string{etcd, ack} {
		risk := riskNamed(dualStack)
		risk.Name = name
		risk.Conditions = []metav1.Condition{{Type: "Applies", Status: metav1.ConditionTrue, Reason: "Match", LastTransitionTime: metav1.Now()}}
		s.state.Risks = append(s.state.Risks, risk)
		risk.Conditions = nil
		update.Risks, update.RiskNames = append(update.Risks, risk), append(update.RiskNames, name)
	}
	update.Conditions[0].Status, update.Conditions[0].Reason = metav1.ConditionFalse, "ExposedToRisks"
	s.apply()
	s.call(ready, "accept", etcd+","+ack)
	s.catchUp()
	s.run(blocked, "--to", "4.19.1").
		because(names{blocking: []string{ack, etcd, "ClusterVersionUpgradeable"}}).
		finds(etcd, preflight.Fail, "NoQuorum", "a member is missing", "--force").
		finds(ack, preflight.Fail, "AdminAckRequired", "https://docs.example.com/boot-images", "oc preflight ack ack-4.18-boot-images").
		finds("AcceptanceWithoutEffect", preflight.Warn, "NotAcceptable").
		cvoRefuses("PreconditionChecks", "a member is missing")
	// Patch updates do not ask for any of it.
	s.run(ready, "--to", "4.18.17", "--accept", bootImages).because(names{accepted: []string{bootImages}}).lacks(etcd)
	if decided := s.run(ready, "--to", "4.19.1", "--force"); !decided.verdict.Forced {
		t.Error("the verdict does not say that it is forced")
	}
}
