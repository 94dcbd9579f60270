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

// Remedy is what to do next, with its commands.
func (e *Error) Remedy() (sentence string, commands []finding.Action) {
	return e.Remediation, e.Actions
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

var (
	reasonNotVerified = finding.NewReason("NotVerified", finding.Explanation{
		Meaning: "Reported when a release is read that was not verified.",
		Cause:   "A defect of the calling program.",
		Remedy:  "Verify the release first.",
	})
	reasonInvalidPullSpec = finding.NewReason("InvalidPullSpec", finding.Explanation{
		Meaning: "Reported when the pull spec of the release is not by the verified digest.",
		Cause:   "A defect of the calling program.",
		Remedy:  "Name the release as REPOSITORY@sha256:DIGEST.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "Reported when a registry serves other content than the digest identifies.",
		Cause:   "A defect or compromise of the registry or a proxy.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonLayerTruncated = finding.NewReason("LayerTruncated", finding.Explanation{
		Meaning: "Reported when a registry ends the response before the layer is complete.",
		Cause:   "The connection broke, or the registry lacks a part of the layer.",
		Remedy:  "Run the preflight again; if it persists, mirror the release again: oc adm release mirror.",
	})
	reasonLayerTooLarge = finding.NewReason("LayerTooLarge", finding.Explanation{
		Meaning: "Reported when the layer of the manifests exceeds the limits.",
		Cause:   "The image is not a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonDuplicateEntry = finding.NewReason("DuplicateEntry", finding.Explanation{
		Meaning: "Reported when the layer has a file twice.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonUnsafeEntry = finding.NewReason("UnsafeEntry", finding.Explanation{
		Meaning: "Reported when the layer has an entry with a path outside of the image.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonNotAFile = finding.NewReason("NotAFile", finding.Explanation{
		Meaning: "Reported when an entry of the manifests is not a regular file.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonWhiteout = finding.NewReason("Whiteout", finding.Explanation{
		Meaning: "Reported when the layer deletes a manifest of a lower layer.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonFileTooLarge = finding.NewReason("FileTooLarge", finding.Explanation{
		Meaning: "Reported when a manifest exceeds 8 MiB.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonMalformedLayer = finding.NewReason("MalformedLayer", finding.Explanation{
		Meaning: "Reported when the layer of the manifests is not a valid tar archive.",
		Cause:   "The image is not a release image, or was built by an incompatible tool.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
)
