package payload

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
)

// maxText bounds, in bytes, what of outside text is repeated in a message.
const maxText = 512

// maxCause bounds what a cause below says: what each of several mirrors answered
// has to fit.
const maxCause = 1536

// Error says why a release could not be read, in the terms of a finding.
type Error struct {
	// Reason is one CamelCase word, stable between releases of this tool.
	Reason string
	// Message is the cause in one line.
	Message string
	// Remediation says what to do about it.
	Remediation string
	// Outcome is Fail when what was read must not be used, and Unknown when it
	// could not be read.
	Outcome preflight.Outcome
	// Err is the cause below, nil when there is none.
	Err error
}

// Error returns message and cause in one line.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + words.Line(e.Err.Error(), maxCause)
}

// Unwrap returns the cause below.
func (e *Error) Unwrap() error { return e.Err }

// refuse makes the error for a release that must not be used.
func refuse(reason, format string, args ...any) *Error {
	return &Error{
		Reason: reason, Message: fmt.Sprintf(format, args...), Outcome: preflight.Fail,
		Remediation: "Do not update to this image. Compare its digest with the one the release was announced with, and mirror the release again: oc adm release mirror",
	}
}

// unreadable makes the error for what could not be had from anywhere.
func unreadable(err error, what string) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	failure := &Error{
		Reason: "RegistryUnreachable", Message: "cannot read " + what, Outcome: preflight.Unknown, Err: err,
		Remediation: "Check that the registry can be reached from here, then run the preflight again.",
	}
	refused, ok := errors.AsType[*registry.Error](err)
	switch {
	case ok:
		failure.Reason, failure.Remediation = refused.Reason, refused.Remediation
	case errors.Is(err, context.Canceled):
		failure.Reason, failure.Remediation = "Interrupted", "Run the preflight again and let it finish."
	case errors.Is(err, context.DeadlineExceeded):
		failure.Reason, failure.Remediation = "Timeout", "Give the preflight more time, then run it again."
	}
	return failure
}

// oneLine makes text from outside fit for a message.
func oneLine(text string) string { return words.Line(text, maxText) }
