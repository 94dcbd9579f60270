package launch

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxFaults bounds how many faults a message lists.
const maxFaults = 5

// refusal is the finding about a Job that may not run. A check that may not run
// has not passed, and the release can only be put right by its makers.
func refusal(check Check, job *batchv1.Job, faults []fault) preflight.Finding {
	texts := make([]string, 0, maxFaults)
	for _, f := range faults[:min(maxFaults, len(faults))] {
		texts = append(texts, f.String())
	}
	if more := len(faults) - maxFaults; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return preflight.Finding{
		Name: check.Name, Source: preflight.SourceJob, Outcome: preflight.Fail, Blocks: true,
		Reason:  faults[0].rule,
		Message: fmt.Sprintf("Job %q of %s may not run: %s", job.Name, check.File, strings.Join(texts, "; ")),
		Remediation: fmt.Sprintf("Report it to the owners of component %q: the release must not ship it so. "+
			"To go without this check, accept it: --accept %s", check.Component, check.Name),
		Objects: []preflight.Object{{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name}},
	}
}
