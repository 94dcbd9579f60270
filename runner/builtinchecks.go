package runner

import (
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/machine"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/serving"
)

// builtin are the checks for one target that need nothing of its release.
func (v view) builtin(version string) []collector.Source {
	subject, err := v.subject(version)
	if err != nil {
		return []collector.Source{notComparable(err)}
	}
	if v.hop != nil {
		return collector.Bind(subject, v.laterChecks())
	}
	return collector.Bind(subject, v.checks())
}

// checks are the built-in checks of an update from the present release.
func (v view) checks() []check.Check {
	ignored := risk.Options{IgnoredAlerts: v.options.IgnoredAlerts, IgnoredNamespaces: v.options.IgnoredNamespaces}
	return slices.Concat(gate.Checks(v.options.Fixed), risk.Checks(v.options.Monitoring, ignored), health.Checks(v.options.Dependencies),
		machine.Checks(), serving.Checks())
}

// reasonUnknownUpdateKind is reported when the versions of the cluster and the
// target cannot be compared.
//
// Cause: a version is not a semantic version, or the version of the target is not
// known because its release could not be verified.
//
// Remedy: name the target by its version, or fix the verification of its signature.
const reasonUnknownUpdateKind finding.Reason = "UnknownUpdateKind"

// nameUpdate names the finding in place of all gates where the versions cannot be
// compared.
const nameUpdate = "Update"

// notComparable stands for all built-in checks: which of them apply depends on
// the versions.
func notComparable(cause error) collector.Source {
	return collector.Known(nameUpdate, finding.SourceGate, finding.Unknown(reasonUnknownUpdateKind, "the gates cannot be evaluated: %v", cause).
		Named(nameUpdate).
		Remedy("Name the target by its version, or fix the verification of its signature, from which the version is read."))
}

// askedAgain are the other built-in checks; none for an update from the present release.
func (v view) askedAgain() []report.AskedAgain {
	if v.hop == nil {
		return nil
	}
	var asked []report.AskedAgain
	evaluated := v.laterChecks()
	for _, each := range v.checks() {
		if !slices.ContainsFunc(evaluated, func(c check.Check) bool { return c.Name == each.Name }) {
			asked = append(asked, report.AskedAgain{Name: each.Name, Reason: v.hop.whyLater(each)})
		}
	}
	return asked
}
