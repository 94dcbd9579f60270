package faults_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objectFaults are requests of other clients to the same cluster. Those that end pods, whose
// checks then report something, have pods with containers.
func objectFaults() []fault {
	return []fault{
		{
			name: "quota full for a while", before: fillQuota,
			during: func(t *testing.T, e environment, run proxiedRun) {
				t.Helper()
				run.AwaitOutput(t, "exceeded quota")
				if err := e.client.CoreV1().ResourceQuotas(e.namespace).Delete(t.Context(), "full", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			name: "Jobs deleted by another client", onPods: true, during: whenFirstRuns(deleteJobs),
			pods: map[string]int{"first": 2},
		},
		{
			name: "namespace deleted", onPods: true, during: whenFirstRuns(deleteNamespace),
			want: wantUndecided("NamespaceMissing", "NamespaceTerminating", "JobDeleted"), pods: map[string]int{"first": 1},
		},
		{name: "record edited by another client", during: whenFirstRuns(corruptRecord)},
		{name: "record deleted by another client", during: whenFirstRuns(deleteRecord)},
	}
}

// fillQuota permits no pods in the namespace.
func fillQuota(t *testing.T, e environment) {
	t.Helper()
	_, err := e.client.CoreV1().ResourceQuotas(e.namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// deleteJobs deletes the Job of the first check, which has not reported.
func deleteJobs(t *testing.T, e environment, _ proxiedRun) {
	t.Helper()
	jobs, err := e.client.BatchV1().Jobs(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	policy := metav1.DeletePropagationBackground
	for _, job := range jobs.Items {
		if !strings.HasPrefix(job.Name, "first-") {
			continue
		}
		if err := e.client.BatchV1().Jobs(e.namespace).Delete(t.Context(), job.Name,
			metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
	}
}

func deleteNamespace(t *testing.T, e environment, _ proxiedRun) {
	t.Helper()
	if err := e.client.CoreV1().Namespaces().Delete(t.Context(), e.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// corruptRecord replaces the content of the record of the run.
func corruptRecord(t *testing.T, e environment, _ proxiedRun) {
	t.Helper()
	header := e.header(t)
	header.Data = map[string]string{"format": "1", "run.yaml": "phase: Complete\n"}
	header.BinaryData = map[string][]byte{"results.gz": []byte("corrupted")}
	header.ResourceVersion = "" // the run may write meanwhile
	if _, err := e.client.CoreV1().ConfigMaps(recordNamespace).Update(t.Context(), header, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deleteRecord(t *testing.T, e environment, _ proxiedRun) {
	t.Helper()
	if err := e.client.CoreV1().ConfigMaps(recordNamespace).Delete(t.Context(), e.header(t).Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// header returns the header of the record of the run.
func (e environment) header(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	headers, err := e.client.CoreV1().ConfigMaps(recordNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: e.recordSelector()})
	if err != nil || len(headers.Items) != 1 {
		t.Fatalf("want the header of one run, got %d: %v", len(headers.Items), err)
	}
	return &headers.Items[0]
}
