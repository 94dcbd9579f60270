package launch_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/test/faults"
)

// A runner that was killed after it had made the guard, and nothing else.
func TestCleanupFindsTheGuardOfACrashedRun(t *testing.T) {
	plan := aPlan(newNamespace(t))
	crashed := launch.New(api)
	if f := crashed.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
	}
	runs, err := launch.New(api).Runs(t.Context())
	if err != nil || !slices.Contains(runs, plan.Run.ID) {
		t.Errorf("runs %v, error %v; want the one whose guard is left", runs, err)
	}
	removal, err := launch.New(api).Cleanup(bounded(t), plan.Run.ID)
	if diff := cmp.Diff(launch.Removal{Deleted: crashed.Created(plan.Run.ID)}, removal); diff != "" || err != nil || len(removal.Deleted) != 2 {
		t.Errorf("error %v; want that policy and binding were deleted (-want, +got):\n%s", err, diff)
	}
}

// As long as a pod of the run may be at work, its guard stays.
func TestTheGuardGoesLast(t *testing.T) {
	namespace := newNamespace(t)
	plan := aPlan(namespace)
	launcher := launch.New(api)
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
	}
	waitForDefaultAccount(t, namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "busy", Namespace: namespace, Labels: map[string]string{label.Run: plan.Run.ID}, Finalizers: []string{"example.com/busy"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "check", Image: image}}, AutomountServiceAccountToken: new(false)},
	}
	if _, err := api.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	removal, err := launcher.Cleanup(ctx, plan.Run.ID)
	want := []preflight.Object{{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "busy"}}
	if diff := cmp.Diff(want, removal.Left); diff != "" || err == nil {
		t.Errorf("error %v; left (-want, +got):\n%s", err, diff)
	}
	guards, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(t.Context(), metav1.ListOptions{
		LabelSelector: label.Run + "=" + plan.Run.ID,
	})
	if err != nil || len(guards.Items) != 1 {
		t.Errorf("%d guards, error %v; want that it is still there", len(guards.Items), err)
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := api.CoreV1().Pods(namespace).Patch(t.Context(), "busy", "application/merge-patch+json", release, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if removal, err := launcher.Cleanup(bounded(t), plan.Run.ID); err != nil {
		t.Errorf("left %v: %v", removal.Left, err)
	}
}

// allowed is a launcher of a user who may do what is needed and nothing else.
func allowed(t *testing.T, name string, needs access.Needs) *launch.Launcher {
	t.Helper()
	for _, object := range needs.Roles(name, []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}) {
		if err := createRBAC(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, err := range []error{
			api.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}),
			api.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate.UserName = name
	client, err := kubernetes.NewForConfig(impersonating)
	if err != nil {
		t.Fatal(err)
	}
	// The authorizer follows the roles.
	for ctx := bounded(t); ; {
		err := needs.Check(ctx, client.AuthorizationV1())
		if err == nil {
			return launch.New(client)
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
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

// What a plan says that it needs is enough for all that is done with it.
func TestWhatAPlanNeedsIsEnough(t *testing.T) {
	namespace := newNamespace(t)
	release := aFullRelease(namespace)
	drafted := planned(newRun(), release)
	launcher := allowed(t, "planner-of-"+namespace, launch.NewDraft("", release).Needs().And(launch.ListNeeds()).And(launch.GuardNeeds()))
	findings, plan := launcher.Validate(t.Context(), drafted)
	if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" {
		t.Fatalf("validation (-want, +got):\n%s", diff)
	}
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Errorf("guard: %+v", f)
	}
	create(t, launcher, plan)
	create(t, launcher, plan) // what is there already is looked at
	if removal, err := launcher.Cleanup(bounded(t), plan.Run.ID); err != nil || len(removal.Deleted) == 0 {
		t.Errorf("deleted %v, left %v: %v", removal.Deleted, removal.Left, err)
	}
}

// Nobody gives away what they do not have, and that is told before anything is.
func TestRightsThatTheUserDoesNotHold(t *testing.T) {
	namespace := newNamespace(t)
	release := aFullRelease(namespace)
	plan, needs := planned(newRun(), release), launch.NewDraft("", release).Needs()
	needs.Given = nil
	launcher := allowed(t, "stranger-of-"+namespace, needs)
	findings, _ := launcher.Validate(t.Context(), plan)
	if len(findings) != 1 || findings[0].Reason != "RightsNotHeld" {
		t.Fatalf("want one check that may not have its role, got %+v", findings)
	}
	if err := launch.Ungrantable(findings); err == nil {
		t.Error("it is not an error")
	}
	if err := launch.Ungrantable(nil); err != nil {
		t.Errorf("nothing is wrong, but %v", err)
	}
}

// Whoever may not look at guards cleans up all the same, and is told that there
// may be one.
func TestGuardsThatMayNotBeLookedAt(t *testing.T) {
	namespace := newNamespace(t)
	plan := aPlan(namespace)
	if f := launch.New(api).Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
	}
	t.Cleanup(func() {
		if removal, err := launch.New(api).Cleanup(context.Background(), plan.Run.ID); err != nil || len(removal.Deleted) != 2 {
			t.Errorf("deleted %v: %v", removal.Deleted, err)
		}
	})
	needs := launch.CleanupNeeds()
	needs.Optional = nil
	launcher := allowed(t, "cleaner-of-"+namespace, needs)
	removal, err := launcher.Cleanup(bounded(t), plan.Run.ID)
	want := launch.Removal{Unseen: []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}}
	if diff := cmp.Diff(want, removal); diff != "" || err != nil {
		t.Errorf("error %v (-want, +got):\n%s", err, diff)
	}
}

// The end of a run is often when maintenance begins: an API server that restarts
// must not be why something is left.
func TestCleanupInsists(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"LostBefore": faults.Lossy(faults.Before), "LostAfter": faults.Lossy(faults.After),
		"Unavailable": faults.Unavailable(3), "Busy": faults.Busy(3),
	} {
		t.Run(name, func(t *testing.T) {
			plan := aPlan(newNamespace(t))
			direct := launch.New(api)
			if f := direct.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
				t.Fatalf("guard: %+v", f)
			}
			proxy, err := faults.Start(config, fault)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			client := kubernetes.NewForConfigOrDie(&rest.Config{Host: proxy.URL, QPS: -1})
			removal, err := launch.New(client).Cleanup(bounded(t), plan.Run.ID)
			if diff := cmp.Diff(direct.Created(plan.Run.ID), removal.Deleted); diff != "" || err != nil {
				t.Errorf("error %v; want everything gone, though each request may be lost or refused (-want, +got):\n%s", err, diff)
			}
		})
	}
}
