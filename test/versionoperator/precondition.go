package versionoperator

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/update-preflight/runner/trigger/cvo"
)

// releaseContext and precondition have the shape of those of CVO (pkg/payload/precondition).
type releaseContext struct{ DesiredVersion string }

type precondition interface {
	Run(ctx context.Context, releaseContext releaseContext) error
	Name() string
}

// preconditionError is the error of a precondition.
type preconditionError struct {
	name, reason, message string
	warning               bool
}

// Error implements error.
func (e *preconditionError) Error() string { return e.message }

func refuse(p cvo.Problem) error {
	return &preconditionError{name: "Preflight", reason: p.Reason, message: p.Message, warning: p.Warning}
}

// summarize is the text of an error, and whether it blocks; force bypasses it.
func summarize(err error, force bool) (text string, blocks bool) {
	if err == nil {
		return "", false
	}
	text = err.Error()
	found, isOurs := errors.AsType[*preconditionError](err)
	if isOurs {
		text = fmt.Sprintf("Precondition %q failed because of %q: %s", found.name, found.reason, found.message)
	}
	switch {
	case isOurs && found.warning:
		return text, false
	case force:
		return "Forced through blocking failures: " + text, false
	}
	return text, true
}
