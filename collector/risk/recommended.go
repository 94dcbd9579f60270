package risk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	recommendedName = finding.NewName("ClusterVersionRecommendedUpdate",
		"CVO's precondition ClusterVersionRecommendedUpdate: whether the update is recommended and, if only under conditions, whether "+
			"each of its risks applies. Each risk has a finding with its name. The preflight's own risks do not count. It concerns "+
			"every update to another release.")

	reasonJudgedElsewhere = finding.NewReason("JudgedElsewhere", finding.Explanation{
		Meaning: "ClusterVersion lists risks that other checks evaluate.",
		Cause:   "CVO publishes gates and alerts as risks, too.",
		Remedy:  "See the findings of the gates and of the alerts.",
	})
	reasonRecommended = finding.NewReason("Recommended", finding.Explanation{
		Meaning: "The update is recommended unconditionally.",
		Cause:   "The target is in status.availableUpdates of ClusterVersion.",
	})
	reasonNoRisks = finding.NewReason("NoRisks", finding.Explanation{
		Meaning: "The target is a conditional update without a risk, so the condition is unknown.",
		Cause:   "An entry of status.conditionalUpdates has no risks.",
		Remedy:  "Read the entry of the update.",
		Command: "oc adm upgrade --include-not-recommended",
	})
	reasonUnknownUpdate = finding.NewReason("UnknownUpdate", finding.Explanation{
		Meaning: "The cluster does not know the target, so its risks were not evaluated.",
		Cause:   "The channel of the cluster does not contain the target, or its updates could not be retrieved.",
		Remedy: "Choose an update that the cluster knows. To continue with this one, read its known issues, and " +
			"accept the risk.",
		Command: "oc preflight accept ClusterVersionRecommendedUpdate",
	})
	reasonNoChannel = finding.NewReason("NoChannel", finding.Explanation{
		Meaning: "The cluster has no channel, so no update is recommended to it.",
		Cause:   "spec.channel of ClusterVersion is empty.",
		Remedy:  "Set the channel: `oc adm upgrade channel CHANNEL`.",
	})
)

// maxElsewhere bounds the risks in one message.
const maxElsewhere = 20

// Recommended is the check ClusterVersionRecommendedUpdate.
func Recommended(client *monitoring.Client, options Options) check.Check {
	return check.Check{
		Name: recommendedName, Kind: finding.SourceRisk,
		Concerns: func(u update.Update) bool { return u.Kind() != update.Same },
		Reads:    append(check.ReadsClusterVersion(), monitoring.Reads()...),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			return recommended{subject: s, client: client, options: options}.findings(ctx)
		},
	}
}

type recommended struct {
	subject check.Subject
	client  *monitoring.Client
	options Options
}

func (r recommended) findings(ctx context.Context) ([]finding.Finding, error) {
	version, err := r.subject.ClusterVersion(ctx)
	if apierrors.IsNotFound(err) {
		return r.subject.WithoutClusterVersion(ctx)
	}
	if err != nil {
		return nil, err
	}
	conditional, err := r.subject.Cluster.ConditionalUpdates(ctx)
	if err != nil {
		return nil, err
	}
	target := target{read: gap.ExtentOf(ctx), version: version, conditional: conditional, name: r.subject.Update.To.String()}
	target.updates = conditional.ByVersion[target.name]
	risks := target.risks()
	findings := target.warnings(risks)
	if len(target.updates) == 0 {
		findings = append(findings, target.withoutEntry())
	} else {
		findings = append(findings, r.evaluate(ctx, target, risks)...)
	}
	for i, f := range findings {
		findings[i] = f.About(check.ClusterVersionObject())
	}
	return findings, ctx.Err()
}

// evaluate evaluates all risks of the update, in the order of their names.
func (r recommended) evaluate(ctx context.Context, target target, risks []namedRisk) []finding.Finding {
	if len(risks) == 0 {
		return []finding.Finding{target.withoutRisks()}
	}
	var findings []finding.Finding
	var elsewhere []string
	evaluator := evaluator{subject: r.subject, client: r.client, id: target.version.Spec.ClusterID}
	for _, risk := range risks {
		if r.isOwn(ctx, risk, target.name) {
			findings = append(findings, finding.Skipped(target.read, check.ReasonOwnSignal,
				"the risk of %s in ClusterVersion repeats what the preflight reports about it, so it does not count",
				target.name).Named(risk.definitions[0].name()))
			continue
		}
		if source := r.judgedElsewhere(ctx, risk); source != "" {
			elsewhere = append(elsewhere, fmt.Sprintf("%s (%s)", risk.name, source))
			continue
		}
		findings = append(findings, r.ignore(risk, risk.evaluate(ctx, evaluator, target.name)))
	}
	if len(elsewhere) > 0 {
		findings = append(findings, finding.Skipped(target.read, reasonJudgedElsewhere,
			"ClusterVersion lists as risks of the update what other checks evaluate: %s", words.List(elsewhere, maxElsewhere)))
	}
	return findings
}

// judgedElsewhere returns the kind of check that evaluates a risk instead; empty for none. Alerts are evaluated in
// their current state, if they can be read.
func (r recommended) judgedElsewhere(ctx context.Context, risk namedRisk) string {
	switch {
	case r.subject.Update.LeavesMinor() && risk.isGate():
		return "a gate"
	case risk.isAlert():
		if _, err := r.client.Alerts(ctx); err == nil {
			return "an alert"
		}
	}
	return ""
}

// isOwn reports whether CVO made the risk of a signal of the preflight itself. The risk
// of an alert does not have the namespace of the alert, so it is own only while every
// alert of that name is, and counts where the alerts cannot be read.
func (r recommended) isOwn(ctx context.Context, risk namedRisk, version string) bool {
	switch {
	case risk.name == ownsignal.OperatorRisk:
		return risk.isAlways()
	case risk.all(ownsignal.AlertRisk):
		active, err := r.client.Alerts(ctx)
		return err == nil && !slices.ContainsFunc(active, func(each prometheusv1.Alert) bool {
			selected, ok := selectAlert(each)
			return ok && selected.name == risk.name && !selected.isOwn()
		})
	}
	return risk.all(func(each configv1.ConditionalUpdateRisk) bool { return ownsignal.Risk(each, version) })
}

// ignore replaces the finding of an alert that the administrator ignores.
func (r recommended) ignore(risk namedRisk, f finding.Finding) finding.Finding {
	if f.Outcome == preflight.Fail && risk.isAlert() && slices.Contains(r.options.IgnoredAlerts, risk.name) {
		return ignored(f, ignoredByName(risk.name))
	}
	return f
}

// withoutEntry is the result for a target that is no conditional update:
// recommended, or unknown to the cluster, with the reason and the message of CVO's
// warning.
func (t target) withoutEntry() finding.Finding {
	if len(t.images()) > 0 {
		return finding.Pass(t.read, reasonRecommended,
			"%s is in status.availableUpdates: the update service recommends it and declares no risks for it", t.name)
	}
	if t.version.Spec.Channel == "" {
		return finding.Unknown(reasonNoChannel, "Configured channel is unset, so the recommended status of %s is unknown.", t.updating()).
			Remedy("Set the channel, and choose an update that the cluster then knows. To continue with this one, read its known issues, " +
				"and accept the risk.").
			Do(append(clusterversion.Channels(t.version), finding.Targets(), finding.Accept(recommendedName))...)
	}
	return finding.Unknown(reasonUnknownUpdate, "%s", t.notRetrieved()).
		Do(finding.Targets(), finding.Accept(recommendedName))
}

// updating is the update in CVO's words. While the update to the target is in progress, CVO
// would name it as its own start.
func (t target) updating() string {
	if from := t.version.Status.Desired.Version; from != t.name {
		return fmt.Sprintf("updating from %s to %s", from, t.name)
	}
	return fmt.Sprintf("the update to %s, which is in progress,", t.name)
}

func (t target) notRetrieved() string {
	for _, condition := range t.version.Status.Conditions {
		switch {
		case condition.Type != configv1.RetrievedUpdates:
		case condition.Status == configv1.ConditionTrue:
			return fmt.Sprintf("RetrievedUpdates=%s (%s), so %s is probably neither recommended nor supported.",
				condition.Status, condition.Reason, strings.Replace(t.updating(), "updating", "the update", 1))
		default:
			return fmt.Sprintf("RetrievedUpdates=%s (%s), so the recommended status of %s is unknown.",
				condition.Status, condition.Reason, t.updating())
		}
	}
	return fmt.Sprintf("No RetrievedUpdates, so the recommended status of %s is unknown.", t.updating())
}

// withoutRisks is the result for a conditional update without a risk.
func (t target) withoutRisks() finding.Finding {
	return finding.Unknown(reasonNoRisks, "%s is a conditional update, but ClusterVersion lists no risk of it", t.name).
		Do(finding.Read("oc adm upgrade --include-not-recommended"))
}

var (
	reasonInvalidVersions = finding.NewReason("InvalidVersions", finding.Explanation{
		Meaning: "Conditional updates have versions that are not semantic versions, so they cannot be requested.",
		Cause:   "The data of the update service contains an error.",
		Remedy:  "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonDuplicateUpdates = finding.NewReason("DuplicateUpdates", finding.Explanation{
		Meaning: "status.conditionalUpdates contains several entries for the target. The risks of all entries are evaluated.",
		Cause:   "The data of the update service contains an error.",
		Remedy:  "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonDifferentImages = finding.NewReason("DifferentImages", finding.Explanation{
		Meaning: "The available and the conditional update to the target have different images.",
		Cause:   "The data of the update service contains an error.",
		Remedy:  "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonAvailableAndConditional = finding.NewReason("AvailableAndConditional", finding.Explanation{
		Meaning: "The target is an available update and also a conditional one that is not recommended. Its risks are evaluated.",
		Cause:   "The data of the update service contains an error.",
		Remedy:  "Report this to the update service: `oc get clusterversion version -o jsonpath='{.spec.upstream}'`.",
	})
	reasonDivergentDefinitions = finding.NewReason("DivergentDefinitions", finding.Explanation{
		Meaning: "Updates define a risk of the target in different ways. The target's definition is evaluated, but accepting the name " +
			"accepts all.",
		Cause:  "The data of the update service contains an error.",
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
			"status.conditionalUpdates contains versions that are not semantic versions, so they cannot be requested: %s",
			words.List(versions, maxVersions)))
	}
	if len(t.updates) > 1 {
		findings = append(findings, defective(reasonDuplicateUpdates,
			"status.conditionalUpdates lists %s %d times; the risks of all entries are evaluated", t.name, len(t.updates)))
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
					"ClusterVersion lists %s as the available update "+
						"%s and as the conditional update %s", t.name, image, update.Release.Image))
			}
			condition := (conditions{update: update}).find(update.Conditions, "Recommended")
			if condition == nil || condition.Status != metav1.ConditionTrue {
				findings = append(findings, defective(reasonAvailableAndConditional,
					"%s is in status.availableUpdates and, not recommended, in "+
						"status.conditionalUpdates; its risks are evaluated", t.name))
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
				"status.conditionalUpdates contains %d definitions of the risk %s; the definition of %s is evaluated, but accepting "+
					"the name accepts all",
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
