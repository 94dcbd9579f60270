package guard

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Switch is one way to have CVO honor verdicts. It has no state but its objects.
type Switch struct {
	objects owned.Objects
	now     func() time.Time
	build   builder
}

// builder makes the content of the objects for a state that is valid. The present content
// is nil where the object does not exist.
type builder func(state State, present []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error)

// objectsOf are the objects of a switch in the order in which they are applied.
func objectsOf(name string, client dynamic.Interface, objects ...owned.Object) owned.Objects {
	return owned.Objects{Switch: name, Client: client, All: objects}
}

// Name is "alert", "clusterOperator" or "admission".
func (s *Switch) Name() string { return s.objects.Switch }

// Apply makes the objects, or changes them to this state, by server-side apply. The same
// state changes nothing. Verdicts that have expired are left out; call Apply again when
// one expires. Verdicts that are not valid are an error, and so is an object with the
// name of one of the switch that does not have its label; it is not changed. The
// namespace of the objects must exist.
func (s *Switch) Apply(ctx context.Context, state State) error {
	if err := Check(state.Verdicts); err != nil {
		return err
	}
	present, err := s.objects.Read(ctx)
	if err != nil {
		return err
	}
	contents, err := s.build(state, present, s.now())
	if err != nil {
		return err
	}
	return s.objects.Apply(ctx, contents)
}

// Remove deletes the objects, those that guard first, and returns those that it has
// deleted. It is complete when the error is nil, and may be repeated. An object without
// the label of the switch is an error; it is not deleted, and neither is any other.
func (s *Switch) Remove(ctx context.Context) ([]preflight.Object, error) {
	return s.objects.Remove(ctx)
}

// List returns the objects of the switch that exist, in the order in which they are
// applied.
func (s *Switch) List(ctx context.Context) ([]preflight.Object, error) { return s.objects.List(ctx) }
