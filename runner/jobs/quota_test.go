package jobs_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// A quota that was used up before the Job is the likely cause of a Job without a pod, also
// where the events about the Job cannot be read.
func TestForeseenQuota(t *testing.T) {
	namespace := newNamespace(t, nil)
	watching, err := api.CoreV1().ResourceQuotas(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	full := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	if _, err := api.CoreV1().ResourceQuotas(namespace).Create(t.Context(), full, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range watching.ResultChan() {
		if quota, ok := event.Object.(*corev1.ResourceQuota); ok && len(quota.Status.Used) > 0 {
			break
		}
	}
	_, valid := launch.New(inventory.New(api, objects)).Validate(t.Context(), newPlan(t, namespace, 1, nil))
	if len(valid.Checks) != 1 {
		t.Fatal("want a Job, since the quota may be freed")
	}
	check := valid.Checks[0]
	classified := diagnosis.Classify(diagnosis.Observation{Check: check, Job: check.Job.DeepCopy(), Expired: true})
	if len(classified.Findings) != 1 {
		t.Fatalf("want one finding at the deadline, got %+v", classified)
	}
	f := classified.Findings[0]
	if f.Outcome != preflight.Unknown || !strings.Contains(f.Message, "full (pods: requested 1, used 0, limited 0)") ||
		!strings.Contains(f.Remediation, "Increase the quota of namespace "+namespace) {
		t.Errorf("want Unknown with the quota and its remedy, got %+v", f)
	}
}
