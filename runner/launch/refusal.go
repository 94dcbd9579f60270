package launch

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	batchv1 "k8s.io/api/batch/v1"
)

// maxFaults bounds how many faults a message lists.
const maxFaults = 5

// refusal is the finding about a Job that may not run. A check that may not run
// has not passed, and the release can only be put right by its makers.
func refusal(check Check, job *batchv1.Job, faults []fault) finding.Finding {
	texts := make([]string, 0, maxFaults)
	for _, f := range faults[:min(maxFaults, len(faults))] {
		texts = append(texts, f.String())
	}
	if more := len(faults) - maxFaults; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return finding.Fail(finding.Reason(faults[0].rule), "Job %q of %s may not run: %s", job.Name, check.File, strings.Join(texts, "; ")).
		Named(check.Name).
		From(finding.SourceJob).
		Remedy("Report it to the owners of component %q: the release must not ship it. To update without this check, accept the finding.", check.Component).
		Do(finding.Accept(check.Name)).
		About(finding.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name})
}
