package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

// Effect is a switch that is on in a cluster.
type Effect struct {
	// Name is "alert", "clusterOperator", "admission" or "hostedAdmission".
	Name string
	// Mode is the mode of the policy; empty for the others.
	Mode Mode
	// Limit is what the switch does, and what it does not.
	Limit string
	// WithoutController is what happens while no controller runs.
	WithoutController string
}

// Active are the switches that are on in the cluster, by the objects by which they take
// effect, in the order of their names. Those that can be read are returned with the error
// for the others.
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
			Name: name, Limit: "advice only: oc warns of every update, and CVO counts the alert as a risk where ClusterUpdateAcceptRisks is enabled",
			WithoutController: "the alert UpdatePreflightUnknown fires",
		}, true
	case nameOperator:
		read, err := readOperator(effective)
		return Effect{
			Name: name, Limit: "blocks minor and major updates to all targets, within 4 minutes; not patch updates; force bypasses it",
			WithoutController: "Upgradeable keeps its last value",
		}, err == nil && slices.ContainsFunc(read.Status.Conditions, isUpgradeable)
	}
	mode := ModeOf(effective)
	limit := "denies the selection of each target that is not Ready, patch updates included; force bypasses it"
	if mode != Deny {
		limit = "warns of the selection of each target that is not Ready, patch updates included; denies nothing"
	}
	return Effect{Name: name, Mode: mode, Limit: limit, WithoutController: "the last verdicts stay, also those that have expired"}, true
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

// ReadNeeds are the permissions of [Active], each of which is optional. They are for all
// namespaces, so that they can be granted where the controller is not installed.
func ReadNeeds() access.Needs {
	var needs access.Needs
	for _, each := range all(nil) {
		read := each.effective()
		read.Namespace = ""
		needs.Optional = append(needs.Optional, read.Requests("get")...)
	}
	return needs
}
