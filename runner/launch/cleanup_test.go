package launch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/test/faults"
	"github.com/openshift/update-preflight/test/user"
)

// The runner was killed when it had created only the guard.
func TestCleanupDeletesGuardOfKilledRun(t *testing.T) {
	plan := aPlan(newNamespace(t))
	killed := newLauncher(t, config)
	if f := killed.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
	}
	runs, err := newLauncher(t, config).Runs(t.Context())
	if err != nil || !slices.Contains(runs, plan.Run.ID) {
		t.Errorf("runs %v, error %v; want the killed run", runs, err)
	}
	removal, err := newLauncher(t, config).Cleanup(bounded(t), plan.Run.ID)
	if diff := cmp.Diff(launch.Removal{Deleted: killed.Created(plan.Run.ID)}, removal); diff != "" || err != nil || len(removal.Deleted) != 2 {
		t.Errorf("error %v; want policy and binding deleted (-want, +got):\n%s", err, diff)
	}
}

// The guard must exist as long as a pod of the run may run.
func TestGuardIsDeletedLast(t *testing.T) {
	namespace := newNamespace(t)
	plan := aPlan(namespace)
	launcher := newLauncher(t, config)
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
	}
	waitForDefaultAccount(t, namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "busy-" + plan.Run.Suffix() + "-abcde", Namespace: namespace, Labels: map[string]string{label.Run: plan.Run.ID}, Finalizers: []string{"example.com/busy"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "check", Image: image}}, AutomountServiceAccountToken: new(false)},
	}
	if _, err := api.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	removal, err := launcher.Cleanup(ctx, plan.Run.ID)
	want := []preflight.Object{{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: pod.Name}}
	if diff := cmp.Diff(want, removal.Left); diff != "" || err == nil {
		t.Errorf("error %v; left (-want, +got):\n%s", err, diff)
	}
	guards, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(t.Context(), metav1.ListOptions{
		LabelSelector: label.Run + "=" + plan.Run.ID,
	})
	if err != nil || len(guards.Items) != 1 {
		t.Errorf("%d guards, error %v; want the guard to exist", len(guards.Items), err)
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := api.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, "application/merge-patch+json", release, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if removal, err := launcher.Cleanup(bounded(t), plan.Run.ID); err != nil {
		t.Errorf("left %v: %v", removal.Left, err)
	}
}

// allowed returns a launcher of a user with exactly these permissions.
func allowed(t *testing.T, needs access.Needs) *launch.Launcher {
	t.Helper()
	return newLauncher(t, user.With(t, config, needs))
}

func createRBAC(ctx context.Context, object runtime.Object) error {
	switch object := object.(type) {
	case *rbacv1.ClusterRole:
		return ignore(api.RbacV1().ClusterRoles().Create(ctx, object, metav1.CreateOptions{}))
	case *rbacv1.ClusterRoleBinding:
		return ignore(api.RbacV1().ClusterRoleBindings().Create(ctx, object, metav1.CreateOptions{}))
	case *rbacv1.Role:
		return ignore(api.RbacV1().Roles(object.Namespace).Create(ctx, object, metav1.CreateOptions{}))
	case *rbacv1.RoleBinding:
		return ignore(api.RbacV1().RoleBindings(object.Namespace).Create(ctx, object, metav1.CreateOptions{}))
	}
	return nil
}

// The declared permissions must suffice for all operations on a plan.
func TestDeclaredNeedsSuffice(t *testing.T) {
	namespace := newNamespace(t)
	release := aFullRelease(namespace)
	drafted := planned(newRun(), release)
	launcher := allowed(t, launch.NewDraft("", release).Needs().And(launch.ListNeeds()).And(launch.GuardNeeds()))
	findings, plan := launcher.Validate(t.Context(), drafted)
	if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" {
		t.Fatalf("validation (-want, +got):\n%s", diff)
	}
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Errorf("guard: %+v", f)
	}
	create(t, launcher, plan)
	create(t, launcher, plan) // existing objects are adopted
	if removal, err := launcher.Cleanup(bounded(t), plan.Run.ID); err != nil || len(removal.Deleted) == 0 {
		t.Errorf("deleted %v, left %v: %v", removal.Deleted, removal.Left, err)
	}
}

// Kubernetes lets no user grant permissions that it does not have; that must be
// reported before objects are created.
func TestEscalationIsReported(t *testing.T) {
	namespace := newNamespace(t)
	release := aFullRelease(namespace)
	plan, needs := planned(newRun(), release), launch.NewDraft("", release).Needs()
	needs.Given = nil
	launcher := allowed(t, needs)
	findings, _ := launcher.Validate(t.Context(), plan)
	if len(findings) != 1 || findings[0].Reason != "RightsNotHeld" {
		t.Fatalf("want one finding for the role, got %+v", findings)
	}
	var escalation *launch.EscalationError
	if err := launch.Ungrantable(findings); !errors.As(err, &escalation) || len(escalation.Denied) != 1 {
		t.Errorf("want an EscalationError with one cause, got %v", err)
	}
	if err := launch.Ungrantable(nil); err != nil {
		t.Errorf("want no error without findings, got %v", err)
	}
}

// A user who may not list guards can clean up, and is informed that a guard may
// exist.
func TestUnseenGuards(t *testing.T) {
	namespace := newNamespace(t)
	plan := aPlan(namespace)
	if f := newLauncher(t, config).Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
	}
	t.Cleanup(func() {
		if removal, err := newLauncher(t, config).Cleanup(context.Background(), plan.Run.ID); err != nil || len(removal.Deleted) != 2 {
			t.Errorf("deleted %v: %v", removal.Deleted, err)
		}
	})
	needs := launch.CleanupNeeds()
	needs.Optional = nil
	launcher := allowed(t, needs)
	removal, err := launcher.Cleanup(bounded(t), plan.Run.ID)
	want := launch.Removal{Unseen: []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}}
	if diff := cmp.Diff(want, removal); diff != "" || err != nil {
		t.Errorf("error %v (-want, +got):\n%s", err, diff)
	}
}

// An API server that restarts must not prevent the deletion of objects.
func TestCleanupRetries(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"LostBefore": faults.Lossy(faults.Before), "LostAfter": faults.Lossy(faults.After),
		"Unavailable": faults.Unavailable(3), "Busy": faults.Busy(3),
	} {
		t.Run(name, func(t *testing.T) {
			plan := aPlan(newNamespace(t))
			direct := newLauncher(t, config)
			if f := direct.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
				t.Fatalf("guard: %+v", f)
			}
			proxy, err := faults.Start(config, fault)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			removal, err := newLauncher(t, proxy.Config()).Cleanup(bounded(t), plan.Run.ID)
			if diff := cmp.Diff(direct.Created(plan.Run.ID), removal.Deleted); diff != "" || err != nil {
				t.Errorf("error %v; want all objects deleted although requests are lost or rejected (-want, +got):\n%s", err, diff)
			}
		})
	}
}
