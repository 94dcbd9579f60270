package launch_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// What the guard denies is held on real pods, in test/e2e.
func TestGuardGoesWithItsRun(t *testing.T) {
	run := newRun()
	launcher := launch.New(api)
	finding := launcher.Guard(t.Context(), run)
	if finding.Outcome != preflight.Pass || finding.Reason != "ReadOnly" {
		t.Fatalf("guard: %+v, want that it is in place", finding)
	}
	policies := api.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	ours := metav1.ListOptions{LabelSelector: launch.LabelRun + "=" + run.ID}
	found, err := policies.List(t.Context(), ours)
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("%d policies, error %v; want one with the label of the run", len(found.Items), err)
	}
	if left, err := launcher.Cleanup(t.Context(), run.ID); err != nil {
		t.Fatalf("left %v: %v", left, err)
	}
	if found, err = policies.List(t.Context(), ours); err != nil || len(found.Items) != 0 {
		t.Errorf("%d policies are left, error %v", len(found.Items), err)
	}
}

// A policy that cannot be compiled would be ignored: the API server says so in
// the status.
func TestGuardIsUnderstood(t *testing.T) {
	run := newRun()
	launcher := launch.New(api)
	launcher.Guard(t.Context(), run)
	t.Cleanup(func() {
		if left, err := launcher.Cleanup(t.Context(), run.ID); err != nil {
			t.Logf("left %v: %v", left, err)
		}
	})
	watching, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicies().Watch(t.Context(),
		metav1.ListOptions{LabelSelector: launch.LabelRun + "=" + run.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		policy, ok := event.Object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !ok || policy.Status.TypeChecking == nil {
			continue
		}
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
		}
		return
	}
	t.Error("the API server never checked the policy")
}

func TestWithoutTheGuardThereIsAWarning(t *testing.T) {
	finding := as(t, newNamespace(t)).Guard(t.Context(), newRun())
	if finding.Outcome != preflight.Warn || finding.Reason != "NoReadOnlyGuard" || finding.Remediation == "" {
		t.Errorf("guard: %+v, want a warning with a remedy", finding)
	}
	if !strings.Contains(finding.Message, "validatingadmissionpolicies") {
		t.Errorf("the message %q does not say what is missing", finding.Message)
	}
}
