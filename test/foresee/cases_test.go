package foresee_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// change is the update of one definition that has one object.
type change struct {
	// fault is true for a change that the API server does not accept in full.
	fault bool
	// before and after are parts of the schema of the object, in the present definition and
	// in that of the target.
	before, after schemas
	// spec and status are those of the object.
	spec, status string
	// present and target modify the two definitions.
	present, target func(*apiextensionsv1.CustomResourceDefinition)
	// stored are further versions in status.storedVersions.
	stored []string
}

// schemas are parts of the schema of an object, as YAML: spec and status are complete
// schemas, root has further fields of the root.
type schemas struct{ spec, status, root string }

const (
	anySpec   = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
	anyStatus = "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {note: {type: string}}}"
)

// keyword is a rule that the target adds to a field, with an invalid and a valid value.
type keyword struct{ before, after, bad, good string }

// keywords returns all keywords, by name.
func keywords() map[string]keyword {
	return map[string]keyword{
		"type":             {"{x-kubernetes-preserve-unknown-fields: true}", "{type: integer}", "text", "3"},
		"enum":             {"{type: string}", "{type: string, enum: [a, b]}", "c", "a"},
		"minimum":          {"{type: integer}", "{type: integer, minimum: 3}", "2", "3"},
		"maximum":          {"{type: integer}", "{type: integer, maximum: 3}", "4", "3"},
		"exclusiveMinimum": {"{type: integer}", "{type: integer, minimum: 3, exclusiveMinimum: true}", "3", "4"},
		"multipleOf":       {"{type: integer}", "{type: integer, multipleOf: 3}", "4", "6"},
		"maxLength":        {"{type: string}", "{type: string, maxLength: 3}", "abcd", "abc"},
		"minLength":        {"{type: string}", "{type: string, minLength: 3}", "ab", "abc"},
		"pattern":          {"{type: string}", "{type: string, pattern: '^a+$'}", "b", "aa"},
		"format":           {"{type: string}", "{type: string, format: date-time}", "today", "'2026-01-01T00:00:00Z'"},
		"maxItems":         {"{type: array, items: {type: string}}", "{type: array, maxItems: 1, items: {type: string}}", "[a, b]", "[a]"},
		"minItems":         {"{type: array, items: {type: string}}", "{type: array, minItems: 2, items: {type: string}}", "[a]", "[a, b]"},
		"maxProperties": {
			"{type: object, additionalProperties: {type: string}}",
			"{type: object, maxProperties: 1, additionalProperties: {type: string}}", "{a: b, c: d}", "{a: b}",
		},
		"minProperties": {
			"{type: object, additionalProperties: {type: string}}",
			"{type: object, minProperties: 1, additionalProperties: {type: string}}", "{}", "{a: b}",
		},
		"required": {
			"{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}",
			"{}", "{a: b}",
		},
		"not":        {"{type: string}", "{type: string, not: {enum: [a]}}", "a", "b"},
		"oneOf":      {"{type: integer}", "{type: integer, oneOf: [{minimum: 3}, {maximum: 1}]}", "2", "3"},
		"expression": {"{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: 'self > 3'}]}", "3", "4"},
		"items":      {"{type: array, items: {type: integer}}", "{type: array, items: {type: integer, minimum: 3}}", "[4, 2]", "[4, 3]"},
		"set": {
			"{type: array, items: {type: string}}", "{type: array, x-kubernetes-list-type: set, items: {type: string}}",
			"[a, a]", "[a, b]",
		},
		"map": {
			"{type: array, items: {type: object, properties: {k: {type: string}}}}",
			"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: " +
				"{k: {type: string}}}}",
			"[{k: a}, {k: a}]", "[{k: a}, {k: b}]",
		},
	}
}

// changes returns all changes, by name.
func changes() map[string]change {
	all := map[string]change{}
	for name, k := range keywords() {
		spec := func(schema string) string { return "{type: object, properties: {f: " + schema + "}}" }
		status := func(schema string) string {
			return "{type: object, properties: {note: {type: string}, f: " + schema + "}}"
		}
		for suffix, value := range map[string]string{"invalid": k.bad, "valid": k.good} {
			all["spec "+name+" "+suffix] = change{
				fault: suffix == "invalid", before: schemas{spec: spec(k.before)}, after: schemas{spec: spec(k.after)}, spec: "{f: " + value + "}",
			}
			all["status "+name+" "+suffix] = change{
				fault: suffix == "invalid", before: schemas{status: status(k.before)}, after: schemas{status: status(k.after)},
				status: "{note: x, f: " + value + "}",
			}
		}
	}
	maps.Copy(all, objectChanges())
	maps.Copy(all, rejectedDefinitions())
	maps.Copy(all, cleanChanges())
	return all
}

// objectChanges returns changes by rules for more than one field that the object violates.
func objectChanges() map[string]change {
	return map[string]change{
		"root requires a field":    {fault: true, after: schemas{root: "{data: {type: string}}", spec: anySpec}, target: rootRequires("data")},
		"root requires the status": {fault: true, target: rootRequires("status")},
		"root expression":          {fault: true, target: rootRule("self.metadata.name == 'other'")},
		"root expression on the spec": {
			fault: true, spec: "{f: 1}", before: schemas{spec: "{type: object, properties: {f: {type: integer}}}"},
			after: schemas{spec: "{type: object, properties: {f: {type: integer}}}"}, target: rootRule("self.spec.f > 3"),
		},
		"transition rule": {
			fault: true, spec: "{f: 1}",
			before: schemas{spec: "{type: object, properties: {f: {type: integer}}}"},
			after:  schemas{spec: "{type: object, properties: {f: {type: integer, x-kubernetes-validations: [{rule: 'self > oldSelf'}]}}}"},
		},
		"status requires a field": {
			fault: true, status: "{note: x}",
			after: schemas{status: "{type: object, required: [phase], properties: {note: {type: string}, phase: {type: string}}}"},
		},
		"status expression": {
			fault: true, status: "{note: x, num: 1}",
			after: schemas{status: "{type: object, x-kubernetes-validations: [{rule: 'self.num > 3'}], properties: {note: {type: string}, " +
				"num: {type: integer}}}"},
		},
		"spec expression": {
			fault: true, spec: "{num: 1}",
			after: schemas{spec: "{type: object, x-kubernetes-validations: [{rule: 'self.num > 3'}], properties: {num: {type: integer}}}"},
		},
		"spec of another type": {
			fault: true, spec: "{num: 1}",
			before: schemas{root: "{data: {x-kubernetes-preserve-unknown-fields: true}}"}, after: schemas{spec: "{type: string}"},
		},
		"object name too long": {
			fault: true,
			after: schemas{root: "{metadata: {type: object, properties: {name: {type: string, maxLength: 1}}}}"},
		},
		"embedded object has no kind": {
			fault: true, spec: "{e: {apiVersion: v1, metadata: {name: a}}}",
			after: schemas{spec: "{type: object, properties: {e: {type: object, x-kubernetes-embedded-resource: true, " +
				"x-kubernetes-preserve-unknown-fields: true}}}"},
		},
	}
}

// rootRequires returns a modification that makes a field of the root required.
func rootRequires(field string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		schema.Required = append(schema.Required, field)
	}
}

// rootRule returns a modification that adds an expression to the root.
func rootRule(rule string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{{Rule: rule}}
	}
}

// schemaOf returns a change to an invalid schema of the spec.
func schemaOf(schema string) change { return change{fault: true, after: schemas{spec: schema}} }

// specOf returns a change to an invalid spec of the definition.
func specOf(apply func(*apiextensionsv1.CustomResourceDefinitionSpec)) change {
	return change{fault: true, target: func(crd *apiextensionsv1.CustomResourceDefinition) { apply(&crd.Spec) }}
}

// withVersion returns a modification that adds a version that is not stored.
func withVersion(name string, served bool) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		version := *crd.Spec.Versions[0].DeepCopy()
		version.Name, version.Served, version.Storage = name, served, false
		crd.Spec.Versions = append(crd.Spec.Versions, version)
	}
}

// rejectedDefinitions returns changes to definitions that the API server rejects.
func rejectedDefinitions() map[string]change {
	type spec = apiextensionsv1.CustomResourceDefinitionSpec
	return map[string]change{
		"stored version missing": {fault: true, present: withVersion("v1alpha1", true), stored: []string{"v1alpha1"}},
		"two stored versions missing": {fault: true, present: func(crd *apiextensionsv1.CustomResourceDefinition) {
			withVersion("v1alpha1", true)(crd)
			withVersion("v1beta1", false)(crd)
		}, stored: []string{"v1alpha1", "v1beta1"}},
		"stored version renamed": specOf(func(s *spec) { s.Versions[0].Name = "v2" }),
		"scope":                  specOf(func(s *spec) { s.Scope = apiextensionsv1.ClusterScoped }),
		"kind":                   specOf(func(s *spec) { s.Names.Kind += "New" }),
		"plural":                 specOf(func(s *spec) { s.Names.Plural += "new" }),
		"group":                  specOf(func(s *spec) { s.Group = "new.example.com" }),
		"preserveUnknownFields":  specOf(func(s *spec) { s.PreserveUnknownFields = true }),
		"no storage version":     specOf(func(s *spec) { s.Versions[0].Storage = false }),
		"two storage versions": {fault: true, target: func(crd *apiextensionsv1.CustomResourceDefinition) {
			withVersion("v2", true)(crd)
			crd.Spec.Versions[1].Storage = true
		}},
		"duplicate version": {fault: true, target: withVersion("v1", true)},
		"no schema":         specOf(func(s *spec) { s.Versions[0].Schema = nil }),
		"version name":      {fault: true, target: withVersion("V2", true)},
		"short name":        specOf(func(s *spec) { s.Names.ShortNames = []string{"A B"} }),
		"webhook without configuration": specOf(func(s *spec) {
			s.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
		}),
		"too many selectable fields": specOf(func(s *spec) { s.Versions[0].SelectableFields = make([]apiextensionsv1.SelectableField, 9) }),
		"printer column": specOf(func(s *spec) {
			s.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "a", Type: "new", JSONPath: ".a"}}
		}),
		"not structural":              schemaOf("{type: object, properties: {a: {description: untyped}}}"),
		"unknown type":                schemaOf("{type: new}"),
		"default of another type":     schemaOf("{type: object, properties: {a: {type: string, default: 3}}}"),
		"expression does not compile": schemaOf("{type: object, x-kubernetes-validations: [{rule: 'self.missing > 3'}]}"),
		"pattern does not compile":    schemaOf("{type: object, properties: {a: {type: string, pattern: '('}}}"),
		"map without keys": schemaOf(
			"{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, items: {type: object}}}}"),
		"unique items":              schemaOf("{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}"),
		"additional and properties": schemaOf("{type: object, additionalProperties: {type: string}, properties: {a: {type: string}}}"),
	}
}

// cleanChanges returns changes that the API server accepts in full.
func cleanChanges() map[string]change {
	return map[string]change{
		"new field":                {spec: "{a: 1}", after: schemas{spec: "{type: object, properties: {a: {type: integer}, b: {type: string}}}"}},
		"new default":              {after: schemas{spec: "{type: object, required: [b], properties: {b: {type: string, default: x}}}"}},
		"null of a required field": {spec: "{a: null}", after: schemas{spec: "{type: object, properties: {a: {type: string}}}"}},
		"field removed":            {spec: "{a: 1}", after: schemas{spec: "{type: object}"}},
		"relaxed": {
			spec: "{a: 1}", before: schemas{spec: "{type: object, properties: {a: {type: integer, minimum: 1}}}"},
			after: schemas{spec: "{type: object, properties: {a: {type: integer}}}"},
		},
		"new version":              {target: withVersion("v2", true)},
		"unstored version removed": {present: withVersion("v1alpha1", true)},
		"stored version unserved": {
			present: withVersion("v1alpha1", true), stored: []string{"v1alpha1"},
			target: withVersion("v1alpha1", false),
		},
		"new storage version": {target: func(crd *apiextensionsv1.CustomResourceDefinition) {
			withVersion("v2", true)(crd)
			crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
		}},
		"short name added": {target: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.ShortNames = []string{crd.Spec.Names.Plural + "s"}
		}},
		"transition rule holds": {
			spec:  "{f: 1}",
			after: schemas{spec: "{type: object, properties: {f: {type: integer, x-kubernetes-validations: [{rule: 'self >= oldSelf'}]}}}"},
		},
		"root expression holds": {target: rootRule("self.metadata.name == 'it'")},
		"embedded object": {
			spec: "{e: {apiVersion: v1, kind: Pod, metadata: {name: 'A B'}}}",
			after: schemas{spec: "{type: object, properties: {e: {type: object, x-kubernetes-embedded-resource: true, " +
				"x-kubernetes-preserve-unknown-fields: true}}}"},
		},
		"status limits its size": {
			status: "{note: x, a: b}",
			after:  schemas{status: "{type: object, maxProperties: 2, additionalProperties: {type: string}}"},
		},
	}
}

// definitions returns the present definition and that of the target.
func (c change) definitions(t *testing.T, plural string) (present, target *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	present, target = c.before.definition(t, plural, ""), c.after.definition(t, plural, "marker: {type: string, default: target}")
	if c.present != nil {
		c.present(present)
	}
	if c.target != nil {
		c.target(target)
	}
	return present, target
}

// definition returns a definition with these parts, and the marker as a field of the root.
func (s schemas) definition(t *testing.T, plural, marker string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	root := strings.TrimSuffix(strings.TrimPrefix(s.root, "{"), "}")
	fields := []string{"spec: " + or(s.spec, anySpec), "status: " + or(s.status, anyStatus)}
	for _, further := range []string{root, marker} {
		if further != "" {
			fields = append(fields, further)
		}
	}
	text := fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.foresee.example.com},
spec: {group: foresee.example.com, scope: Namespaced, names: {plural: %[1]s, kind: %[2]s}, versions: [
  {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {%[3]s}}}}]}}`,
		plural, strings.ToUpper(plural[:1])+plural[1:], strings.Join(fields, ", "))
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return crd
}

// or returns text, or other if it is empty.
func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
