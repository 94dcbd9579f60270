package archive

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// conversion is from one version of a resource to another. A nil change means that all fields of
// the old version have their meaning in the new one.
type conversion struct {
	resource

	from, to string
}

// conversions convert the versions that old clusters served.
func conversions() map[conversion]func(map[string]any) error {
	webhooks := func(name string) conversion {
		return conversion{resource{Group: "admissionregistration.k8s.io", Name: name}, "v1beta1", "v1"}
	}
	return map[conversion]func(map[string]any) error{
		{resource{Group: "policy", Name: "poddisruptionbudgets"}, "v1beta1", "v1"}:                                    convertBudget,
		{resource{Group: "batch", Name: "cronjobs"}, "v1beta1", "v1"}:                                                 nil,
		{resource{Group: "discovery.k8s.io", Name: "endpointslices"}, "v1beta1", "v1"}:                                convertSlice,
		{resource{Group: "apiregistration.k8s.io", Name: "apiservices"}, "v1beta1", "v1"}:                             nil,
		{resource{Group: "certificates.k8s.io", Name: "certificatesigningrequests"}, "v1beta1", "v1"}:                 nil,
		{resource{Group: "apiextensions.k8s.io", Name: "customresourcedefinitions"}, "v1beta1", "v1"}:                 convertDefinition,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1alpha1", "v1"}:                      nil,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1beta1", "v1"}:                       nil,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1beta2", "v1"}:                       nil,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1beta3", "v1"}:                       nil,
		{resource{Group: "admissionregistration.k8s.io", Name: "validatingadmissionpolicies"}, "v1beta1", "v1"}:       nil,
		{resource{Group: "admissionregistration.k8s.io", Name: "validatingadmissionpolicybindings"}, "v1beta1", "v1"}: nil,
		webhooks("mutatingwebhookconfigurations"):                                                                     nil,
		webhooks("validatingwebhookconfigurations"):                                                                   nil,
	}
}

// convert changes the version of an object. An unknown conversion is an error.
func convert(object []byte, of resource, from, to string) ([]byte, error) {
	change, ok := conversions()[conversion{of, from, to}]
	if !ok {
		return nil, fmt.Errorf("the archive has them in version %s only", from)
	}
	var content map[string]any
	if err := json.Unmarshal(object, &content); err != nil {
		return nil, err
	}
	if change != nil {
		if err := change(content); err != nil {
			return nil, fmt.Errorf("version %s cannot be converted: %w", from, err)
		}
	}
	content["apiVersion"] = schema.GroupVersion{Group: of.Group, Version: to}.String()
	return json.Marshal(content)
}

// convertBudget removes a selector that is empty: in policy/v1beta1 it selects no pod, as none
// does in policy/v1, where an empty one selects all.
func convertBudget(budget map[string]any) error {
	selector, found, err := unstructured.NestedMap(budget, "spec", "selector")
	if err != nil || !found {
		return err
	}
	for _, key := range []string{"matchLabels", "matchExpressions"} {
		switch value := selector[key].(type) {
		case map[string]any:
			found = found && len(value) == 0
		case []any:
			found = found && len(value) == 0
		}
	}
	if found {
		unstructured.RemoveNestedField(budget, "spec", "selector")
	}
	return nil
}

// convertSlice sets the node of endpoints, which was a label of their topology.
func convertSlice(slice map[string]any) error {
	endpoints, _, err := unstructured.NestedSlice(slice, "endpoints")
	if err != nil {
		return err
	}
	for _, each := range endpoints {
		endpoint, ok := each.(map[string]any)
		if !ok {
			continue
		}
		node, found, err := unstructured.NestedString(endpoint, "topology", "kubernetes.io/hostname")
		if err != nil {
			return err
		}
		if _, set := endpoint["nodeName"]; found && !set {
			endpoint["nodeName"] = node
		}
		delete(endpoint, "topology")
	}
	slice["endpoints"] = endpoints
	return nil
}

// convertDefinition moves the version and the webhook of a CustomResourceDefinition; schemas stay out.
func convertDefinition(definition map[string]any) error {
	if _, found, err := unstructured.NestedSlice(definition, "spec", "versions"); err != nil || !found {
		name, _, nameErr := unstructured.NestedString(definition, "spec", "version")
		if err != nil || nameErr != nil {
			return fmt.Errorf("its versions cannot be read")
		}
		versions := []any{map[string]any{"name": name, "served": true, "storage": true}}
		if err := unstructured.SetNestedSlice(definition, versions, "spec", "versions"); err != nil {
			return err
		}
	}
	client, found, err := unstructured.NestedMap(definition, "spec", "conversion", "webhookClientConfig")
	if err != nil || !found {
		return err
	}
	reviews, _, err := unstructured.NestedSlice(definition, "spec", "conversion", "conversionReviewVersions")
	if err != nil {
		return err
	}
	webhook := map[string]any{"clientConfig": client, "conversionReviewVersions": reviews}
	return unstructured.SetNestedMap(definition, webhook, "spec", "conversion", "webhook")
}
