package versionoperator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

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

// upgradeable is CVO's precondition ClusterVersionUpgradeable.
func upgradeable(object *configv1.ClusterVersion, version string) error {
	i := slices.IndexFunc(object.Status.Conditions, isUpgradeable)
	if i < 0 || object.Status.Conditions[i].Status != configv1.ConditionFalse || minorOf(version) == minorOf(object.Status.Desired.Version) {
		return nil
	}
	return &preconditionError{
		name: "ClusterVersionUpgradeable", reason: object.Status.Conditions[i].Reason,
		message: object.Status.Conditions[i].Message,
	}
}

// minorOf is the major and the minor version.
func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// summarize is the text of an error, and whether it blocks; force bypasses it.
func summarize(err error, force bool) (text string, blocks bool) {
	if err == nil {
		return "", false
	}
	text = err.Error()
	found, ok := errors.AsType[*preconditionError](err)
	if ok {
		text = fmt.Sprintf("Precondition %q failed because of %q: %s", found.name, found.reason, found.message)
	}
	switch {
	case ok && found.warning:
		return text, false
	case force:
		return "Forced through blocking failures: " + text, false
	}
	return text, true
}
