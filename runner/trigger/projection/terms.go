package projection

import (
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// MeetsTerms reports whether a verdict results from a run with the accepted findings of the
// object. A forced verdict is not.
func MeetsTerms(decided report.Report, object *v1alpha1.UpdatePreflight) bool {
	return terms(decided, object) == ""
}

// terms states why MeetsTerms is false for a verdict; empty if it is true. An object of the
// controller accepts what its runs and those of the command line accepted.
func terms(decided report.Report, object *v1alpha1.UpdatePreflight) string {
	if decided.Verdict.Forced {
		return "its verdict was forced"
	}
	if object.Owned() {
		return ""
	}
	for _, found := range decided.Findings {
		accepted := slices.Contains(object.Spec.AcceptedFindings, found.Name)
		switch {
		case acceptedElsewhere(found) && !accepted:
			return fmt.Sprintf("its verdict accepts %s, which spec.acceptedFindings does not", found.Name)
		case accepted && found.Open() && found.Source.Acceptable():
			return fmt.Sprintf("its verdict does not accept %s, which spec.acceptedFindings does", found.Name)
		}
	}
	return ""
}

// acceptedElsewhere reports whether a finding was accepted by the request of a run:
// every run has the acceptances of ClusterVersion.
func acceptedElsewhere(found finding.Finding) bool {
	return found.Bypass != nil && found.Bypass.By == finding.ByAcceptedRisk && found.Bypass.Detail != acceptance.Origin
}
