package image

import (
	"errors"
	"fmt"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/ocimanifest"
)

// refusal is an answer that is final, whatever other places have.
type refusal struct {
	reason, text string
	outcome      preflight.Outcome
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason: reason, outcome: preflight.Fail, text: fmt.Sprintf(format, args...)}
}

// unusable makes the refusal of a manifest that no node accepts. Only an image that
// is missing for an architecture has another remedy.
func unusable(err error) error {
	refused, ok := errors.AsType[*ocimanifest.Error](err)
	if !ok {
		return err
	}
	reason := reasonInvalid
	if refused.Reason == ocimanifest.ArchitectureMissing || refused.Reason == ocimanifest.NoLinuxImage {
		reason = reasonArchitecture
	}
	return refuse(reason, "%s", refused.Message)
}
