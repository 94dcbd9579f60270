package launch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// newRun returns a run with a unique ID.
func newRun() jobplan.Run {
	run := releasetest.Run()
	run.ID = uuid.NewString()
	return run
}

// newNamespace creates a namespace, which is deleted after the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "launch-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return namespace.Name
}

// aFullRelease has two Jobs, one of them with a ServiceAccount and its roles. The other
// one runs as a temporary copy of the default ServiceAccount.
func aFullRelease(namespace string) *payload.Release {
	release := releasetest.Release(
		releasetest.Job(func(job *batchv1.Job) {
			job.Namespace = namespace
			job.Spec.Template.Spec.ServiceAccountName = "checker"
			job.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
			}
		}),
		releasetest.Job(func(job *batchv1.Job) { job.Namespace, job.Name = namespace, "plain" }),
	)
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	local := func(object payload.Object) payload.Object {
		object.SetNamespace(namespace)
		return object
	}
	checker := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "checker"}
	release.Supporting = releasetest.Supporting(
		local(releasetest.Account("checker")), local(releasetest.Role(pods)), local(releasetest.Binding("Role", "reader", checker)),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-reading"}, Rules: []rbacv1.PolicyRule{pods}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster-reading"}, Subjects: []rbacv1.Subject{checker},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-reading"},
		},
	)
	return release
}

func TestCleanupDeletesAllObjects(t *testing.T) {
	namespace := newNamespace(t)
	launcher := newLauncher(t, config)
	run, other := newRun(), newRun()
	ids := []string{run.ID, other.ID}
	plan := releasetest.Plan(run, aFullRelease(namespace))
	foreign := launcher.CopyAccounts(t.Context(), releasetest.Plan(other, aFullRelease(namespace)))

	findings, plan := launcher.Validate(t.Context(), plan)
	if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" || len(plan.Checks) != 2 {
		t.Fatalf("a valid plan is rejected (-want, +got):\n%s", diff)
	}
	if got := residue(t, run.ID); len(got) > 0 {
		t.Fatalf("validation left %v", got)
	}
	for _, p := range []jobplan.Plan{plan, foreign} {
		create(t, launcher, p)
	}
	if got := residue(t, run.ID); len(got) != 9 {
		t.Errorf("want two Jobs and seven supporting objects, got %v", got)
	}
	for i, id := range ids {
		created := launcher.Created(id)
		removal, err := launcher.Cleanup(bounded(t), id)
		if err != nil || len(removal.Left) > 0 {
			t.Errorf("clean-up left %v: %v", removal.Left, err)
		}
		if diff := cmp.Diff(created, slices.DeleteFunc(removal.Deleted, isPod)); diff != "" || len(created) != 9 {
			t.Errorf("deleted objects differ from created ones (-created, +deleted):\n%s", diff)
		}
		if got := residue(t, id); len(got) > 0 {
			t.Errorf("clean-up reported no error, but these objects exist: %v", got)
		}
		if i == 0 && len(residue(t, other.ID)) == 0 {
			t.Error("clean-up of one run deleted objects of the other")
		}
	}
}

func isPod(object preflight.Object) bool { return object.Kind == "Pod" }

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func create(t *testing.T, launcher *process, plan jobplan.Plan) {
	t.Helper()
	if err := launcher.Prepare(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	for _, check := range plan.Checks {
		if err := launcher.Start(t.Context(), check); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if left, err := launcher.Cleanup(ctx, plan.Run.ID); err != nil {
			t.Errorf("clean-up left %v: %v", left, err)
		}
	})
}

// residue returns the kinds of the existing objects of a run, without pods.
func residue(t *testing.T, id string) []string {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: label.Run + "=" + id}
	var names []string
	note := func(kind string, items int, err error) {
		if err != nil {
			t.Fatal(err)
		}
		for range items {
			names = append(names, kind)
		}
	}
	jobs, err := api.BatchV1().Jobs("").List(t.Context(), options)
	note("Job", len(jobs.Items), err)
	accounts, err := api.CoreV1().ServiceAccounts("").List(t.Context(), options)
	note("ServiceAccount", len(accounts.Items), err)
	maps, err := api.CoreV1().ConfigMaps("").List(t.Context(), options)
	note("ConfigMap", len(maps.Items), err)
	roles, err := api.RbacV1().Roles("").List(t.Context(), options)
	note("Role", len(roles.Items), err)
	bindings, err := api.RbacV1().RoleBindings("").List(t.Context(), options)
	note("RoleBinding", len(bindings.Items), err)
	clusterRoles, err := api.RbacV1().ClusterRoles().List(t.Context(), options)
	note("ClusterRole", len(clusterRoles.Items), err)
	clusterBindings, err := api.RbacV1().ClusterRoleBindings().List(t.Context(), options)
	note("ClusterRoleBinding", len(clusterBindings.Items), err)
	return names
}

func TestCleanupDeletesPodsWithoutJob(t *testing.T) {
	namespace, run := newNamespace(t), newRun()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "orphan-" + run.Suffix() + "-abcde", Namespace: namespace,
			Labels: map[string]string{label.Run: run.ID},
		},
		Spec: corev1.PodSpec{
			Containers:                   []corev1.Container{{Name: "check", Image: releasetest.Image}},
			AutomountServiceAccountToken: new(false),
		},
	}
	waitForDefaultAccount(t, namespace)
	if _, err := api.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if left, err := newLauncher(t, config).Cleanup(bounded(t), run.ID); err != nil {
		t.Errorf("clean-up left %v: %v", left, err)
	}
	pods, err := api.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("the pod still exists: %v", err)
	}
}

// waitForDefaultAccount waits for the ServiceAccount that pods require.
func waitForDefaultAccount(t *testing.T, namespace string) {
	t.Helper()
	watch, err := api.CoreV1().ServiceAccounts(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	select {
	case <-watch.ResultChan():
	case <-bounded(t).Done():
		t.Fatal("the namespace has no default ServiceAccount")
	}
}

func TestCleanupReturnsRemainingObjects(t *testing.T) {
	namespace, run := newNamespace(t), newRun()
	stuck := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "stuck-" + run.Suffix(), Namespace: namespace, Labels: map[string]string{label.Run: run.ID},
		Finalizers: []string{"example.com/stuck"},
	}}
	if _, err := api.CoreV1().ConfigMaps(namespace).Create(t.Context(), stuck, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := api.CoreV1().ConfigMaps(namespace).Patch(context.Background(), stuck.Name, "application/merge-patch+json", patch,
			metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	removal, err := newLauncher(t, config).Cleanup(ctx, run.ID)
	want := []preflight.Object{{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: stuck.Name}}
	if diff := cmp.Diff(cleanup.Removal{Left: want}, removal); diff != "" || err == nil {
		t.Errorf("an object with a finalizer is not reported (-want, +got), error %v:\n%s", err, diff)
	}
	for _, want := range []string{stuck.Name, "example.com/stuck"} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestCleanupRequiresID(t *testing.T) {
	if _, err := newLauncher(t, config).Cleanup(t.Context(), ""); err == nil {
		t.Error("want an error without an ID")
	}
}

func TestValidateRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		prepare    func(t *testing.T, namespace string) jobplan.Plan
		wantReason string
		wantInText string
		wantRemedy string
	}{
		"NamespaceMissing": {
			reason: "a preflight creates no namespaces",
			prepare: func(_ *testing.T, _ string) jobplan.Plan {
				return releasetest.Plan(newRun(), aFullRelease("not-there"))
			},
			wantReason: "NamespaceMissing", wantInText: `namespaces "not-there" not found`, wantRemedy: "oc create namespace not-there",
		},
		"NamespaceTerminating": {
			reason: "a terminating namespace accepts no objects",
			prepare: func(t *testing.T, namespace string) jobplan.Plan {
				t.Helper()
				terminate(t, namespace)
				return releasetest.Plan(newRun(), aFullRelease(namespace))
			},
			wantReason: "NamespaceTerminating", wantInText: "because it is being terminated", wantRemedy: "oc get namespace",
		},
		"Quota": {
			reason: "the quota is used up",
			prepare: func(t *testing.T, namespace string) jobplan.Plan {
				t.Helper()
				fill(t, namespace)
				return releasetest.Plan(newRun(), aFullRelease(namespace))
			},
			wantReason: "QuotaExceeded", wantInText: "exceeded quota: full", wantRemedy: "describe quota",
		},
		"ServiceAccountMissing": {
			reason: "a ServiceAccount that is not in the release must exist",
			prepare: func(_ *testing.T, namespace string) jobplan.Plan {
				release := aFullRelease(namespace)
				release.Supporting = nil
				for _, manifest := range release.Jobs {
					manifest.Job.Spec.Template.Spec.ServiceAccountName = "absent"
				}
				return releasetest.Plan(newRun(), release)
			},
			wantReason: "ServiceAccountMissing", wantInText: `serviceaccounts "absent" not found`, wantRemedy: "get serviceaccounts",
		},
		"Invalid": {
			reason: "the API server validates the Job",
			prepare: func(_ *testing.T, namespace string) jobplan.Plan {
				release := aFullRelease(namespace)
				for _, manifest := range release.Jobs {
					manifest.Job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
				}
				return releasetest.Plan(newRun(), release)
			},
			wantReason: "InvalidManifest", wantInText: "restartPolicy", wantRemedy: "Report it",
		},
		"UnknownKind": {
			reason: "an object of an unknown kind cannot be created",
			prepare: func(_ *testing.T, namespace string) jobplan.Plan {
				plan := releasetest.Plan(newRun(), aFullRelease(namespace))
				for i := range plan.Checks {
					plan.Checks[i].Job.Kind = "Pet"
				}
				return plan
			},
			wantReason: "NotStarted", wantInText: `"Pet"`, wantRemedy: "Fix the problem",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := tc.prepare(t, newNamespace(t))
			findings, valid := newLauncher(t, config).Validate(t.Context(), plan)
			if len(valid.Checks) > 0 || len(valid.Supporting) > 0 || len(findings) != len(plan.Checks) || len(findings) == 0 {
				t.Fatalf("%s: want a finding for each of %d checks and nothing to run, got %d checks, %d objects and findings %+v",
					tc.reason, len(plan.Checks), len(valid.Checks), len(valid.Supporting), findings)
			}
			for _, f := range findings {
				if f.Outcome != preflight.Unknown || !f.Blocks || f.Reason != tc.wantReason {
					t.Errorf("%s: want Unknown(%s), got %s(%s): %s", tc.reason, tc.wantReason, f.Outcome, f.Reason, f.Message)
				}
				if !strings.Contains(f.Message, tc.wantInText) {
					t.Errorf("%s: the message lacks %q: %q", tc.reason, tc.wantInText, f.Message)
				}
				if !strings.Contains(remedyOf(f), tc.wantRemedy) {
					t.Errorf("%s: the remedy lacks %q: %q", tc.reason, tc.wantRemedy, remedyOf(f))
				}
			}
		})
	}
}

// terminate deletes a namespace that a finalizer keeps.
func terminate(t *testing.T, namespace string) {
	t.Helper()
	holder := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "holder", Namespace: namespace, Finalizers: []string{"example.com/held"}}}
	if _, err := api.CoreV1().ConfigMaps(namespace).Create(t.Context(), holder, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := api.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := api.CoreV1().ConfigMaps(namespace).Patch(context.Background(), "holder", "application/merge-patch+json", patch,
			metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// fill creates a quota that is used up.
func fill(t *testing.T, namespace string) {
	t.Helper()
	jobs := corev1.ResourceName("count/jobs.batch")
	watch, err := api.CoreV1().ResourceQuotas(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	full := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{jobs: resource.MustParse("0")}},
	}
	if _, err := api.CoreV1().ResourceQuotas(namespace).Create(t.Context(), full, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Admission uses the status of the quota, which the quota controller writes.
	for event := range watch.ResultChan() {
		if quota, ok := event.Object.(*corev1.ResourceQuota); ok && len(quota.Status.Hard) > 0 {
			awaitRejection(t, namespace)
			return
		}
	}
	t.Fatal("the quota has no status")
}

// awaitRejection returns when the API server rejects further Jobs.
func awaitRejection(t *testing.T, namespace string) {
	t.Helper()
	probe := releasetest.Job(func(job *batchv1.Job) { job.Namespace = namespace })
	probe.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	ctx := bounded(t)
	for {
		_, err := api.BatchV1().Jobs(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestValidateKeepsValidChecks(t *testing.T) {
	namespace := newNamespace(t)
	release := aFullRelease(namespace)
	release.Jobs[1].Job.Namespace = "not-there"
	findings, valid := newLauncher(t, config).Validate(t.Context(), releasetest.Plan(newRun(), release))
	if len(findings) != 1 || findings[0].Name != "Etcd.Plain" {
		t.Errorf("want one finding for the check that cannot be created, got %+v", findings)
	}
	if len(valid.Checks) != 1 || valid.Checks[0].Name != "Etcd.EtcdPreflight" || len(valid.Supporting) != 6 {
		t.Errorf("want the other check with all supporting objects, got %d checks and %d objects", len(valid.Checks), len(valid.Supporting))
	}
}

// checksOf are the permissions to create checks in a namespace.
func checksOf(namespace string) access.Needs {
	return access.Needs{Required: slices.Concat(
		access.Verbs(access.Request{Group: "batch", Resource: "jobs", Namespace: namespace}, "create"),
		access.Verbs(access.Request{Resource: "serviceaccounts", Namespace: namespace}, "create", "get"),
	)}
}

func ignore[T any](_ T, err error) error { return err }

func TestMissingPermission(t *testing.T) {
	namespace := newNamespace(t)
	findings, valid := allowed(t, access.Needs{}).Validate(t.Context(), releasetest.Plan(newRun(), aFullRelease(namespace)))
	if len(valid.Checks) > 0 || len(findings) != 2 {
		t.Fatalf("want two findings, got %+v", findings)
	}
	for _, f := range findings {
		if f.Reason != "Forbidden" || !strings.Contains(f.Message, "cannot create resource") {
			t.Errorf("want the missing permission, got %s: %s", f.Reason, f.Message)
		}
	}
}

func TestPrepareReportsAllErrors(t *testing.T) {
	namespace := newNamespace(t)
	err := allowed(t, access.Needs{}).Prepare(t.Context(), releasetest.Plan(newRun(), aFullRelease(namespace)))
	for _, want := range []string{"ServiceAccount", "ConfigMap", "Role", "ClusterRoleBinding"} {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("could not create %s ", want)) {
			t.Errorf("the %s is missing in the error: %v", want, err)
		}
	}
}

func TestStartAdoptsJobOfRun(t *testing.T) {
	namespace := newNamespace(t)
	launcher := newLauncher(t, config)
	plan := releasetest.Plan(newRun(), aFullRelease(namespace))
	create(t, launcher, plan)
	before, err := api.BatchV1().Jobs(namespace).Get(t.Context(), plan.Checks[1].Job.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, launcher, plan)
	after, err := api.BatchV1().Jobs(namespace).Get(t.Context(), plan.Checks[1].Job.Name, metav1.GetOptions{})
	if err != nil || before.UID != after.UID {
		t.Errorf("the Job of a killed runner was not adopted: %v", err)
	}
}

func TestStartRejectsForeignJob(t *testing.T) {
	namespace := newNamespace(t)
	launcher := newLauncher(t, config)
	plan := releasetest.Plan(newRun(), aFullRelease(namespace))
	check := plan.Checks[1]
	foreign := check.Job.DeepCopy()
	foreign.Labels[label.Run] = "another"
	if _, err := api.BatchV1().Jobs(namespace).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := launcher.Start(t.Context(), check)
	if err == nil {
		t.Fatal("want an error for a Job of another run")
	}
	if f := launch.Explain(check, err); f.Reason != "ForeignObject" ||
		!strings.Contains(f.Message, "does not belong to this run: metadata.labels") {
		t.Errorf("want the cause, got %+v", f)
	}
}

func TestStartStopsWithContext(t *testing.T) {
	unreachable := rest.CopyConfig(config)
	unreachable.Host = "https://127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	check := releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(nil))).Checks[0]
	err := newLauncher(t, unreachable).Start(ctx, check)
	if f := launch.Explain(check, err); f.Reason != "APIUnavailable" {
		t.Errorf("want APIUnavailable, got %+v", f)
	}
}

// remedyOf is the remedy of a finding with its commands.
func remedyOf(f finding.Finding) string {
	text := f.Remediation
	for _, action := range f.Actions {
		text += "; " + action.Command
	}
	return text
}
