// Package releasetest answers: with which releases are the checks of a release tested?
//
// [Release] returns a release with these Jobs, and [Plan] the plan of its [Run].
package releasetest

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

const (
	// Digest is the digest of the target release.
	Digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	// Image is the only image of the release.
	Image = "quay.io/openshift/cco@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// Target returns the target release of the runs.
func Target() update.Release {
	return update.Release{Version: "4.21.0", Image: "quay.io/openshift-release-dev/ocp-release@" + Digest}
}

// Plan returns the plan of a run of the release.
func Plan(run jobplan.Run, release *payload.Release) jobplan.Plan {
	return jobplan.New(run.From, release).Bind(run)
}

// Drafted is a plan with the rejected checks of its draft.
type Drafted struct {
	jobplan.Plan
	Refused []finding.Finding
}

// Draft returns the plan of a run of the release, with its rejected checks.
func Draft(run jobplan.Run, release *payload.Release) Drafted {
	drafted := jobplan.New(run.From, release)
	return Drafted{Plan: drafted.Bind(run), Refused: drafted.Refused}
}

// Run returns a run of the target release.
func Run() jobplan.Run {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	return jobplan.Run{
		ID: "7f3c2a91-52de-4b1c-8d70-1f2e3d4c5b6a", From: "4.20.3", Target: Target(),
		StartTime: start, Deadline: start.Add(10 * time.Minute), ToolVersion: "v0.1.0",
	}
}

// Job returns a Job that conforms to the policy, after a change.
func Job(change func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd-preflight", Namespace: "default", Annotations: map[string]string{payload.Annotation: "true"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "check", Image: Image, Command: []string{"/bin/preflight"}}},
		}}},
	}
	if change != nil {
		change(job)
	}
	return job
}

// Release returns a release with these Jobs of the component etcd.
func Release(jobs ...*batchv1.Job) *payload.Release {
	release := &payload.Release{Release: Target(), Images: map[string]string{"cloud-credential-operator": Image}}
	for i, job := range jobs {
		release.Jobs = append(release.Jobs, payload.Job{File: fmt.Sprintf("0000_50_etcd_%02d.yaml", i), Component: "etcd", Job: job})
	}
	return release
}

// Supporting returns the manifests of objects of the component etcd.
func Supporting(objects ...payload.Object) []payload.Supporting {
	var all []payload.Supporting
	for _, object := range objects {
		all = append(all, payload.Supporting{File: "0000_50_etcd_rbac.yaml", Component: "etcd", Object: object})
	}
	return all
}

// Account returns a ServiceAccount in the namespace of the Jobs.
func Account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// Role returns a Role in the namespace of the Jobs.
func Role(rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "default"}, Rules: rules}
}

// Binding returns a RoleBinding in the namespace of the Jobs.
func Binding(roleKind, roleName string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reads", Namespace: "default"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: roleName},
	}
}

// Subject returns the subject of a binding for a ServiceAccount.
func Subject(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}
}

// Read reads manifests as if they were part of a payload.
func Read(t *testing.T, path string) *payload.Release {
	t.Helper()
	data, err := os.ReadFile(path) //nolint:gosec // a file of a test
	if err != nil {
		t.Fatal(err)
	}
	release := Release()
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		const file, component = "0000_50_cloud-credential-operator_11_preflight-job.yaml", "cloud-credential-operator"
		if job, ok := decoded.(*batchv1.Job); ok {
			release.Jobs = append(release.Jobs, payload.Job{File: file, Component: component, Job: job})
			continue
		}
		object, ok := decoded.(payload.Object)
		if !ok {
			t.Fatalf("unexpected %T", decoded)
		}
		release.Supporting = append(release.Supporting, payload.Supporting{File: file, Component: component, Object: object})
	}
	return release
}

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
