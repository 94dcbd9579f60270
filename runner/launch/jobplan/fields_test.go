package jobplan_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/test/golden"
)

// The rules of testdata/fields.txt.
const (
	fieldAllowed  = "allowed"  // the author's value is kept
	fieldReplaced = "replaced" // the runner replaces the value
	fieldJudged   = "judged"   // some values are rejected; a row of violatingJobs has one
	fieldRefused  = "refused"  // all values are rejected, and the fields below
)

// TestEveryFieldHasRule compares the policy with the types of the API: a new field
// of a later Kubernetes version fails it until a rule is added.
func TestEveryFieldHasRule(t *testing.T) {
	rules := readRules(t)
	known := map[string]bool{}
	for _, field := range releasetest.Fields(func(key string) bool { return rules[key] == fieldRefused }) {
		known[field.Key] = true
		rule := rules[field.Key]
		if golden.Update() && rule == "" {
			rules[field.Key] = observedRule(field)
			continue
		}
		t.Run(field.Path, func(t *testing.T) { testRule(t, field, rule) })
	}
	for key := range rules {
		if !known[key] {
			t.Errorf("testdata/fields.txt has a rule for %s, which is no field, or below a refused one", key)
		}
	}
	if golden.Update() {
		writeRules(t, rules)
	}
}

func testRule(t *testing.T, field releasetest.Field, rule string) {
	t.Helper()
	messages, kept := build(field)
	refused := len(messages) > 0
	switch rule {
	case fieldAllowed:
		if refused || !kept {
			t.Errorf("want the value kept; kept is %t, violations %v", kept, messages)
		}
	case fieldReplaced:
		if refused || kept {
			t.Errorf("want the value replaced; kept is %t, violations %v", kept, messages)
		}
	case fieldRefused:
		if !refused || !strings.Contains(messages[0], field.Path+": ") {
			t.Errorf("want a violation of the field, got %q", messages)
		}
	case fieldJudged:
		path := strings.Replace(field.Path, ".initContainers[", ".containers[", 1) // the rules are the same
		for _, row := range violatingJobs() {
			if strings.HasPrefix(row.wantPath, path) {
				return
			}
		}
		t.Error("no row of violatingJobs has a rejected value")
	default:
		t.Errorf("%s has no rule: add one to testdata/fields.txt", field.Key)
	}
}

// build returns the violations of a Job with a value in the field, and whether the
// plan keeps that value.
func build(field releasetest.Field) (violations []string, kept bool) {
	job := releasetest.Job(nil)
	place := field.In(job)
	chosen := releasetest.NonZero(place.Type())
	place.Set(chosen)
	complete(job)
	plan := releasetest.Draft(releasetest.Run(), releasetest.Release(job))
	for _, f := range plan.Refused {
		violations = append(violations, f.Message)
	}
	for _, check := range plan.Checks {
		kept = reflect.DeepEqual(field.In(check.Job).Interface(), chosen.Interface())
	}
	return violations, kept
}

func observedRule(field releasetest.Field) string {
	violations, kept := build(field)
	switch {
	case len(violations) > 0:
		return fieldRefused
	case kept:
		return fieldAllowed
	}
	return fieldReplaced
}

// complete adds the other fields that a valid manifest with the field requires.
func complete(job *batchv1.Job) {
	spec := &job.Spec.Template.Spec
	for i := range spec.InitContainers {
		spec.InitContainers[i].Image = cmp.Or(spec.InitContainers[i].Image, releasetest.Image)
	}
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if volume.VolumeSource == (corev1.VolumeSource{}) {
			volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		if volume.Image != nil {
			volume.Image.Reference = cmp.Or(volume.Image.Reference, releasetest.Image)
		}
	}
}

const ruleFile = "testdata/fields.txt"

func readRules(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(ruleFile)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			rules[words[1]] = words[0]
		}
	}
	return rules
}

func writeRules(t *testing.T, rules map[string]string) {
	t.Helper()
	text := "# What a preflight may do with each field of a Job. See fields_test.go.\n"
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		text += fmt.Sprintf("%-8s %s\n", rules[key], key)
	}
	if err := os.WriteFile(ruleFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
