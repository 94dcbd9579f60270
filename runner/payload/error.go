package payload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxText bounds, in bytes, what of outside text is repeated in a message.
const maxText = 512

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
	return e.Message + ": " + oneLine(e.Err.Error())
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

// unreadable makes the error for what could not be had from the registry.
func unreadable(err error, what string) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	reason, remedy := "RegistryUnreachable", "Check that the registry can be reached from here, then run the preflight again."
	var answer *transport.Error
	switch {
	case errors.Is(err, context.Canceled):
		reason, remedy = "Interrupted", "Run the preflight again and let it finish."
	case errors.Is(err, context.DeadlineExceeded):
		reason, remedy = "Timeout", "Check the connection to the registry, then run the preflight again."
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		reason, remedy = "ImageNotFound", "Check the pull spec, and on a mirror that the release is mirrored: oc adm release mirror"
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		reason, remedy = "RegistryUnauthorized", "Log in to the registry with an account that may pull the image: podman login"
	case errors.As(err, &answer):
		reason, remedy = "RegistryError", "Try again; if it stays, ask the operators of the registry."
	}
	return &Error{Reason: reason, Message: "cannot read " + what, Remediation: remedy, Outcome: preflight.Unknown, Err: err}
}

// oneLine makes text from outside fit for a message: printable, in one line,
// and not longer than maxText.
func oneLine(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	text = strings.ToValidUTF8(text, "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
