package gate

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

const (
	ReasonPreviousRelease finding.Reason = "PreviousRelease"
	ReasonNotBefore       finding.Reason = "NotBefore"
)

// Rollback is CVO's precondition against going back: what lies before the
// current target is out of reach, but for the cluster's previous release within
// the same minor version, which some releases of CVO allow.
func Rollback() check.Check {
	return check.Check{
		Name: "ClusterVersionRollback", Kind: finding.SourceGate,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeRollback)),
	}
}

func judgeRollback(s situation) []finding.Finding {
	objection := cvo.Rollback(s.version, s.target())
	switch {
	case objection != nil:
		return []finding.Finding{refused(objection, fmt.Sprintf(
			"Choose a release that is not before %s: oc preflight targets. Only --force gets past it, and such a rollback is neither tested nor supported.", s.move.From))}
	case s.move.Kind() == update.Rollback:
		return []finding.Finding{finding.Warn(ReasonPreviousRelease,
			"%s is the cluster's previous release; going back to it from %s brings back what was fixed since", s.target(), s.move.From).
			Remedy("Better go forward to a release with a fix: oc preflight targets")}
	}
	return []finding.Finding{finding.Pass(ReasonNotBefore, "%s is not before %s, which ClusterVersion has in status.desired", s.target(), s.move.From)}
}
