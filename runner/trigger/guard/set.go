package guard

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

// Set is the switches and the ClusterOperator of one controller. Its methods must not be
// called concurrently.
type Set struct {
	on []*Switch
	// off are the switches that are off and have not been removed yet.
	off      []*Switch
	operator *Switch
	now      func() time.Time
}

// NewSet makes a set without a request. The version is the version of the controller. An unknown
// mode of the policy is an error.
func NewSet(client dynamic.Interface, chosen Choice, version string, now func() time.Time) (*Set, error) {
	set := &Set{operator: Operator(client, version, now), now: now}
	if chosen.ClusterOperator {
		set.operator = ClusterOperator(client, version, now)
	}
	alerts := &set.off
	if chosen.Alert {
		alerts = &set.on
	}
	*alerts = append(*alerts, Alert(client))
	if chosen.Admission == "" {
		set.off = append(set.off, withoutContent(client, nameAdmission, admissionObjects()...))
		return set, nil
	}
	admission, err := Admission(client, chosen.Admission, now)
	if err != nil {
		return nil, err
	}
	set.on = append(set.on, admission)
	return set, nil
}

// withoutContent is a switch that can be listed and removed.
func withoutContent(client dynamic.Interface, name string, objects ...owned.Object) *Switch {
	return &Switch{objects: objectsOf(name, client, objects...)}
}

// Apply removes the switches that are off, until each was removed once, and applies those
// that are on and then the ClusterOperator. It does all of this that it can: the error is
// that of all, and is a cause of Degraded of the ClusterOperator. Call it again at next,
// when the first verdict expires, which is zero if none does.
func (s *Set) Apply(ctx context.Context, state State) (next time.Time, err error) {
	var errs []error
	s.off = slices.DeleteFunc(s.off, func(off *Switch) bool {
		_, err := off.Remove(ctx)
		errs = append(errs, err)
		return err == nil
	})
	for _, on := range s.on {
		errs = append(errs, on.Apply(ctx, state))
	}
	if err := errors.Join(errs...); err != nil && state.Degraded == "" {
		state.Degraded = err.Error()
	}
	errs = append(errs, s.operator.Apply(ctx, state))
	return FirstExpiry(state.Verdicts, s.now()), errors.Join(errs...)
}

// FirstExpiry is the next time at which a verdict expires; zero for none.
func FirstExpiry(verdicts []Verdict, now time.Time) time.Time {
	var first time.Time
	for _, verdict := range verdicts {
		if now.Before(verdict.ValidUntil) && (first.IsZero() || verdict.ValidUntil.Before(first)) {
			first = verdict.ValidUntil
		}
	}
	return first
}

// Uninstall removes all switches, the hardest first, and then the ClusterOperator,
// whatever was chosen, and returns what it has deleted. It does all of this that it can,
// and may be repeated. The controller must have ended, which would apply them again.
func Uninstall(ctx context.Context, client dynamic.Interface) ([]preflight.Object, error) {
	var deleted []preflight.Object
	var errs []error
	for _, each := range all(client) {
		removed, err := each.Remove(ctx)
		deleted = append(deleted, removed...)
		errs = append(errs, err)
	}
	return deleted, errors.Join(errs...)
}

// all are the switches in the order of their removal, without content.
func all(client dynamic.Interface) []*Switch {
	return []*Switch{
		withoutContent(client, nameAdmission, admissionObjects()...),
		withoutContent(client, nameAlert, prometheusRule()),
		withoutContent(client, nameOperator, clusterOperator()),
	}
}
