package checktest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// parse returns the objects of a YAML stream.
func parse(t *testing.T, stream []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096); ; {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// manifests returns the objects that the release ships with the check.
func manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("manifests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		stream, err := os.ReadFile(file) //nolint:gosec // A file of the test's package.
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, parse(t, stream)...)
	}
	return objects
}

// shippedJob returns the Job in the manifests.
func shippedJob(t *testing.T) *batchv1.Job {
	t.Helper()
	var jobs []*batchv1.Job
	for _, object := range manifests(t) {
		if object.GetKind() == "Job" {
			job := &batchv1.Job{}
			convert(t, object, job)
			jobs = append(jobs, job)
		}
	}
	if len(jobs) != 1 {
		t.Fatalf("%d Jobs in the manifests, want 1", len(jobs))
	}
	return jobs[0]
}

// convert fails the test for fields that the type does not have.
func convert(t *testing.T, object *unstructured.Unstructured, typed any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// ExpectJob fails the test unless the manifests contain one Job that is annotated as
// a preflight with a framed result, that the API server accepts, and whose pod
// complies with the restricted pod security standard.
func (e *Environment) ExpectJob(t *testing.T) {
	t.Helper()
	job := shippedJob(t)
	for annotation, want := range map[string]string{
		"openshift.io/preflight-check":  "true",
		"preflight.openshift.io/result": "framed",
	} {
		if got := job.Annotations[annotation]; got != want {
			t.Errorf("annotation %s is %q, want %q", annotation, got, want)
		}
	}

	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	if _, err := e.kube.BatchV1().Jobs(job.Namespace).Create(t.Context(), job, dryRun); err != nil {
		t.Error(err)
	}
	e.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: `+job.Spec.Template.Spec.ServiceAccountName+`, namespace: restricted}}`)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "check"}, Spec: job.Spec.Template.Spec}
	if _, err := e.kube.CoreV1().Pods("restricted").Create(t.Context(), pod, dryRun); err != nil {
		t.Error(err)
	}
}

// ExpectRoles fails the test unless the roles in the manifests are those that the
// program prints for the rules of its checks. It is for manifests that are written by
// hand because the Job needs more than the program prints. Rules for non-resource
// URLs are ignored: a check cannot declare them.
func (e *Environment) ExpectRoles(t *testing.T) {
	t.Helper()
	job := shippedJob(t)
	print := exec.CommandContext(t.Context(), e.program, "--print-manifest", "--name="+job.Name, //nolint:gosec // Built by New.
		"--namespace="+job.Namespace, "--image="+job.Spec.Template.Spec.Containers[0].Image)
	stream, err := print.Output()
	if err != nil {
		t.Fatalf("cannot print the manifest: %v", err)
	}
	if diff := cmp.Diff(roles(t, parse(t, stream)), roles(t, manifests(t))); diff != "" {
		t.Errorf("roles by namespace (-declared by the checks +shipped):\n%s", diff)
	}
}

// roles returns the rules of the roles among the objects by namespace, without those
// for non-resource URLs.
func roles(t *testing.T, objects []*unstructured.Unstructured) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		switch object.GetKind() {
		case "Role", "ClusterRole":
			var role rbacv1.Role
			convert(t, object, &role)
			rules[role.Namespace] = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 })
		}
	}
	return rules
}
