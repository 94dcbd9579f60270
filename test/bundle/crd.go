package bundle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// owned describes the APIs, one for each served version, by the descriptions of their schemas. A field without a
// description is an error.
func owned(crds []*unstructured.Unstructured) ([]any, error) {
	var all []any
	var failures []error
	for _, object := range crds {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", named(object), err)
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
				continue
			}
			schema := version.Schema.OpenAPIV3Schema
			spec, errSpec := descriptors(schema, "spec")
			status, errStatus := descriptors(schema, "status")
			if err := errors.Join(errSpec, errStatus, described(schema, "the object")); err != nil {
				failures = append(failures, fmt.Errorf("%s %s: %w", named(object), version.Name, err))
			}
			all = append(all, map[string]any{
				"name": crd.Name, "kind": crd.Spec.Names.Kind, "version": version.Name,
				"displayName": title(crd.Spec.Names.Kind), "description": flat(schema.Description),
				"specDescriptors": spec, "statusDescriptors": status,
			})
		}
	}
	return all, errors.Join(failures...)
}

// descriptors describe the fields of spec or status.
func descriptors(schema *apiextensionsv1.JSONSchemaProps, part string) ([]any, error) {
	var all []any
	var failures []error
	properties := schema.Properties[part].Properties
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		property := properties[field]
		failures = append(failures, described(&property, part+"."+field))
		all = append(all, map[string]any{"path": field, "displayName": title(field), "description": flat(property.Description)})
	}
	return all, errors.Join(failures...)
}

// described returns an error for a schema without a description.
func described(schema *apiextensionsv1.JSONSchemaProps, of string) error {
	if strings.TrimSpace(schema.Description) == "" {
		return fmt.Errorf("%s has no description: comment the Go type, and run make generate", of)
	}
	return nil
}

// flat is a description on one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// title is a name in camel case as words: validUntil is Valid Until.
func title(name string) string {
	var text strings.Builder
	previous := ' '
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(previous) {
			text.WriteByte(' ')
		}
		if i == 0 {
			r = unicode.ToUpper(r)
		}
		text.WriteRune(r)
		previous = r
	}
	return text.String()
}
