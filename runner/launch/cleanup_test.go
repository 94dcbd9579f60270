package launch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/test/faults"
	"github.com/openshift/update-preflight/test/user"
)

// Tests of: runner/launch/cleanup

// The runner was killed when it had created only the guard.
func TestCleanupDeletesGuardOfKilledRun(t *testing.T) {
	plan := aPlan(newNamespace(t))
	killed := newLauncher(t, config)
	if f := killed.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
	}
	runs, err := cleanup.Runs(t.Context(), newLauncher(t, config).objects)
	if elsewhere, found := runs[plan.Run.ID]; err != nil || !found || elsewhere {
		t.Errorf("runs %v, error %v; want the killed run", runs, err)
	}
	removal, err := newLauncher(t, config).Cleanup(bounded(t), plan.Run.ID)
	if diff := cmp.Diff(cleanup.Removal{Deleted: killed.Created(plan.Run.ID)}, removal); diff != "" || err != nil ||
		len(removal.Deleted) != 4 {
		t.Errorf("error %v; want policies and bindings deleted (-want, +got):\n%s", err, diff)
	}
}

// The guard must exist as long as a pod of the run may run.
func TestGuardIsDeletedLast(t *testing.T) {
	namespace := newNamespace(t)
	plan := aPlan(namespace)
	launcher := newLauncher(t, config)
	waitForDefaultAccount(t, namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "busy-" + plan.Run.Suffix() + "-abcde", Namespace: namespace, Labels: map[string]string{label.Run: plan.Run.ID},
			Finalizers: []string{"example.com/busy"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "check", Image: releasetest.Image}}, AutomountServiceAccountToken: new(false)},
	}
	if _, err := api.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v", f)
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
	if err != nil || len(guards.Items) != 2 {
		t.Errorf("%d guards, error %v; want the guard to exist", len(guards.Items), err)
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := api.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, "application/merge-patch+json", release,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if removal, err := launcher.Cleanup(bounded(t), plan.Run.ID); err != nil {
		t.Errorf("left %v: %v", removal.Left, err)
	}
}

// Only a pod whose containers have all terminated is deleted without its grace period. No
// kubelet confirms the deletion of the others here, so that they are left.
func TestOnlyEndedPodsAreDeletedAtOnce(t *testing.T) {
	t.Parallel()
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	for name, tc := range map[string]struct {
		reason string
		policy corev1.RestartPolicy
		states []corev1.ContainerState
		left   bool
	}{
		"Ended": {reason: "both containers have ended", policy: corev1.RestartPolicyNever, states: []corev1.ContainerState{ended, failed}},
		"EndedOnce": {
			reason: "both containers have ended, and are not restarted after exit code 0", policy: corev1.RestartPolicyOnFailure,
			states: []corev1.ContainerState{ended, ended},
		},
		"Restarted": {
			reason: "the kubelet restarts a container that failed", policy: corev1.RestartPolicyOnFailure,
			states: []corev1.ContainerState{ended, failed}, left: true,
		},
		"Running": {reason: "a sidecar runs", policy: corev1.RestartPolicyNever, states: []corev1.ContainerState{ended, running}, left: true},
		"NotReported": {
			reason: "the end of one container was not reported", policy: corev1.RestartPolicyNever,
			states: []corev1.ContainerState{ended}, left: true,
		},
		"Unknown": {reason: "nothing was reported", policy: corev1.RestartPolicyNever, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := aPlan(newNamespace(t))
			pod := boundPod(t, plan, tc.policy, tc.states)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			removal, err := newLauncher(t, config).Cleanup(ctx, plan.Run.ID)
			if left := len(removal.Left) > 0; left != tc.left || (err != nil) != tc.left {
				t.Errorf("%s: left %v, error %v; want left %t", tc.reason, removal.Left, err, tc.left)
			}
			if err := api.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name,
				metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
}

// boundPod is a pod of a run with two containers, on a node without a kubelet.
func boundPod(t *testing.T, plan jobplan.Plan, policy corev1.RestartPolicy, states []corev1.ContainerState) *corev1.Pod {
	t.Helper()
	namespace := plan.Checks[0].Job.Namespace
	waitForDefaultAccount(t, namespace)
	pod, err := api.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "check-" + plan.Run.Suffix() + "-abcde", Namespace: namespace,
			Labels: map[string]string{label.Run: plan.Run.ID},
		},
		Spec: corev1.PodSpec{
			NodeName: "gone", RestartPolicy: policy, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "check", Image: releasetest.Image}, {Name: "sidecar", Image: releasetest.Image}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	for i, state := range states {
		name := pod.Spec.Containers[i].Name
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: name, Image: releasetest.Image, State: state})
	}
	if pod, err = api.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return pod
}

// allowed returns a launcher of a user with exactly these permissions.
func allowed(t *testing.T, needs access.Needs) *process {
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
	drafted := releasetest.Plan(newRun(), release)
	launcher := allowed(t, jobplan.New("", release).Needs().And(cleanup.ListNeeds()).And(writeguard.Needs()))
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
	plan, needs := releasetest.Plan(newRun(), release), jobplan.New("", release).Needs()
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
		if removal, err := newLauncher(t, config).Cleanup(context.Background(), plan.Run.ID); err != nil || len(removal.Deleted) != 4 {
			t.Errorf("deleted %v: %v", removal.Deleted, err)
		}
	})
	needs := cleanup.Needs()
	needs.Optional = nil
	launcher := allowed(t, needs)
	removal, err := launcher.Cleanup(bounded(t), plan.Run.ID)
	want := cleanup.Removal{Unseen: []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}}
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

// Who may change objects can remove their label: a run deletes what it created all the same.
func TestCleanupDeletesObjectsWithoutTheirLabel(t *testing.T) {
	launcher := newLauncher(t, config)
	plan := launcher.CopyAccounts(t.Context(), aPlan(newNamespace(t)))
	create(t, launcher, plan)
	namespace, job := plan.Checks[0].Job.Namespace, plan.Checks[0].Job.Name
	account := plan.Checks[0].Account().Name
	unlabelled := []byte(`{"metadata":{"labels":null}}`)
	if _, err := api.CoreV1().ServiceAccounts(namespace).Patch(t.Context(), account, types.MergePatchType, unlabelled,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.BatchV1().Jobs(namespace).Patch(t.Context(), job, types.MergePatchType, unlabelled, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if removal, err := launcher.Cleanup(bounded(t), plan.Run.ID); err != nil {
		t.Fatalf("left %v: %v", removal.Left, err)
	}
	if _, err := api.CoreV1().ServiceAccounts(namespace).Get(t.Context(), account, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ServiceAccount: %v, want it deleted", err)
	}
	if found, err := api.BatchV1().Jobs(namespace).Get(t.Context(), job, metav1.GetOptions{}); !apierrors.IsNotFound(err) &&
		found.DeletionTimestamp == nil {
		t.Errorf("the Job: %v, want it deleted", err)
	}
}
