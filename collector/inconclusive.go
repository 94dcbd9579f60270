package collector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/finding"
)

// ReasonInterrupted is reported for a check that was still running when the run
// was canceled.
//
// Cause: Ctrl-C, "cancel", or the end of the process that held the run.
//
// Remedy: run the preflight again and let it finish.
const ReasonInterrupted finding.Reason = "Interrupted"

// ReasonTimeout is reported for a check that did not end before the deadline of
// the run.
//
// Cause: the check is slow, waits for a node, or the timeout is too short.
//
// Remedy: run the preflight again with a longer timeout.
const ReasonTimeout finding.Reason = "Timeout"

// ReasonForbidden is reported for a check that read something it has no
// permission for.
//
// Cause: the user or ServiceAccount that runs the check lacks a role.
//
// Remedy: bind the roles that "auth" prints.
const ReasonForbidden finding.Reason = "Forbidden"

// ReasonUnauthorized is reported when the API server rejects the credentials.
//
// Cause: the token has expired or was revoked.
//
// Remedy: log in again.
const ReasonUnauthorized finding.Reason = "Unauthorized"

// ReasonError is reported for a check that could not be completed for a cause
// without a reason of its own; the message has it.
//
// Cause: an object could not be read, or a server did not respond.
//
// Remedy: fix what the message names, then run the preflight again.
const ReasonError finding.Reason = "Error"

// inconclusive is the finding of a check that ended with an error.
func inconclusive(err error) finding.Finding {
	switch {
	case errors.Is(err, context.Canceled):
		return finding.Unknown(ReasonInterrupted, "%v", err).Remedy("Run the preflight again and let it finish.")
	case errors.Is(err, context.DeadlineExceeded):
		return finding.Unknown(ReasonTimeout, "%v", err).
			Remedy("Run the preflight again with a longer timeout.").Do(finding.Retry(finding.OptionTimeout))
	case apierrors.IsForbidden(err):
		return finding.Unknown(ReasonForbidden, "%v", err).
			Remedy("Run the preflight as a user with permission to read what the message names.").Do(finding.Roles())
	case apierrors.IsUnauthorized(err):
		return finding.Unknown(ReasonUnauthorized, "%v", err).Remedy("Log in again.").Do(finding.Run("oc login"))
	}
	return finding.Unknown(ReasonError, "%v", err).Remedy("Fix what the message names, then run the preflight again.")
}
