package guard

import (
	_ "embed" // the manifests
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/ownsignal"
)

//go:embed admission.yaml
var admissionManifests string

// Mode is what the policy does with the selection of a target that is not Ready.
type Mode string

// The modes.
const (
	// Warn lets the request pass with a warning, which oc prints.
	Warn Mode = "Warn"
	// Deny refuses the request.
	Deny Mode = "Deny"
)

const verdictsConfigMap = "verdicts"

// admissionObjects are in the order in which they are applied: the verdicts are there
// before the policy, and the policy takes effect by its binding.
func admissionObjects() []object {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	return []object{
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, kind: "ConfigMap", namespace: ownsignal.Namespace, name: verdictsConfigMap},
		{GroupVersionResource: group.WithResource("validatingadmissionpolicies"), kind: "ValidatingAdmissionPolicy", name: ownsignal.ClusterOperator},
		{GroupVersionResource: group.WithResource("validatingadmissionpolicybindings"), kind: "ValidatingAdmissionPolicyBinding", name: ownsignal.ClusterOperator},
	}
}

// Admission is the switch of the admission policy. An unknown mode is an error.
func Admission(client dynamic.Interface, mode Mode, now func() time.Time) (*Switch, error) {
	if mode != Warn && mode != Deny {
		return nil, fmt.Errorf("the mode %q of the admission policy is neither %s nor %s", mode, Warn, Deny)
	}
	return &Switch{
		name: nameAdmission, client: client, now: now, objects: admissionObjects(),
		build: func(state State, _ []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error) {
			contents, err := parse(strings.Split(admissionManifests, "\n---\n")...)
			if err != nil {
				return nil, err
			}
			policy, binding := contents[0], contents[1]
			if mode == Warn { // an error of the policy must not deny anything either
				err = unstructured.SetNestedField(policy.Object, "Ignore", "spec", "failurePolicy")
			}
			if err != nil {
				return nil, err
			}
			err = unstructured.SetNestedStringSlice(binding.Object, []string{string(mode)}, "spec", "validationActions")
			return []*unstructured.Unstructured{parameters(state.Verdicts, now), policy, binding}, err
		},
	}, nil
}

// parameters is the ConfigMap with the decision on each digest whose verdict is valid.
func parameters(verdicts []Verdict, now time.Time) *unstructured.Unstructured {
	data := map[string]any{}
	for _, verdict := range verdicts {
		if verdict.Digest != "" && verdict.Decision != "" && now.Before(verdict.ValidUntil) {
			data[strings.Replace(verdict.Digest, ":", "-", 1)] = verdict.Decision
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": verdictsConfigMap, "namespace": ownsignal.Namespace}, "data": data,
	}}
}
