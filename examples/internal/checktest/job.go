package checktest

import (
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// ExpectJob fails the test unless there is one manifest of a Job, marked as a
// preflight check, that the API server takes, and whose pod is allowed by Pod
// Security's strictest level.
func (s *Stage) ExpectJob(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("manifests/*-job.yaml")
	if err != nil || len(files) != 1 {
		t.Fatalf("want one manifest of a Job, got %v (%v)", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(content, &job); err != nil {
		t.Fatal(err)
	}
	for annotation, want := range map[string]string{
		"openshift.io/preflight-check":  "true",
		"preflight.openshift.io/result": "framed",
	} {
		if got := job.Annotations[annotation]; got != want {
			t.Errorf("annotation %s is %q, want %q", annotation, got, want)
		}
	}

	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	if _, err := s.kube.BatchV1().Jobs(job.Namespace).Create(t.Context(), &job, dryRun); err != nil {
		t.Error(err)
	}
	s.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: `+job.Spec.Template.Spec.ServiceAccountName+`, namespace: restricted}}`)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "check"}, Spec: job.Spec.Template.Spec}
	if _, err := s.kube.CoreV1().Pods("restricted").Create(t.Context(), pod, dryRun); err != nil {
		t.Error(err)
	}
}
