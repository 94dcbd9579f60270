package releasetest

import (
	"reflect"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Field is a field of a Job's spec with one rule.
type Field struct {
	// Key is the name of the API type and of its field.
	Key string
	// Path is the path in a manifest, with index 0 for lists.
	Path string
	// In returns the field of a Job, and creates the fields above it.
	In func(*batchv1.Job) reflect.Value
}

// Fields are all fields of a Job's spec, without those below a refused one.
func Fields(refused func(key string) bool) []Field {
	var all []Field
	var walk func(reflect.Type, string, func(*batchv1.Job) reflect.Value)
	walk = func(kind reflect.Type, path string, in func(*batchv1.Job) reflect.Value) {
		for i := range kind.NumField() {
			member := kind.Field(i)
			name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
			field := Field{Key: kind.Name() + "." + name, Path: path + "." + name, In: func(job *batchv1.Job) reflect.Value {
				return in(job).Field(i)
			}}
			if name == "" { // embedded structs have no name in a manifest
				field.Key, field.Path = "", path
			}
			below, found := structure(member.Type)
			if !found || refused(field.Key) {
				all = append(all, field)
				continue
			}
			if member.Type.Kind() == reflect.Slice {
				field.Path += "[0]"
			}
			walk(below, field.Path, func(job *batchv1.Job) reflect.Value { return enter(field.In(job)) })
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

// NonZero is a value of the type other than the zero value.
func NonZero(kind reflect.Type) reflect.Value {
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
		value.Elem().Set(NonZero(kind.Elem()))
	case is == reflect.Slice:
		value.Set(reflect.Append(value, NonZero(kind.Elem())))
	case is == reflect.Map:
		value.Set(reflect.MakeMap(kind))
		value.SetMapIndex(NonZero(kind.Key()), NonZero(kind.Elem()))
	default: // a struct with one rule
	}
	return value
}
