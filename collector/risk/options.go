package risk

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
)

// Options are decisions of the administrator for all updates.
type Options struct {
	// IgnoredAlerts and IgnoredNamespaces select alerts that only warn, by their
	// name and by their label "namespace".
	IgnoredAlerts, IgnoredNamespaces []string
}

// ReasonIgnored is reported when an alert is firing that the administrator
// ignores.
//
// Cause: the alert is ignored by its name, or by its namespace.
//
// Remedy: none needed.
const ReasonIgnored finding.Reason = "Ignored"

func ignoredByName(name string) string { return fmt.Sprintf("the alert %q is ignored by name", name) }

// ignored is the warning in place of a finding that is ignored for a cause.
func ignored(f finding.Finding, cause string) finding.Finding {
	return finding.Warn(ReasonIgnored, "%s: %s", cause, f.Message).
		Named(f.Name).
		Documented(f.URL).
		About(f.Objects...).
		Observed(f.Evidence)
}
