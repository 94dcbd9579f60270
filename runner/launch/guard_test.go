package launch_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// aPlan returns a plan with one check.
func aPlan(namespace string) jobplan.Plan {
	return releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) { job.Namespace = namespace })))
}

// The denials of the guard are tested with real pods in test/e2e.
func TestGuardIsDeletedWithRun(t *testing.T) {
	plan := aPlan(newNamespace(t))
	run := plan.Run
	launcher := newLauncher(t, config)
	f := launcher.Guard(t.Context(), plan)
	if f.Outcome != preflight.Pass || f.Reason != "ReadOnly" {
		t.Fatalf("guard: %+v, want a pass", f)
	}
	policies := api.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	ours := metav1.ListOptions{LabelSelector: label.Run + "=" + run.ID}
	found, err := policies.List(t.Context(), ours)
	if err != nil || len(found.Items) != 2 {
		t.Fatalf("%d policies, error %v; want two with the label of the run", len(found.Items), err)
	}
	if left, err := launcher.Cleanup(t.Context(), run.ID); err != nil {
		t.Fatalf("left %v: %v", left, err)
	}
	if found, err = policies.List(t.Context(), ours); err != nil || len(found.Items) != 0 {
		t.Errorf("%d policies are left, error %v", len(found.Items), err)
	}
}

// API servers load new policies once a second: a fast check must not run before its
// guard is in effect.
func TestGuardIsInEffect(t *testing.T) {
	namespace := newNamespace(t)
	plan := aPlan(namespace)
	launcher := newLauncher(t, config)
	t.Cleanup(func() {
		if left, err := launcher.Cleanup(context.Background(), plan.Run.ID); err != nil {
			t.Errorf("left %v: %v", left, err)
		}
	})
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v, want a pass", f)
	}
	for name, tc := range map[string]struct {
		reason, pod, user string
		denied            bool
	}{
		"OfTheRun": {"a pod of the run", plan.Checks[0].Job.Name + "-abcde", "system:admin", true},
		"Another":  {"a pod that is not of the run", "etcd-preflight-0123456789-abcde", "system:admin", false},
		"Renamed": {
			"admission renamed the pod of the run", "other-abcde", "system:serviceaccount:" + namespace + ":default-" + plan.Run.Suffix(), true,
		},
		"OtherAccount": {"an account that is not of the run", "other-abcde", "system:serviceaccount:" + namespace + ":default", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := rest.CopyConfig(config)
			pod.Impersonate = rest.ImpersonationConfig{
				UserName: tc.user, Groups: []string{"system:masters"},
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
			ofCluster := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "written-" + plan.Run.Suffix()}}
			_, err = client.CoreV1().Namespaces().Create(t.Context(), ofCluster, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if denied := err != nil && strings.Contains(err.Error(), "tried to create namespaces "+ofCluster.Name); denied != tc.denied {
				t.Errorf("%s writes an object of the cluster: %v; denied with its name should be %t", tc.reason, err, tc.denied)
			}
		})
	}
}

// A policy that cannot be compiled is ignored; the status has the errors.
func TestGuardCompiles(t *testing.T) {
	plan := aPlan(newNamespace(t))
	run := plan.Run
	launcher := newLauncher(t, config)
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
	checked := map[string]bool{}
	for event := range watching.ResultChan() {
		policy, ok := event.Object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !ok || policy.Status.TypeChecking == nil {
			continue
		}
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
		}
		if checked[policy.Name] = true; len(checked) == 2 {
			return
		}
	}
	t.Error("the API server never checked the policies")
}

func TestMissingGuardIsWarning(t *testing.T) {
	namespace := newNamespace(t)
	f := allowed(t, access.Needs{}).Guard(t.Context(), aPlan(namespace))
	if f.Outcome != preflight.Warn || f.Reason != "NoReadOnlyGuard" || f.Remediation == "" {
		t.Errorf("guard: %+v, want a warning with a remedy", f)
	}
	if !strings.Contains(f.Message, "validatingadmissionpolicies") {
		t.Errorf("the message %q lacks the missing permission", f.Message)
	}
}

func TestGuardChanged(t *testing.T) {
	policies, bindings := api.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		api.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	patch := func(path, value string) []byte {
		return []byte(`[{"op": "replace", "path": "` + path + `", "value": ` + value + `}]`)
	}
	for name, tc := range map[string]struct {
		reason string
		change func(ctx context.Context, name string) error
		want   string // empty for no finding
	}{
		"Unchanged": {reason: "the guard was in force", change: func(context.Context, string) error { return nil }},
		"Deleted": {
			reason: "the policy was deleted", want: "was deleted",
			change: func(ctx context.Context, name string) error {
				return policies.Delete(ctx, name, metav1.DeleteOptions{})
			},
		},
		"Unbound": {
			reason: "the binding was deleted", want: "ValidatingAdmissionPolicyBinding",
			change: func(ctx context.Context, name string) error {
				return bindings.Delete(ctx, name, metav1.DeleteOptions{})
			},
		},
		"Patched": {
			reason: "the policy allows everything", want: "was changed",
			change: func(ctx context.Context, name string) error {
				return ignore(policies.Patch(ctx, name, types.JSONPatchType, patch("/spec/validations/0/expression", `"true"`), metav1.PatchOptions{}))
			},
		},
		"PatchedBack": {
			reason: "the policy allowed everything for a while", want: "was changed",
			change: func(ctx context.Context, name string) error {
				allow := ignore(policies.Patch(ctx, name, types.JSONPatchType, patch("/spec/validations/0/expression", `"true"`),
					metav1.PatchOptions{}))
				deny := ignore(policies.Patch(ctx, name, types.JSONPatchType, patch("/spec/validations/0/expression", `"false"`),
					metav1.PatchOptions{}))
				return errors.Join(allow, deny)
			},
		},
		"Audited": {
			reason: "the binding only audits", want: "was changed",
			change: func(ctx context.Context, name string) error {
				return ignore(bindings.Patch(ctx, name, types.JSONPatchType, patch("/spec/validationActions", `["Audit"]`), metav1.PatchOptions{}))
			},
		},
		"Recreated": {
			reason: "the policy was absent for a while", want: "deleted and created again",
			change: func(ctx context.Context, name string) error {
				found, err := policies.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				again := &admissionregistrationv1.ValidatingAdmissionPolicy{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: found.Labels},
					Spec:       found.Spec,
				}
				return errors.Join(policies.Delete(ctx, name, metav1.DeleteOptions{}), ignore(policies.Create(ctx, again, metav1.CreateOptions{})))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, launcher := aPlan(newNamespace(t)), newLauncher(t, config)
			t.Cleanup(func() {
				if removal, err := launcher.Cleanup(context.Background(), plan.Run.ID); err != nil {
					t.Errorf("left %v: %v", removal.Left, err)
				}
			})
			if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
				t.Fatalf("guard: %+v, want a pass", f)
			}
			if err := tc.change(t.Context(), "preflight-read-only-"+plan.Run.Suffix()); err != nil {
				t.Fatal(err)
			}
			f, changed := launcher.GuardChanged(t.Context(), plan.Run)
			if changed != (tc.want != "") || !strings.Contains(f.Message, tc.want) {
				t.Errorf("%s: changed %t, %q; want %q", tc.reason, changed, f.Message, tc.want)
			}
			if changed && (f.Outcome != preflight.Unknown || f.Reason != "GuardChanged" || !f.Blocks || f.Name != "ReadOnlyGuard" ||
				f.Remediation == "") {
				t.Errorf("%s: %+v, want a blocking Unknown that replaces the pass", tc.reason, f)
			}
		})
	}
}

// A runner that continues a run with Jobs and without a guard cannot prove that their
// writes were denied.
func TestLateGuard(t *testing.T) {
	first := newLauncher(t, config)
	plan := first.CopyAccounts(t.Context(), aPlan(newNamespace(t)))
	create(t, first, plan)
	second := newLauncher(t, config)
	if err := second.Resume(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if f := second.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v, want a pass", f)
	}
	if f, changed := second.GuardChanged(t.Context(), plan.Run); !changed ||
		!strings.Contains(f.Message, "did not exist when the run was continued") {
		t.Errorf("changed %t, %+v; want a finding", changed, f)
	}
	if removal, err := second.Cleanup(bounded(t), plan.Run.ID); err != nil {
		t.Errorf("left %v: %v", removal.Left, err)
	}
}
