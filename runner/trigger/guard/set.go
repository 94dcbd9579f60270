package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/access"
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

// NewSet returns a set without sending a request. The version is the version of the controller. It returns an error for
// an unknown mode of the policy.
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

// Apply removes the switches that are off, until each was removed once, and applies the switches that are on and then
// the ClusterOperator. It continues after errors, and returns all of them; the error is a cause of Degraded of the
// ClusterOperator. Call it again at next, when the first verdict expires, which is zero if none does.
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

// Uninstall removes all switches, the strictest first, and then the ClusterOperator, regardless of the choice, and
// returns the deleted objects. It continues after errors, and may be repeated. The controller must have stopped,
// because it would apply them again.
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

// Switch is one way to make CVO honor verdicts. Its objects are its only state.
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

// Apply creates the objects, or changes them to this state, by server-side apply. The same state changes nothing.
// Expired verdicts are omitted; call Apply again when one expires. It returns an error for invalid verdicts, and for an
// existing object with the same name but without the label of the switch, which it does not change. The namespace of
// the objects must exist.
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

// Effect is a switch that is on in a cluster.
type Effect struct {
	// Name is "alert", "clusterOperator", "admission" or "hostedAdmission".
	Name string
	// Mode is the mode of the policy; empty for the others.
	Mode Mode
	// Limit describes the effect of the switch and its limits.
	Limit string
	// WithoutController describes the effect while no controller runs.
	WithoutController string
}

// Active returns the switches that are on in the cluster, according to their objects, sorted by name. With an error, it
// returns the switches that could be read.
func Active(ctx context.Context, client dynamic.Interface) ([]Effect, error) {
	var active []Effect
	var errs []error
	for _, each := range all(client) {
		each.objects.All = []owned.Object{each.effective()}
		present, err := each.objects.Read(ctx)
		errs = append(errs, err)
		if err != nil || present[0] == nil {
			continue
		}
		if effect, on := effectOf(each.Name(), present[0]); on {
			active = append(active, effect)
		}
	}
	slices.SortFunc(active, func(a, b Effect) int { return strings.Compare(a.Name, b.Name) })
	return active, errors.Join(errs...)
}

// effective is the object by which a switch takes effect: the last one that is applied.
func (s *Switch) effective() owned.Object { return s.objects.All[len(s.objects.All)-1] }

// effectOf reads the effect of a switch from its effective object; false while it has none.
func effectOf(name string, effective *unstructured.Unstructured) (Effect, bool) {
	switch name {
	case nameAlert:
		return Effect{
			Name: name, Limit: "advice only: oc warns of every update, and CVO treats the alert as a risk where " +
				"ClusterUpdateAcceptRisks is enabled",
			WithoutController: "the alert UpdatePreflightUnknown fires",
		}, true
	case nameOperator:
		read, err := readOperator(effective)
		return Effect{
			Name: name, Limit: "blocks minor and major updates to all targets, within 4 minutes; does not block " +
				"patch updates; force bypasses it",
			WithoutController: "Upgradeable keeps its last value",
		}, err == nil && slices.ContainsFunc(read.Status.Conditions, isUpgradeable)
	}
	mode := ModeOf(effective)
	limit := "denies the selection of each target that is not Ready, including patch updates; force bypasses it"
	if mode != Deny {
		limit = "warns of the selection of each target that is not Ready, including patch updates; denies nothing"
	}
	return Effect{Name: name, Mode: mode, Limit: limit, WithoutController: "the last verdicts remain, even after " +
		"they expire"}, true
}

func isUpgradeable(condition configv1.ClusterOperatorStatusCondition) bool {
	return condition.Type == configv1.OperatorUpgradeable
}

// ModeOf is the mode of the binding of a policy that warns or denies.
func ModeOf(binding *unstructured.Unstructured) Mode {
	actions, _, _ := unstructured.NestedStringSlice(binding.Object, "spec", "validationActions") // Warn where malformed
	if slices.Contains(actions, string(Deny)) {
		return Deny
	}
	return Warn
}

// Needs are the permissions of [Set.Apply] with the choice: to apply the switches that are
// on and the ClusterOperator, and to remove the other switches.
func (c Choice) Needs() access.Needs {
	needs, applied, removed := access.Needs{}, []owned.Object{clusterOperator()}, []owned.Object{}
	if c.Alert {
		applied = append(applied, prometheusRule())
	} else {
		removed = append(removed, prometheusRule())
	}
	if c.Admission != "" {
		applied = append(applied, admissionObjects()...)
	} else {
		removed = append(removed, admissionObjects()...)
	}
	for _, each := range applied {
		needs.Required = append(needs.Required, each.Requests("get", "create", "patch")...)
	}
	for _, each := range removed {
		needs.Required = append(needs.Required, each.Requests("get", "delete")...)
	}
	return needs
}

// UninstallNeeds are the permissions of [Uninstall].
func UninstallNeeds() access.Needs {
	var needs access.Needs
	for _, each := range all(nil) {
		for _, object := range each.objects.All {
			needs.Required = append(needs.Required, object.Requests("get", "delete")...)
		}
	}
	return needs
}

// ReadNeeds are the permissions of [Active], all of them optional. They are for all namespaces, so that they can be
// granted where the controller is not installed.
func ReadNeeds() access.Needs {
	var needs access.Needs
	for _, each := range all(nil) {
		read := each.effective()
		read.Namespace = ""
		needs.Optional = append(needs.Optional, read.Requests("get")...)
	}
	return needs
}

// The names of the switches.
const (
	nameAlert     = "alert"
	nameOperator  = "clusterOperator"
	nameAdmission = "admission"
)

// Mode is how the policy handles the selection of a target that is not Ready.
type Mode string

// The modes.
const (
	// Warn lets the request pass with a warning, which oc prints.
	Warn Mode = "Warn"
	// Deny rejects the request.
	Deny Mode = "Deny"
)

// Choice is which switches are on. The zero value is none.
type Choice struct {
	Alert, ClusterOperator bool
	// Admission is the mode of the policy; empty while the switch is off.
	Admission Mode
}

// Choices are the texts that [Choose] accepts.
func Choices() []string {
	return []string{nameAlert, nameOperator, nameAdmission + "=" + string(Warn), nameAdmission + "=" + string(Deny)}
}

// Choose parses texts, each of which must be one of [Choices]. It returns an error for another text, or for both modes
// of the policy.
func Choose(texts ...string) (Choice, error) {
	var chosen Choice
	for _, text := range texts {
		name, mode, _ := strings.Cut(text, "=")
		switch {
		case !slices.Contains(Choices(), text):
			return Choice{}, fmt.Errorf("%q is not one of %q", text, Choices())
		case name == nameAlert:
			chosen.Alert = true
		case name == nameOperator:
			chosen.ClusterOperator = true
		case chosen.Admission != "" && chosen.Admission != Mode(mode):
			return Choice{}, fmt.Errorf("the admission policy has one mode, but both %s and %s were chosen", chosen.Admission, mode)
		default:
			chosen.Admission = Mode(mode)
		}
	}
	return chosen, nil
}
