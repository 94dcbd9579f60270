package imagefiles

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
)

// maxCause bounds the text of an underlying error, in bytes: the responses of several mirrors must fit.
const maxCause = 1536

// Error reports that a release could not be read or must not be used.
type Error struct {
	Reason finding.Reason
	// Message is the cause in one line.
	Message string
	// Remediation is an imperative sentence, Actions are its commands.
	Remediation string
	Actions     []finding.Action
	// Outcome is Fail when the release must not be used, and Unknown when it could not be read.
	Outcome preflight.Outcome
	// Err is the underlying error; nil when there is none.
	Err error
}

// Error returns the message and the underlying error in one line.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + words.Line(e.Err.Error(), maxCause)
}

// Hint is the remedy, with its commands on lines of their own.
func (e *Error) Hint() string {
	hint := e.Remediation
	for _, action := range e.Actions {
		if hint != "" && action.Command != "" {
			hint += "\n  " + action.Command
		}
	}
	return hint
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Reject returns the error for a release that must not be used.
func Reject(reason finding.Reason, format string, args ...any) *Error {
	return &Error{
		Reason: reason, Message: fmt.Sprintf(format, args...), Outcome: preflight.Fail,
		Remediation: "Do not update to this image. Compare its digest with the announcement of the release, and mirror the release again with `oc adm release mirror`.",
	}
}

func unreadable(err error, what string) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	failure := &Error{
		Reason: registry.ReasonRegistryUnreachable, Message: "cannot read " + what, Outcome: preflight.Unknown, Err: err,
		Remediation: "Make the registry reachable from here, then run the preflight again.",
	}
	failed, ok := errors.AsType[*registry.Error](err)
	switch {
	case ok:
		failure.Reason, failure.Remediation, failure.Actions = failed.Reason, failed.Remediation, failed.Actions
	case errors.Is(err, context.Canceled):
		failure.Reason, failure.Remediation = collector.ReasonInterrupted, "Run the preflight again and let it finish."
	case errors.Is(err, context.DeadlineExceeded):
		failure.Reason, failure.Remediation = collector.ReasonTimeout, "Run the preflight again with a longer timeout."
		failure.Actions = []finding.Action{finding.Retry(finding.OptionTimeout)}
	}
	return failure
}

// unusable returns the error for a manifest that must not be used.
func unusable(err error) error {
	rejected, ok := errors.AsType[*ocimanifest.Violation](err)
	if !ok {
		return err
	}
	failure := Reject(rejected.Reason, "%s", rejected.Message)
	switch rejected.Reason {
	case ocimanifest.ReasonSchemaVersion1:
		failure.Remediation = "Mirror the release again, to a registry that preserves manifests."
	case ocimanifest.ReasonArchitectureMissing:
		failure.Message += ", the architecture of the control plane"
		failure.Remediation = "Choose the release for this architecture, or the multi-architecture release; on a mirror, mirror it with all architectures: `oc adm release mirror --keep-manifest-list`."
	}
	return failure
}
