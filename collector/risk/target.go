package risk

import (
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	reasonInvalidVersions = finding.NewReason("InvalidVersions", finding.Explanation{
		Meaning: "Reported when conditional updates have versions that are not semantic versions, so that they cannot be requested.",
		Cause:   "A defect of the data of the update service.",
		Remedy:  "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonDuplicateUpdates = finding.NewReason("DuplicateUpdates", finding.Explanation{
		Meaning: "Reported when status.conditionalUpdates has several entries for the target. The risks of all entries are judged.",
		Cause:   "A defect of the data of the update service.",
		Remedy:  "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonDifferentImages = finding.NewReason("DifferentImages", finding.Explanation{
		Meaning: "Reported when the available and the conditional update to the target have different images.",
		Cause:   "A defect of the data of the update service.",
		Remedy:  "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonAvailableAndConditional = finding.NewReason("AvailableAndConditional", finding.Explanation{
		Meaning: "Reported when the target is an available update and also a conditional one that is not recommended. Its " +
			"risks are judged.",
		Cause:  "A defect of the data of the update service.",
		Remedy: "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonDivergentDefinitions = finding.NewReason("DivergentDefinitions", finding.Explanation{
		Meaning: "Reported when updates define a risk of the target in different ways. The definition of the target is " +
			"judged, but accepting the name accepts all.",
		Cause:  "A defect of the data of the update service.",
		Remedy: "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
)

const (
	// maxVersion bounds a version in a message, in bytes, maxVersions the versions.
	maxVersion, maxVersions = 100, 10
)

type target struct {
	read        gap.Extent
	version     *configv1.ClusterVersion
	conditional *snapshot.ConditionalUpdates
	name        string
	updates     []configv1.ConditionalUpdate
}

// stale is true when the status is older than the spec.
func (t target) stale() bool { return !cvo.HasProcessed(t.version) }

func (t target) images() []string {
	var images []string
	for _, available := range t.version.Status.AvailableUpdates {
		if available.Version == t.name {
			images = append(images, available.Image)
		}
	}
	return images
}

// risks lists the risks of the update, by name. A risk that an entry only names is defined
// in status.conditionalUpdateRisks.
func (t target) risks() []namedRisk {
	definitions := map[string][]definition{}
	for _, update := range t.updates {
		conditions := conditions{
			update: update, published: t.conditional.Published, generation: t.version.Generation,
			accepts: t.version.Spec.DesiredUpdate != nil && len(t.version.Spec.DesiredUpdate.AcceptRisks) > 0,
		}
		for name, risk := range t.risksOf(update) {
			definitions[name] = append(definitions[name], definition{risk: risk, assessment: t.trusted(conditions.of(risk), risk)})
		}
	}
	var risks []namedRisk
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		risks = append(risks, namedRisk{name: name, definitions: definitions[name]})
	}
	return risks
}

func (t target) risksOf(update configv1.ConditionalUpdate) map[string]configv1.ConditionalUpdateRisk {
	risks := map[string]configv1.ConditionalUpdateRisk{}
	for _, name := range update.RiskNames {
		risk := t.conditional.Published[name]
		risk.Name = name // also of a risk that is not defined, and so has no rules
		risks[name] = risk
	}
	for _, risk := range update.Risks {
		risks[risk.Name] = risk
	}
	return risks
}

// trusted drops the assessment that a risk does not apply where it is out of date,
// or may be about another definition of the risk: since 4.22 CVO evaluates one for
// all.
func (t target) trusted(assessed assessment, risk configv1.ConditionalUpdateRisk) assessment {
	if assessed.applies == metav1.ConditionFalse && (t.stale() || t.ambiguous(risk.Name)) {
		assessed.applies = ""
	}
	return assessed
}

// ambiguous reports whether an assessment may be about another definition of a risk.
// Before 4.22, definitions with the same matching rules have the same result.
func (t target) ambiguous(name string) bool {
	definitions := t.conditional.Definitions[name]
	if len(definitions) <= 1 {
		return false
	}
	return cvo.EvaluatesRisksByName(t.version.Status.Desired.Version) || !snapshot.SameRules(definitions)
}

// warnings are about defects of the list of updates that concern the target, and about an outdated status.
func (t target) warnings(risks []namedRisk) []finding.Finding {
	var findings []finding.Finding
	if t.stale() {
		findings = append(findings, finding.Skipped(t.read, check.ReasonStaleStatus,
			"the status of ClusterVersion is out of date, so risks are evaluated again; the finding ClusterVersionRequest blocks the update"))
	}
	if invalid := t.conditional.NotSemVer; len(invalid) > 0 {
		var versions []string
		for _, version := range invalid {
			versions = append(versions, words.Line(version, maxVersion))
		}
		findings = append(findings, defective(reasonInvalidVersions,
			"status.conditionalUpdates has versions that are not semantic versions, so they cannot be requested: %s", words.List(versions, maxVersions)))
	}
	if len(t.updates) > 1 {
		findings = append(findings, defective(reasonDuplicateUpdates,
			"status.conditionalUpdates has %s %d times; the risks of all entries are judged", t.name, len(t.updates)))
	}
	return slices.Concat(findings, t.contradictions(), t.divergences(risks))
}

// contradictions are about a target that is available too, though CVO does not recommend it, or with another image.
func (t target) contradictions() []finding.Finding {
	var findings []finding.Finding
	for _, image := range t.images() {
		for _, update := range t.updates {
			if update.Release.Image != image {
				findings = append(findings, defective(reasonDifferentImages,
					"ClusterVersion has %s as the available update %s and as the conditional update %s", t.name, image, update.Release.Image))
			}
			condition := (conditions{update: update}).find(update.Conditions, "Recommended")
			if condition == nil || condition.Status != metav1.ConditionTrue {
				findings = append(findings, defective(reasonAvailableAndConditional,
					"%s is in status.availableUpdates and, not recommended, in status.conditionalUpdates; its risks are judged", t.name))
			}
		}
	}
	return findings
}

// divergences are about risks of the target with several definitions.
func (t target) divergences(risks []namedRisk) []finding.Finding {
	var findings []finding.Finding
	for _, risk := range risks {
		if count := len(t.conditional.Definitions[risk.name]); count > 1 {
			findings = append(findings, defective(reasonDivergentDefinitions,
				"status.conditionalUpdates has %d definitions of the risk %s; that of %s is judged, but accepting the name accepts all",
				count, words.Line(risk.name, maxText), t.name))
		}
	}
	return findings
}

// defective warns of a defect of the data of the update service.
func defective(reason finding.Reason, format string, args ...any) finding.Finding {
	return finding.Warn(reason, "%s", fmt.Sprintf(format, args...)).
		Remedy("Report this to the update service.").
		Do(finding.Read("oc get clusterversion version -o jsonpath={.spec.upstream}"))
}
