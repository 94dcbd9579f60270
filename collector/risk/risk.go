// Package risk answers: which risks of this update apply to this cluster? They
// are those that the update service declares, and what the cluster's own alerts
// warn of. Each has the name by which it is accepted: that of the risk, or of
// the alert, as the cluster-version operator (CVO) has it.
//
// The risks are read from ClusterVersion, with what CVO found of each. Where it
// found nothing, or could not tell, or its status is not current, the rules of
// the risk are evaluated here. What departs from CVO, and why:
//
//   - Every risk is told of by itself, with its own cause. CVO folds them into
//     one condition, whose reason depends on their order, or is MultipleReasons.
//   - A target that CVO neither recommends nor knows is Unknown: nobody asked
//     for its risks. CVO warns, and goes on (recommendedupdate.go).
//   - Alerts that cannot be read are Unknown. CVO goes on with those it read
//     before, or with none (pkg/clusterconditions/promql/alerts.go).
//   - A rule of a type that nobody knows does not mean that the risk does not
//     apply. CVO drops such rules, and a target that has no others.
//   - What CVO drops, because its name is not valid, because there are two of
//     it, or because two definitions of it differ, is judged and told of.
//   - What is a gate is left to the gates, also where CVO lists it among the
//     risks, as it does since 4.23: accepting it does not get past CVO's
//     precondition ClusterVersionUpgradeable, so it must not look acceptable.
//   - Rules are evaluated at once. CVO waits a second between two, and an hour
//     before it asks again.
package risk

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/monitoring"
)

// Options are what the administrator decided beforehand, for all updates.
type Options struct {
	// IgnoredAlerts and IgnoredNamespaces name the alerts that only warn, by
	// their own name and by that in their label "namespace".
	IgnoredAlerts, IgnoredNamespaces []string
}

// Checks are all checks for risks, for one update of one cluster. Here belongs
// a new one. The cluster and the client of its monitoring may be shared by the
// checks of many updates; then everything is read once for all.
func Checks(client *monitoring.Client, options Options) []check.Check {
	return []check.Check{
		Recommended(client, options),
		Alerts(client, options),
	}
}
