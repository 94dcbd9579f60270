package launch

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/finding"
)

// maxViolations bounds how many violations a message lists.
const maxViolations = 5

// rejected is the finding for a Job that violates the policy. It fails, since the
// check does not run.
func rejected(check Check, job *batchv1.Job, violations []violation) finding.Finding {
	texts := make([]string, 0, maxViolations)
	for _, f := range violations[:min(maxViolations, len(violations))] {
		texts = append(texts, f.String())
	}
	if more := len(violations) - maxViolations; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return finding.Fail(violations[0].reason, "Job %q of %s violates the policy for checks: %s", job.Name, check.File, strings.Join(texts, "; ")).
		Named(check.Name).
		From(finding.SourceJob).
		Remedy("Report it to the owners of component %q, who have to fix the release. To update without this check, accept the finding.", check.Component).
		Do(finding.Accept(check.Name)).
		About(finding.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name})
}
