package collector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/finding"
)

// The reasons for which a check ended with an error.
var (
	ReasonInterrupted = finding.NewReason("Interrupted", finding.Explanation{
		Meaning: "Reported for a check that was still running when the run was canceled.",
		Cause:   "Ctrl-C, \"cancel\", or the end of the process that held the run.",
		Remedy:  "Run the preflight again and let it finish.",
	})
	ReasonTimeout = finding.NewReason("Timeout", finding.Explanation{
		Meaning: "Reported for a check that did not end before the deadline of the run.",
		Cause:   "The check is slow, waits for a node, or the timeout is too short.",
		Remedy:  "Run the preflight again with a longer timeout.",
	})
	ReasonForbidden = finding.NewReason("Forbidden", finding.Explanation{
		Meaning: "Reported for a check that read something it has no permission for.",
		Cause:   "The user or ServiceAccount that runs the check lacks a role.",
		Remedy:  "Bind the roles that \"auth\" prints.",
	})
	ReasonUnauthorized = finding.NewReason("Unauthorized", finding.Explanation{
		Meaning: "Reported when the API server rejects the credentials.",
		Cause:   "The token has expired or was revoked.",
		Remedy:  "Log in again.",
	})
	ReasonError = finding.NewReason("Error", finding.Explanation{
		Meaning: "Reported for a check that could not be completed for a cause without a reason of its own; the message has it.",
		Cause:   "An object could not be read, or a server did not respond.",
		Remedy:  "Fix what the message names, then run the preflight again.",
	})
)

func inconclusive(err error) finding.Finding {
	switch {
	case errors.Is(err, context.Canceled):
		return finding.Unknown(ReasonInterrupted, "%v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return finding.Unknown(ReasonTimeout, "%v", err).Do(finding.Retry(finding.OptionTimeout))
	case apierrors.IsForbidden(err):
		return finding.Unknown(ReasonForbidden, "%v", err).
			Remedy("Run the preflight as a user with permission to read what the message names.").Do(finding.Roles())
	case apierrors.IsUnauthorized(err):
		return finding.Unknown(ReasonUnauthorized, "%v", err).Do(finding.OnThisMachine("oc login"))
	}
	return finding.Unknown(ReasonError, "%v", err)
}
