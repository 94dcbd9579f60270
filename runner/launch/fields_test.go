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
)

// The verdicts of testdata/fields.txt.
const (
	fieldAllowed  = "allowed"  // whatever the author says is kept
	fieldReplaced = "replaced" // the runner has the last word
	fieldJudged   = "judged"   // it depends on the value; a row of jobsThatMayNotRun has one that is refused
	fieldRefused  = "refused"  // any value is refused, and what is below it with it
)

// leaf is a field of a Job's spec that is judged as a whole.
type leaf struct {
	// key is the type of Kubernetes' API and the field in it.
	key string
	// path is as in a manifest, with index 0 for lists.
	path string
	// in is the field of a Job, with all that leads to it.
	in func(*batchv1.Job) reflect.Value
}

// TestEveryFieldOfAJobIsJudged holds the policy against the types of the API: a
// field that a later Kubernetes brings fails it, until somebody has decided and
// written down what a preflight may do with it.
func TestEveryFieldOfAJobIsJudged(t *testing.T) {
	verdicts := readVerdicts(t)
	known := map[string]bool{}
	for _, field := range leaves(verdicts) {
		known[field.key] = true
		verdict := verdicts[field.key]
		if *updateGolden && verdict == "" {
			verdicts[field.key] = observedVerdict(field)
			continue
		}
		t.Run(field.path, func(t *testing.T) { judged(t, field, verdict) })
	}
	for key := range verdicts {
		if !known[key] {
			t.Errorf("testdata/fields.txt judges %s, which is no field, or below one that is refused", key)
		}
	}
	if *updateGolden {
		writeVerdicts(t, verdicts)
	}
}

func judged(t *testing.T, field leaf, verdict string) {
	t.Helper()
	refusals, kept := build(field)
	refused := len(refusals) > 0
	switch verdict {
	case fieldAllowed:
		if refused || !kept {
			t.Errorf("it is allowed, but kept is %t and refused: %v", kept, refusals)
		}
	case fieldReplaced:
		if refused || kept {
			t.Errorf("the runner replaces it, but kept is %t and refused: %v", kept, refusals)
		}
	case fieldRefused:
		if !refused || !strings.Contains(refusals[0], field.path+": ") {
			t.Errorf("it is refused, but what is said is %q", refusals)
		}
	case fieldJudged:
		path := strings.Replace(field.path, ".initContainers[", ".containers[", 1) // judged alike
		for _, row := range jobsThatMayNotRun() {
			if strings.HasPrefix(row.wantPath, path) {
				return
			}
		}
		t.Error("no row of jobsThatMayNotRun shows which values are refused")
	default:
		t.Errorf("%s is neither allowed nor refused: decide what a preflight may do with it, and write it into testdata/fields.txt", field.key)
	}
}

// build makes a plan of a Job that has the field, and says whether it is still
// what the author chose.
func build(field leaf) (refusals []string, kept bool) {
	job := aJob(nil)
	place := field.in(job)
	chosen := something(place.Type())
	place.Set(chosen)
	complete(job)
	plan := judge(aRun(), aRelease(job))
	for _, f := range plan.Refused {
		refusals = append(refusals, f.Message)
	}
	for _, check := range plan.Checks {
		kept = reflect.DeepEqual(field.in(check.Job).Interface(), chosen.Interface())
	}
	return refusals, kept
}

func observedVerdict(field leaf) string {
	refusals, kept := build(field)
	switch {
	case len(refusals) > 0:
		return fieldRefused
	case kept:
		return fieldAllowed
	}
	return fieldReplaced
}

// complete adds what the field alone would be refused without.
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

// leaves are all fields of a Job's spec. Nothing is looked for below one that is
// refused.
func leaves(verdicts map[string]string) []leaf {
	var all []leaf
	var walk func(reflect.Type, string, func(*batchv1.Job) reflect.Value)
	walk = func(kind reflect.Type, path string, in func(*batchv1.Job) reflect.Value) {
		for i := range kind.NumField() {
			member := kind.Field(i)
			name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
			field := leaf{key: kind.Name() + "." + name, path: path + "." + name, in: func(job *batchv1.Job) reflect.Value {
				return in(job).Field(i)
			}}
			if name == "" { // what is embedded is not seen in a manifest
				field.key, field.path = "", path
			}
			below, found := structure(member.Type)
			if !found || verdicts[field.key] == fieldRefused {
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

// structure is the struct of the API that a type is made of, if it is.
func structure(kind reflect.Type) (reflect.Type, bool) {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	return kind, kind.Kind() == reflect.Struct && !strings.HasPrefix(kind.PkgPath(), "k8s.io/apimachinery/")
}

// enter is the struct in a value, which is made where there is none.
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

// something is a value of the type that is not the zero value.
func something(kind reflect.Type) reflect.Value {
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
		value.Elem().Set(something(kind.Elem()))
	case is == reflect.Slice:
		value.Set(reflect.Append(value, something(kind.Elem())))
	case is == reflect.Map:
		value.Set(reflect.MakeMap(kind))
		value.SetMapIndex(something(kind.Key()), something(kind.Elem()))
	default: // a struct that is refused as a whole
	}
	return value
}

const verdictFile = "testdata/fields.txt"

func readVerdicts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(verdictFile)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			verdicts[words[1]] = words[0]
		}
	}
	return verdicts
}

func writeVerdicts(t *testing.T, verdicts map[string]string) {
	t.Helper()
	text := "# What a preflight may do with each field of a Job. See fields_test.go.\n"
	for _, key := range slices.Sorted(maps.Keys(verdicts)) {
		text += fmt.Sprintf("%-8s %s\n", verdicts[key], key)
	}
	if err := os.WriteFile(verdictFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
