package risk

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonStaleStatus finding.Reason = "StaleStatus"
	ReasonRecommended finding.Reason = "Recommended"
	ReasonNoRisks     finding.Reason = "NoRisks"
)

// target is what ClusterVersion says of one version.
type target struct {
	version     *configv1.ClusterVersion
	conditional *snapshot.ConditionalUpdates
	name        string
	// updates are the conditional updates to it.
	updates []configv1.ConditionalUpdate
}

// current says whether the status is as new as the spec beside it.
func (t target) current() bool {
	return t.version.Status.ObservedGeneration >= t.version.Generation
}

// images are the pull specs of the available updates to the target.
func (t target) images() []string {
	var images []string
	for _, available := range t.version.Status.AvailableUpdates {
		if available.Version == t.name {
			images = append(images, available.Image)
		}
	}
	return images
}

// subjects are the risks of the update, by name. A risk that is only named is
// defined in status.conditionalUpdateRisks.
func (t target) subjects() []subject {
	claims := map[string][]claim{}
	for _, update := range t.updates {
		records := records{
			update: update, published: t.conditional.Published, generation: t.version.Generation,
			accepts: t.version.Spec.DesiredUpdate != nil && len(t.version.Spec.DesiredUpdate.AcceptRisks) > 0,
		}
		for name, risk := range t.risksOf(update) {
			claims[name] = append(claims[name], claim{risk: risk, said: t.trust(records.of(risk), risk)})
		}
	}
	var subjects []subject
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		subjects = append(subjects, subject{name: name, claims: claims[name]})
	}
	return subjects
}

func (t target) risksOf(update configv1.ConditionalUpdate) map[string]configv1.ConditionalUpdateRisk {
	risks := map[string]configv1.ConditionalUpdateRisk{}
	for _, name := range update.RiskNames {
		risk := t.conditional.Published[name]
		risk.Name = name // also where it is not defined, and so has no rules
		risks[name] = risk
	}
	for _, risk := range update.Risks {
		risks[risk.Name] = risk
	}
	return risks
}

// trust takes the cluster's word that a risk does not apply only where it is
// current, and about this definition of the risk: CVO evaluates one for all.
func (t target) trust(said statement, risk configv1.ConditionalUpdateRisk) statement {
	if said.applies == metav1.ConditionFalse && (!t.current() || len(t.conditional.Definitions[risk.Name]) > 1) {
		said.applies = ""
	}
	return said
}

// remarks are what is wrong with the list of updates, as far as the target is
// concerned.
func (t target) remarks(subjects []subject) []finding.Finding {
	findings := t.stale()
	if len(t.conditional.NotSemVer) > 0 {
		findings = append(findings, remark("InvalidVersions",
			"status.conditionalUpdates has versions that are no semantic versions, so nobody can ask for them: %s",
			quote(strings.Join(t.conditional.NotSemVer, ", "))))
	}
	if len(t.updates) > 1 {
		findings = append(findings, remark("DuplicateUpdates",
			"status.conditionalUpdates has %s %d times; the risks of all entries are judged", t.name, len(t.updates)))
	}
	return append(append(findings, t.contradictions()...), t.divergences(subjects)...)
}

func (t target) stale() []finding.Finding {
	if t.current() {
		return nil
	}
	return []finding.Finding{finding.Unknown(ReasonStaleStatus,
		"the status of ClusterVersion %q is of generation %d, but its spec is of generation %d, so its updates and risks may be others by now", t.version.Name, t.version.Status.ObservedGeneration, t.version.Generation).
		Remedy("Wait until CVO has caught up, then run the preflight again. See whether it is running: oc -n openshift-cluster-version get pods")}
}

// contradictions are where the target is available too, though CVO does not
// recommend it, or as another release.
func (t target) contradictions() []finding.Finding {
	var findings []finding.Finding
	for _, image := range t.images() {
		for _, update := range t.updates {
			if update.Release.Image != image {
				findings = append(findings, remark("DifferentImages",
					"ClusterVersion knows %s as the available update %s and as the conditional update %s", t.name, image, update.Release.Image))
			}
			condition := (records{update: update}).find(update.Conditions, "Recommended")
			if condition == nil || condition.Status != metav1.ConditionTrue {
				findings = append(findings, remark("AvailableAndConditional",
					"%s is in status.availableUpdates and, not recommended, in status.conditionalUpdates; its risks are judged", t.name))
			}
		}
	}
	return findings
}

// divergences are the risks of the target that are defined in several ways.
func (t target) divergences(subjects []subject) []finding.Finding {
	var findings []finding.Finding
	for _, subject := range subjects {
		if count := len(t.conditional.Definitions[subject.name]); count > 1 {
			findings = append(findings, remark("DivergentDefinitions",
				"status.conditionalUpdates has %d definitions of the risk %s; that of %s is judged, but accepting the name accepts all",
				count, quote(subject.name), t.name))
		}
	}
	return findings
}

func remark(reason, format string, args ...any) finding.Finding {
	return finding.Warn(finding.Reason(reason), "%s", fmt.Sprintf(format, args...)).
		Remedy("Report it to the update service: oc get clusterversion version -o jsonpath='{.spec.upstream}'")
}

// unconditional is the answer for a target without risks: recommended, or not
// known at all. Nobody evaluated risks for one that is not known, so it is
// Unknown, with the reason and the words of CVO's warning.
func (t target) unconditional() finding.Finding {
	if len(t.images()) > 0 {
		return finding.Pass(ReasonRecommended,
			"%s is in status.availableUpdates: the update service recommends it and knows no risks of it", t.name)
	}
	f := finding.Finding{Finding: preflight.Finding{
		Outcome: preflight.Unknown,
		Reason:  "UnknownUpdate",
		Remediation: "Ask for an update that the cluster knows: oc preflight targets. To go on with this one, look up its known issues yourself, " +
			"then: --accept ClusterVersionRecommendedUpdate",
	}}
	from := t.version.Status.Desired.Version
	if t.version.Spec.Channel == "" {
		f.Reason = "NoChannel"
		f.Message = fmt.Sprintf("Configured channel is unset, so the recommended status of updating from %s to %s is unknown.", from, t.name)
		f.Remediation = "Set the channel: oc adm upgrade channel CHANNEL. " + f.Remediation
		return f
	}
	f.Message = fmt.Sprintf("No RetrievedUpdates, so the recommended status of updating from %s to %s is unknown.", from, t.name)
	for _, condition := range t.version.Status.Conditions {
		switch {
		case condition.Type != configv1.RetrievedUpdates:
		case condition.Status == configv1.ConditionTrue:
			f.Message = fmt.Sprintf("RetrievedUpdates=%s (%s), so the update from %s to %s is probably neither recommended nor supported.",
				condition.Status, condition.Reason, from, t.name)
		default:
			f.Message = fmt.Sprintf("RetrievedUpdates=%s (%s), so the recommended status of updating from %s to %s is unknown.",
				condition.Status, condition.Reason, from, t.name)
		}
	}
	return f
}

// withoutRisks is for a conditional update that does not say on what condition.
func (t target) withoutRisks() finding.Finding {
	return finding.Unknown(ReasonNoRisks, "%s is a conditional update, but ClusterVersion names no risk of it", t.name).
		Remedy("See what the cluster knows of it: oc adm upgrade --include-not-recommended")
}
