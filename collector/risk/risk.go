// Package risk answers: which risks of this update apply to this cluster?
//
// [Checks] are the checks: for risks that the update service declares, and for those that
// the cluster's own alerts indicate. Each has the name by which it is accepted: that of the risk
// or of the alert, as in the cluster-version operator (CVO).
//
// The risks are read from ClusterVersion, with CVO's assessment of each. Where CVO
// has none, could not evaluate a risk, or its status is out of date, the rules of
// the risk are evaluated here. Differences from CVO:
//
//   - Every risk is a finding with its own cause. CVO folds them into one condition,
//     whose reason depends on their order, or is MultipleReasons.
//   - A target that CVO neither recommends nor knows is Unknown, since its risks were
//     not evaluated. CVO accepts it with a warning (recommendedupdate.go).
//   - Alerts that cannot be read are Unknown. CVO uses those that it read before, or
//     none (pkg/clusterconditions/promql/alerts.go).
//   - A rule of an unknown type does not mean that the risk does not apply. CVO drops
//     such rules, and a target that has no others.
//   - A risk that CVO drops, because its name is invalid or because two definitions of
//     it differ, is judged and reported.
//   - A gate is left to the gates, also where CVO lists it among the risks, as it does
//     from 4.23 on: accepting it does not bypass CVO's precondition
//     ClusterVersionUpgradeable, so it must not look acceptable.
//   - Rules are evaluated at once. CVO waits a second between two, and an hour before
//     it evaluates them again.
package risk

import (
	"context"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Checks are all checks for risks. A new one is added here. Checks of many updates
// may share the client, so that everything is read once for all.
func Checks(client *monitoring.Client, options Options) []check.Check {
	return []check.Check{
		Recommended(client, options),
		Alerts(client, options),
	}
}

// Options are decisions of the administrator for all updates.
type Options struct {
	// IgnoredAlerts and IgnoredNamespaces select alerts that only warn, by their
	// name and by their label "namespace".
	IgnoredAlerts, IgnoredNamespaces []string
}

var reasonIgnored = finding.NewReason("Ignored", finding.Explanation{
	Meaning: "Reported when an alert is firing that the administrator ignores.",
	Cause:   "The alert is ignored by its name, or by its namespace.",
})

func ignoredByName(name string) string { return fmt.Sprintf("the alert %q is ignored by name", name) }

// ignored is the warning in place of a finding that is ignored for a cause.
func ignored(f finding.Finding, cause string) finding.Finding {
	return finding.Warn(reasonIgnored, "%s: %s", cause, f.Message).
		Named(f.Name).
		Documented(f.URL).
		About(f.Objects...).
		Observed(f.Evidence)
}

// NameControlPlaneAlerts is the name of the check of the alerts of a hosted control plane.
var NameControlPlaneAlerts = finding.NewName("ControlPlaneAlerts",
	"The check for alerts of the management cluster about the control plane of a hosted cluster: those with the "+
		"namespace of the control plane that Alerts would count. There is a finding for each name of an alert, "+
		"ControlPlaneAlerts-NAME, by which it is accepted.")

// ControlPlaneAlerts is the check of the alerts of a hosted control plane, which the monitoring of its
// management cluster has with the namespace of the control plane. One that is not OpenShift need not have
// monitoring: then the check is Skipped.
func ControlPlaneAlerts(side *hosted.ControlPlane, options Options) check.Check {
	return check.Check{
		Name: NameControlPlaneAlerts, Kind: finding.SourceRisk, Side: check.Management,
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			s.Cluster = snapshot.Of(side.Management)
			return alerts{
				subject: s, client: side.Monitoring, options: options,
				controlPlane: hypershift.ControlPlaneNamespace(side.Cluster.Namespace, side.Cluster.Name),
			}.findings(ctx)
		},
	}
}

// Assessed is a risk that CVO has evaluated.
type Assessed struct {
	Name  string
	Rules []configv1.ClusterCondition
	// Applies is true for a risk that applies to the cluster.
	Applies bool
}

// AssessedByCluster are the risks of the conditional updates of ClusterVersion that CVO has
// evaluated, by the version of the update, then by name. Without are those that CVO could not
// evaluate, and assessments that are out of date or may be about another definition of
// the risk.
func AssessedByCluster(ctx context.Context, cluster *snapshot.Cluster) ([]Assessed, error) {
	version, err := cluster.ClusterVersion(ctx)
	if err != nil {
		return nil, err
	}
	conditional, err := cluster.ConditionalUpdates(ctx)
	if err != nil {
		return nil, err
	}
	var assessed []Assessed
	for _, name := range slices.Sorted(maps.Keys(conditional.ByVersion)) {
		to := target{version: version, conditional: conditional, name: name, updates: conditional.ByVersion[name]}
		for _, risk := range to.risks() {
			assessed = append(assessed, risk.assessed()...)
		}
	}
	return assessed, nil
}

// assessed are the definitions of the risk that CVO has evaluated.
func (r namedRisk) assessed() []Assessed {
	var found []Assessed
	for _, definition := range r.definitions {
		switch definition.assessment.applies {
		case metav1.ConditionTrue, metav1.ConditionFalse:
			found = append(found, Assessed{
				Name: r.name, Rules: definition.risk.MatchingRules, Applies: definition.assessment.applies == metav1.ConditionTrue,
			})
		case metav1.ConditionUnknown:
		}
	}
	return found
}
