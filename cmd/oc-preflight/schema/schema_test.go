package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/cmd/oc-preflight/history"
	"github.com/openshift/update-preflight/cmd/oc-preflight/release"
	"github.com/openshift/update-preflight/cmd/oc-preflight/schema"
	"github.com/openshift/update-preflight/cmd/oc-preflight/versions"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/report/diff"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/test/golden"
)

// document is a document with a schema.
type document struct {
	name  string
	kind  string
	value any
	// written are the golden files of the document.
	written string
	adjust  func(*jsonschema.Schema)
}

func documents() []document {
	return []document{
		{name: "report", kind: report.Kind, value: report.Report{}, written: "collector/document/reportview/testdata/*.json"},
		{name: "targets", kind: report.TargetsKind, value: report.Targets{}, written: "collector/document/reportview/testdata/*.json"},
		{name: "path", kind: report.PathKind, value: report.Path{}, written: "collector/document/reportview/testdata/*.json"},
		{name: "fleet", kind: fleet.Kind, value: fleet.Table{}, written: "runner/fleet/tableview/testdata/*.json"},
		{name: "diff", kind: diff.Kind, value: diff.Changes{}, written: "collector/report/diff/testdata/*.json"},
		{name: "history", kind: history.Kind, value: history.History{}, written: "cmd/oc-preflight/history/testdata/*.json"},
		{name: "plan", kind: updateplan.Kind, value: updateplan.Plan{}, written: "collector/updateplan/testdata/*.json"},
		{name: "drain-plan", kind: draining.Kind, value: draining.Plan{}, written: "collector/document/drainview/testdata/*.json"},
		{name: "after", kind: afterupdate.Kind, value: afterupdate.Report{}, written: "collector/document/afterview/testdata/*.json"},
		{name: "explain", kind: explain.Kind, value: explain.Index{}, written: "cmd/oc-preflight/explain/testdata/*.json"},
		{name: "checks", kind: release.ListingKind, value: release.Listing{}, written: "cmd/oc-preflight/release/testdata/*.json"},
		{
			name: "verify-verdict", kind: attestation.Kind, value: attestation.Verification{},
			written: "collector/verdict/attestation/testdata/*.json",
		},
		{name: "gate", kind: wave.Kind, value: wave.Gate{}, written: "runner/fleet/wave/testdata/*.json"},
		{name: "version", kind: versions.Kind, value: versions.Versions{}, written: "cmd/oc-preflight/versions/testdata/*.json"},
		{
			name: "conformance", kind: conformance.Kind, value: conformance.Report{}, written: "runner/conformance/testdata/*.json",
			adjust: addOutcome,
		},
	}
}

// addOutcome adds what conformance.Report.MarshalJSON computes.
func addOutcome(s *jsonschema.Schema) {
	s.Properties["outcome"] = outcomes()
	s.Properties["apiVersion"], s.Properties["kind"] = &jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "string"}
	s.Required = append(s.Required, "apiVersion", "kind", "outcome")
}

func outcomes() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "string",
		Enum: []any{preflight.Pass, preflight.Warn, preflight.Fail, preflight.Unknown, preflight.Skipped},
	}
}

// generated is the schema of a document.
func generated(t *testing.T, doc document) *jsonschema.Schema {
	t.Helper()
	made, err := jsonschema.ForType(reflect.TypeOf(doc.value), &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[preflight.Outcome](): outcomes(),
		reflect.TypeFor[verdict.Decision](): {
			Type: "string",
			Enum: []any{verdict.Ready, verdict.NothingKnown, verdict.Blocked, verdict.Undecided},
		},
		reflect.TypeFor[finding.Source](): {Type: "string", Enum: []any{
			finding.SourceJob, finding.SourceSignature, finding.SourcePayload, finding.SourceImage, finding.SourceGate, finding.SourceRisk,
			finding.SourceHealth,
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if doc.adjust != nil {
		doc.adjust(made)
	}
	made.Schema, made.Title = "https://json-schema.org/draft/2020-12/schema", doc.kind
	made.Properties["kind"].Const, made.Properties["apiVersion"].Const = jsonschema.Ptr[any](doc.kind), jsonschema.Ptr[any](report.APIVersion)
	describe(t, made, reflect.TypeOf(doc.value))
	permitMore(made)
	return made
}

// permitMore permits fields of later versions in every object of a schema.
func permitMore(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	for _, property := range s.Properties {
		permitMore(property)
	}
	permitMore(s.Items)
	permitMore(s.AdditionalProperties)
}

// TestSchemasAreCurrent compares the schemas with those that the types generate.
func TestSchemasAreCurrent(t *testing.T) {
	t.Parallel()
	var names []string
	for _, doc := range documents() {
		names = append(names, doc.name)
		text, err := json.MarshalIndent(generated(t, doc), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
		if golden.Update() {
			if err := os.WriteFile(doc.name+".json", text, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var got bytes.Buffer
		if err := schema.Write(&got, doc.name); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), got.String()); diff != "" {
			t.Errorf("the schema of %s is stale; rewrite it with -update: -want +got:\n%s", doc.name, diff)
		}
	}
	slices.Sort(names)
	if got, err := schema.Names(); err != nil || !slices.Equal(got, names) {
		t.Errorf("documents %v, %v; want %v", got, err, names)
	}
}

// TestGoldenFilesConform validates every document that is a golden file.
func TestGoldenFilesConform(t *testing.T) {
	t.Parallel()
	for _, doc := range documents() {
		t.Run(doc.name, func(t *testing.T) {
			t.Parallel()
			resolved := resolve(t, doc.name)
			paths, err := filepath.Glob(filepath.Join("../../..", doc.written))
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, path := range paths {
				instance := decoded(t, path)
				if kind, _ := instance["kind"].(string); kind != doc.kind {
					continue
				}
				count++
				if err := resolved.Validate(instance); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			if count == 0 {
				t.Errorf("no golden file in %s", doc.written)
			}
		})
	}
}

// TestSchemasReject validates documents that violate the schema of the report.
func TestSchemasReject(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		violate func(map[string]any)
		valid   bool
	}{
		"Unchanged": {reason: "the golden file conforms", violate: func(map[string]any) {}, valid: true},
		"NewField":  {reason: "a later version may add a field", violate: func(m map[string]any) { m["later"] = true }, valid: true},
		"Kind":      {reason: "another document is no report", violate: func(m map[string]any) { m["kind"] = report.TargetsKind }},
		"Version": {
			reason:  "another version is no report of this one",
			violate: func(m map[string]any) { m["apiVersion"] = "preflight.openshift.io/v2" },
		},
		"Missing":  {reason: "a report has findings", violate: func(m map[string]any) { delete(m, "findings") }},
		"Decision": {reason: "there are four decisions", violate: func(m map[string]any) { m["verdict"] = map[string]any{"decision": "Maybe"} }},
		"Type":     {reason: "a list is not a text", violate: func(m map[string]any) { m["findings"] = "none" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instance := decoded(t, "../../../collector/document/reportview/testdata/blocked.json")
			tc.violate(instance)
			if err := resolve(t, "report").Validate(instance); (err == nil) != tc.valid {
				t.Errorf("%s: Validate returned %v", tc.reason, err)
			}
		})
	}
}

func TestUnknownDocument(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := schema.Write(&out, "../schema.go")
	if unknown, ok := errors.AsType[*schema.UnknownError](err); !ok || !strings.Contains(unknown.Error(), "report") || out.Len() > 0 {
		t.Errorf("an unknown document returned %v and wrote %q", err, out.String())
	}
}

func resolve(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	var text bytes.Buffer
	if err := schema.Write(&text, name); err != nil {
		t.Fatal(err)
	}
	var made jsonschema.Schema
	if err := json.Unmarshal(text.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	resolved, err := made.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func decoded(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	instance := map[string]any{}
	if err := json.Unmarshal(text, &instance); err != nil {
		t.Fatal(err)
	}
	return instance
}
