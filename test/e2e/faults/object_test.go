//go:build faults

package faults_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objectFaults are what other people do in the same cluster.
func objectFaults() []fault {
	return []fault{
		{
			name: "quota full for a while", before: fill,
			during: func(t *testing.T, s scene, w work) {
				t.Helper()
				w.until(t, "exceeded quota")
				if err := s.client.CoreV1().ResourceQuotas(s.namespace).Delete(t.Context(), "full", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			name: "quota full", args: []string{"--timeout", "15s"}, before: fill,
			want: wantUndecided("QuotaExceeded"), pods: map[string]int{"first": 0, "second": 0},
		},
		{
			name: "Jobs deleted by another client", during: whenFirstRuns(deleteJobs),
			pods: map[string]int{"first": 2},
		},
		{
			name: "namespace deleted", during: whenFirstRuns(deleteNamespace),
			want: wantUndecided("NamespaceMissing", "NamespaceTerminating", "JobDeleted"), pods: map[string]int{"first": 1},
		},
		{name: "record edited by another client", during: whenFirstRuns(spoilRecord)},
		{name: "record deleted by another client", during: whenFirstRuns(deleteRecord)},
	}
}

// fill leaves no room for pods.
func fill(t *testing.T, s scene) {
	t.Helper()
	_, err := s.client.CoreV1().ResourceQuotas(s.namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// deleteJobs deletes the Job of the first check, which has not answered.
func deleteJobs(t *testing.T, s scene, _ work) {
	t.Helper()
	jobs, err := s.client.BatchV1().Jobs(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	policy := metav1.DeletePropagationBackground
	for _, job := range jobs.Items {
		if !strings.HasPrefix(job.Name, "first-") {
			continue
		}
		if err := s.client.BatchV1().Jobs(s.namespace).Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
	}
}

func deleteNamespace(t *testing.T, s scene, _ work) {
	t.Helper()
	if err := s.client.CoreV1().Namespaces().Delete(t.Context(), s.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// spoilRecord leaves nothing of what the record of the run says.
func spoilRecord(t *testing.T, s scene, _ work) {
	t.Helper()
	head := s.head(t)
	head.Data = map[string]string{"format": "1", "run.yaml": "phase: Complete\n"}
	head.BinaryData = map[string][]byte{"results.gz": []byte("not what it was")}
	head.ResourceVersion = "" // whatever the run writes meanwhile
	if _, err := s.client.CoreV1().ConfigMaps(recordNamespace).Update(t.Context(), head, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deleteRecord(t *testing.T, s scene, _ work) {
	t.Helper()
	if err := s.client.CoreV1().ConfigMaps(recordNamespace).Delete(t.Context(), s.head(t).Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// head is where the record of the scene's run begins.
func (s scene) head(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	heads, err := s.client.CoreV1().ConfigMaps(recordNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: s.recordSelector()})
	if err != nil || len(heads.Items) != 1 {
		t.Fatalf("want the record of one run, got %d: %v", len(heads.Items), err)
	}
	return &heads.Items[0]
}
