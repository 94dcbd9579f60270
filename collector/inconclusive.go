package collector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
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

// ReasonPanic is reported for a check that crashed.
//
// Cause: a defect of the check.
//
// Remedy: report it to the authors of the check.
const ReasonPanic finding.Reason = "Panic"

// ReasonNoResult is reported for a check that ended without a result.
//
// Cause: a defect of the check.
//
// Remedy: report it to the authors of the check.
const ReasonNoResult finding.Reason = "NoResult"

// ReasonError is reported for a check that could not be completed for a cause
// without a reason of its own; the message has it.
//
// Cause: an object could not be read, or a server did not respond.
//
// Remedy: fix what the message names, then run the preflight again.
const ReasonError finding.Reason = "Error"

// result is what one source ended with.
type result struct {
	findings []finding.Finding
	// reported is true when the source itself returned findings.
	reported bool
}

func (s Source) run(ctx context.Context) (outcome result) {
	defer func() {
		if cause := recover(); cause != nil {
			crashed := finding.Unknown(ReasonPanic, "the check panicked: %v", cause).Remedy(reportDefect)
			outcome = result{findings: s.complete(crashed)}
		}
	}()
	findings, err := s.Collect(ctx)
	if err != nil {
		return result{findings: s.complete(append(findings, inconclusive(err))...)}
	}
	if len(findings) == 0 {
		return result{findings: s.complete(finding.Unknown(ReasonNoResult, "the check returned no findings").Remedy(reportDefect))}
	}
	return result{findings: s.complete(findings...), reported: true}
}

const reportDefect = "Report it to the authors of the check: this is a defect of the check, not of the cluster."

// complete sets the kind of check, whether the finding blocks, and the name where
// there is none.
func (s Source) complete(findings ...finding.Finding) []finding.Finding {
	for i := range findings {
		findings[i].Source = s.Kind
		findings[i].Blocks = findings[i].Outcome == preflight.Fail || findings[i].Inconclusive()
		if findings[i].Name == "" {
			findings[i].Name = s.Name
		}
	}
	return findings
}

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
