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
	"fmt"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
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
