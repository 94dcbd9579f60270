package image

import (
	"errors"
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
)

// violation is a final response: no other place is tried.
type violation struct {
	reason  finding.Reason
	text    string
	outcome preflight.Outcome
}

func (r *violation) Error() string { return r.text }

func reject(reason finding.Reason, format string, args ...any) *violation {
	return &violation{reason: reason, outcome: preflight.Fail, text: fmt.Sprintf(format, args...)}
}

// unusable makes the violation of a manifest that no node accepts. Only an image that
// is missing for an architecture has another remedy.
func unusable(err error) error {
	rejected, ok := errors.AsType[*ocimanifest.Violation](err)
	if !ok {
		return err
	}
	reason := reasonInvalidManifest
	if rejected.Reason == ocimanifest.ReasonArchitectureMissing || rejected.Reason == ocimanifest.ReasonNoLinuxImage {
		reason = reasonArchitectureMissing
	}
	return reject(reason, "%s", rejected.Message)
}
