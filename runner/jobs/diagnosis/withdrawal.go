package diagnosis

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/alteration"
)

var reasonBesideAltered = finding.NewReason("BesideAlteredPod", finding.Explanation{
	Meaning: "Reported for a check that did not fail in a run in which a mutating webhook or policy changed the pod of another check. " +
		"The changed pod may have influenced it, for example by what it did to their node.",
	Cause: "The admission policy of the run, which rejects such pods before they start, is not in force, or does not see the change.",
	Remedy: "Exempt objects with the label preflight.openshift.io/run from the webhook or policy, check the node on which the changed " +
		"pod ran, then run the preflight again.",
})

// Withdraw returns the findings of a run without what the Jobs of a cluster report in favor of the update, if a pod of one of
// them was altered by admission and may have run: each such finding is Unknown, and names that pod.
func Withdraw(findings []finding.Finding) []finding.Finding {
	altered := map[string]finding.Finding{}
	for _, f := range findings {
		if f.Job != nil && f.Job.Attempts > 0 && f.Reason == alteration.ReasonAlteredByAdmission.String() {
			altered[f.Job.Cluster] = f
		}
	}
	if len(altered) == 0 {
		return findings
	}
	kept := make([]finding.Finding, 0, len(findings))
	for _, f := range findings {
		if f.Job != nil && f.Outcome != preflight.Fail && f.Outcome != preflight.Unknown {
			if by, found := altered[f.Job.Cluster]; found {
				f = besideAltered(f, by)
			}
		}
		kept = append(kept, f)
	}
	return kept
}

func besideAltered(f, by finding.Finding) finding.Finding {
	where := ""
	if by.Job.Node != "" {
		where = fmt.Sprintf("; what that pod did to node %s stays after the run", by.Job.Node)
	}
	withdrawn := finding.Unknown(reasonBesideAltered, "the result of the check does not count (%s: %s), because admission changed a pod of %s%s", f.Outcome, f.Message, by.Name, where).
		Named(f.Name).From(finding.SourceJob).About(append(f.Objects, by.Objects...)...).Do(by.Actions...).Do(finding.Retry(""))
	withdrawn.Job = f.Job
	return withdrawn
}
