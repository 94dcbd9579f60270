package guard

import (
	_ "embed" // the manifests
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

//go:embed admission.yaml
var admissionManifests string

// admissionObjects are in the order in which they are applied: the policy takes effect by
// its binding.
func admissionObjects() []owned.Object {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	return []owned.Object{
		{GroupVersionResource: group.WithResource("validatingadmissionpolicies"), Kind: "ValidatingAdmissionPolicy", Name: ownsignal.ClusterOperator},
		{GroupVersionResource: group.WithResource("validatingadmissionpolicybindings"), Kind: "ValidatingAdmissionPolicyBinding", Name: ownsignal.ClusterOperator},
	}
}

// Admission is the switch of the admission policy. An unknown mode is an error.
//
// The verdicts are part of the policy. With a ConfigMap as its parameters, its author would
// need to read all ConfigMaps, and an API server that has stopped watching them, since the
// last policy with such parameters was deleted, may not start again (k8s.io/apiserver v0.36,
// policy_source.go); the parameters of a kind of its own would deny forced updates too once
// the kind is deleted.
func Admission(client dynamic.Interface, mode Mode, now func() time.Time) (*Switch, error) {
	if mode != Warn && mode != Deny {
		return nil, fmt.Errorf("the mode %q of the admission policy is neither %s nor %s", mode, Warn, Deny)
	}
	return &Switch{
		objects: objectsOf(nameAdmission, client, admissionObjects()...), now: now,
		build: func(state State, _ []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error) {
			contents, err := owned.Parse(strings.Split(admissionManifests, "\n---\n")...)
			if err != nil {
				return nil, err
			}
			policy, binding := contents[0], contents[1]
			if mode == Warn { // an error of the policy must not deny anything either
				err = unstructured.SetNestedField(policy.Object, "Ignore", "spec", "failurePolicy")
			}
			if err := errors.Join(err, setVerdicts(policy, state.Verdicts, now)); err != nil {
				return nil, err
			}
			err = unstructured.SetNestedStringSlice(binding.Object, []string{string(mode)}, "spec", "validationActions")
			return []*unstructured.Unstructured{policy, binding}, err
		},
	}, nil
}

// variableVerdicts is the variable of the policy with the decision on each digest.
const variableVerdicts = "verdicts"

// setVerdicts sets the answers on the digests, as a map of the Common Expression Language (CEL). A map of strings in
// JSON is one.
func setVerdicts(policy *unstructured.Unstructured, verdicts []Verdict, now time.Time) error {
	decisions := map[string]string{}
	for _, verdict := range verdicts {
		if verdict.Digest != "" && verdict.Decision != "" {
			decisions[verdict.Digest] = verdict.Answer(now)
		}
	}
	expression, err := json.Marshal(decisions)
	if err != nil {
		return err
	}
	variables, _, err := unstructured.NestedSlice(policy.Object, "spec", "variables")
	for i, variable := range variables {
		if named, _ := variable.(map[string]any); named["name"] == variableVerdicts {
			variables[i] = map[string]any{"name": variableVerdicts, "expression": string(expression)}
		}
	}
	return errors.Join(err, unstructured.SetNestedSlice(policy.Object, variables, "spec", "variables"))
}

//go:embed alert.yaml
var alertManifest string

func prometheusRule() owned.Object {
	return owned.Object{
		GroupVersionResource: schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"},
		Kind:                 "PrometheusRule", Namespace: ownsignal.Namespace, Name: ownsignal.ClusterOperator,
	}
}

// Service is the name of the Service of the metrics in the namespace of the objects. The
// job of its ServiceMonitor is that name, by which the alerts select the metrics, so the
// ServiceMonitor must not have a jobLabel.
const Service = "update-preflight"

// Alert is the switch of the alerts. They depend on the metrics of the controller, so the
// verdicts do not change them. The cluster's Prometheus uses them only if the namespace
// has the label openshift.io/cluster-monitoring=true, and the metrics have the job of
// [Service].
func Alert(client dynamic.Interface) *Switch {
	return &Switch{
		objects: objectsOf(nameAlert, client, prometheusRule()), now: time.Now,
		build: func(State, []*unstructured.Unstructured, time.Time) ([]*unstructured.Unstructured, error) {
			return owned.Parse(alertManifest)
		},
	}
}
