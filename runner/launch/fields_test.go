package launch_test

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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/test/golden"
)

// The rules of testdata/fields.txt.
const (
	fieldAllowed  = "allowed"  // the author's value is kept
	fieldReplaced = "replaced" // the runner replaces the value
	fieldJudged   = "judged"   // some values are rejected; a row of violatingJobs has one
	fieldRefused  = "refused"  // all values are rejected, and the fields below
)

// leaf is a field of a Job's spec with one rule.
type leaf struct {
	// key is the name of the API type and of its field.
	key string
	// path is the path in a manifest, with index 0 for lists.
	path string
	// in returns the field of a Job, and creates the fields above it.
	in func(*batchv1.Job) reflect.Value
}

// TestEveryFieldHasRule compares the policy with the types of the API: a new field
// of a later Kubernetes version fails it until a rule is added.
func TestEveryFieldHasRule(t *testing.T) {
	rules := readRules(t)
	known := map[string]bool{}
	for _, field := range leaves(rules) {
		known[field.key] = true
		rule := rules[field.key]
		if golden.Update() && rule == "" {
			rules[field.key] = observedRule(field)
			continue
		}
		t.Run(field.path, func(t *testing.T) { testRule(t, field, rule) })
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

func testRule(t *testing.T, field leaf, rule string) {
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
		if !refused || !strings.Contains(messages[0], field.path+": ") {
			t.Errorf("want a violation of the field, got %q", messages)
		}
	case fieldJudged:
		path := strings.Replace(field.path, ".initContainers[", ".containers[", 1) // the rules are the same
		for _, row := range violatingJobs() {
			if strings.HasPrefix(row.wantPath, path) {
				return
			}
		}
		t.Error("no row of violatingJobs has a rejected value")
	default:
		t.Errorf("%s has no rule: add one to testdata/fields.txt", field.key)
	}
}

// build returns the violations of a Job with a value in the field, and whether the
// plan keeps that value.
func build(field leaf) (violations []string, kept bool) {
	job := aJob(nil)
	place := field.in(job)
	chosen := nonZero(place.Type())
	place.Set(chosen)
	complete(job)
	plan := draft(aRun(), aRelease(job))
	for _, f := range plan.Refused {
		violations = append(violations, f.Message)
	}
	for _, check := range plan.Checks {
		kept = reflect.DeepEqual(field.in(check.Job).Interface(), chosen.Interface())
	}
	return violations, kept
}

func observedRule(field leaf) string {
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
		spec.InitContainers[i].Image = cmp.Or(spec.InitContainers[i].Image, image)
	}
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if volume.VolumeSource == (corev1.VolumeSource{}) {
			volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		if volume.Image != nil {
			volume.Image.Reference = cmp.Or(volume.Image.Reference, image)
		}
	}
}

// leaves are all fields of a Job's spec, without those below a refused one.
func leaves(rules map[string]string) []leaf {
	var all []leaf
	var walk func(reflect.Type, string, func(*batchv1.Job) reflect.Value)
	walk = func(kind reflect.Type, path string, in func(*batchv1.Job) reflect.Value) {
		for i := range kind.NumField() {
			member := kind.Field(i)
			name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
			field := leaf{key: kind.Name() + "." + name, path: path + "." + name, in: func(job *batchv1.Job) reflect.Value {
				return in(job).Field(i)
			}}
			if name == "" { // embedded structs have no name in a manifest
				field.key, field.path = "", path
			}
			below, found := structure(member.Type)
			if !found || rules[field.key] == fieldRefused {
				all = append(all, field)
				continue
			}
			if member.Type.Kind() == reflect.Slice {
				field.path += "[0]"
			}
			walk(below, field.path, func(job *batchv1.Job) reflect.Value { return enter(field.in(job)) })
		}
	}
	walk(reflect.TypeFor[batchv1.JobSpec](), "spec", func(job *batchv1.Job) reflect.Value { return reflect.ValueOf(&job.Spec).Elem() })
	return all
}

// structure is the API struct of a type; false if it has none.
func structure(kind reflect.Type) (reflect.Type, bool) {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	return kind, kind.Kind() == reflect.Struct && !strings.HasPrefix(kind.PkgPath(), "k8s.io/apimachinery/")
}

// enter returns the struct of a value, and creates a missing one.
func enter(value reflect.Value) reflect.Value {
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		return enter(value.Elem())
	}
	if value.Kind() == reflect.Slice {
		if value.Len() == 0 {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		}
		return enter(value.Index(0))
	}
	return value
}

// nonZero is a value of the type other than the zero value.
func nonZero(kind reflect.Type) reflect.Value {
	value := reflect.New(kind).Elem()
	switch kind {
	case reflect.TypeFor[resource.Quantity]():
		return reflect.ValueOf(resource.MustParse("1"))
	case reflect.TypeFor[intstr.IntOrString]():
		return reflect.ValueOf(intstr.FromInt32(1))
	case reflect.TypeFor[metav1.LabelSelector]():
		return reflect.ValueOf(metav1.LabelSelector{MatchLabels: map[string]string{"x": "x"}})
	case reflect.TypeFor[metav1.ObjectMeta]():
		return reflect.ValueOf(metav1.ObjectMeta{Name: "x"})
	case reflect.TypeFor[corev1.ResourceList]():
		return reflect.ValueOf(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")})
	}
	switch is := kind.Kind(); {
	case is == reflect.String:
		value.SetString("x")
	case is == reflect.Bool:
		value.SetBool(true)
	case value.CanInt():
		value.SetInt(1)
	case is == reflect.Pointer:
		value.Set(reflect.New(kind.Elem()))
		value.Elem().Set(nonZero(kind.Elem()))
	case is == reflect.Slice:
		value.Set(reflect.Append(value, nonZero(kind.Elem())))
	case is == reflect.Map:
		value.Set(reflect.MakeMap(kind))
		value.SetMapIndex(nonZero(kind.Key()), nonZero(kind.Elem()))
	default: // a struct with one rule
	}
	return value
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
