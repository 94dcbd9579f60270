package launch_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

// aPlan has one check, of a run of its own.
func aPlan(namespace string) launch.Plan {
	return planned(newRun(), aRelease(aJob(func(job *batchv1.Job) { job.Namespace = namespace })))
}

// What the guard denies is held on real pods, in test/e2e.
func TestGuardGoesWithItsRun(t *testing.T) {
	plan := aPlan(newNamespace(t))
	run := plan.Run
	launcher := launch.New(api)
	f := launcher.Guard(t.Context(), plan)
	if f.Outcome != preflight.Pass || f.Reason != "ReadOnly" {
		t.Fatalf("guard: %+v, want that it is in place", f)
	}
	policies := api.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	ours := metav1.ListOptions{LabelSelector: label.Run + "=" + run.ID}
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

// API servers look for new policies once a second: a check that is fast must not
// be faster than its guard.
func TestGuardIsInEffectOnceItIsTold(t *testing.T) {
	namespace := newNamespace(t)
	plan := aPlan(namespace)
	launcher := launch.New(api)
	t.Cleanup(func() {
		if left, err := launcher.Cleanup(context.Background(), plan.Run.ID); err != nil {
			t.Errorf("left %v: %v", left, err)
		}
	})
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v, want that it is in place", f)
	}
	for name, tc := range map[string]struct {
		reason, pod string
		denied      bool
	}{
		"OfTheRun": {"a pod of the run", plan.Checks[0].Job.Name + "-abcde", true},
		"Another":  {"a pod that is not of the run", "etcd-preflight-0123456789-abcde", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := rest.CopyConfig(config)
			pod.Impersonate = rest.ImpersonationConfig{
				UserName: "system:admin", Groups: []string{"system:masters"},
				Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {tc.pod}},
			}
			client, err := kubernetes.NewForConfig(pod)
			if err != nil {
				t.Fatal(err)
			}
			written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}
			_, err = client.CoreV1().ConfigMaps(namespace).Create(t.Context(), written, metav1.CreateOptions{})
			if denied := err != nil && strings.Contains(err.Error(), "a preflight check only reads"); denied != tc.denied {
				t.Errorf("%s writes: %v; denied should be %t", tc.reason, err, tc.denied)
			}
		})
	}
}

// A policy that cannot be compiled would be ignored: the API server says so in
// the status.
func TestGuardIsUnderstood(t *testing.T) {
	plan := aPlan(newNamespace(t))
	run := plan.Run
	launcher := launch.New(api)
	launcher.Guard(t.Context(), plan)
	t.Cleanup(func() {
		if left, err := launcher.Cleanup(t.Context(), run.ID); err != nil {
			t.Logf("left %v: %v", left, err)
		}
	})
	watching, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicies().Watch(t.Context(),
		metav1.ListOptions{LabelSelector: label.Run + "=" + run.ID})
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
	namespace := newNamespace(t)
	f := as(t, namespace).Guard(t.Context(), aPlan(namespace))
	if f.Outcome != preflight.Warn || f.Reason != "NoReadOnlyGuard" || f.Remediation == "" {
		t.Errorf("guard: %+v, want a warning with a remedy", f)
	}
	if !strings.Contains(f.Message, "validatingadmissionpolicies") {
		t.Errorf("the message %q does not say what is missing", f.Message)
	}
}
