package registry

import (
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// maxText bounds the external text repeated for one response, in bytes: those of
// several mirrors must fit into one message.
const maxText = 200

// Error reports that no registry provided an image. It never holds a credential.
type Error struct {
	// Reason is the kind of error.
	Reason finding.Reason
	// Message has the response of each place, in one line.
	Message string
	// Remediation is an imperative sentence, Actions are its commands.
	Remediation string
	Actions     []finding.Action
	// Err is the underlying error; nil when there is none or more than one.
	Err error
}

// Error returns the message and the underlying error in one line.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + oneLine(e.Err.Error())
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// oneLine sanitizes external text for a message.
func oneLine(text string) string { return words.Line(text, maxText) }

// The commands of remedies.
const (
	editImageConfig = "oc edit image.config.openshift.io cluster"
	setPullSecret   = "oc set data secret/pull-secret -n openshift-config --from-file=.dockerconfigjson=FILE" //nolint:gosec // no credential
	mirrorRelease   = "oc adm release mirror"
	login           = "podman login %s"
)
