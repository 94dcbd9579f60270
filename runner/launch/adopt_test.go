package launch_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// put creates an object of a supporting kind, or a Job.
func put(t *testing.T, object payload.Object) {
	t.Helper()
	ctx, namespace := t.Context(), object.GetNamespace()
	var err error
	switch object := object.(type) {
	case *batchv1.Job:
		err = ignore(api.BatchV1().Jobs(namespace).Create(ctx, object, metav1.CreateOptions{}))
	case *corev1.ServiceAccount:
		err = ignore(api.CoreV1().ServiceAccounts(namespace).Create(ctx, object, metav1.CreateOptions{}))
	case *corev1.ConfigMap:
		err = ignore(api.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}))
	default:
		err = createRBAC(ctx, object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// forgeries change one object of a plan for aFullRelease.
func forgeries() map[string]struct {
	reason string
	forge  func(object payload.Object) bool
	differ string
} {
	ofPlain := func(change func(job *batchv1.Job)) func(payload.Object) bool {
		return func(object payload.Object) bool {
			job, ok := object.(*batchv1.Job)
			if ok && strings.HasPrefix(job.Name, "plain-") {
				change(job)
				return true
			}
			return false
		}
	}
	container := func(change func(*corev1.Container)) func(payload.Object) bool {
		return ofPlain(func(job *batchv1.Job) { change(&job.Spec.Template.Spec.Containers[0]) })
	}
	type row = struct {
		reason string
		forge  func(object payload.Object) bool
		differ string
	}
	const main = "spec.template.spec.containers[0]"
	return map[string]row{
		"Command": {
			"another program would report the result", container(func(c *corev1.Container) { c.Command = []string{"/bin/true"} }),
			main + ".command[0]",
		},
		"Args": {"arguments may select another program", container(func(c *corev1.Container) { c.Args = []string{"--help"} }), main + ".args"},
		"Image": {
			"another image would report the result", container(func(c *corev1.Container) { c.Image = "quay.io/other:latest" }),
			main + ".image",
		},
		"Env": {"LD_PRELOAD replaces functions of the program", container(func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/x.so"})
		}), main + ".env"},
		"Mount": {"a mounted file replaces the program", ofPlain(func(job *batchv1.Job) {
			spec := &job.Spec.Template.Spec
			spec.Volumes = []corev1.Volume{{Name: "x", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/bin"}}
		}), main + ".volumeMounts"},
		"TerminationMessage": {
			"a file of the image would be the result",
			container(func(c *corev1.Container) { c.TerminationMessagePath = "/etc/forged" }), main + ".terminationMessagePath",
		},
		"Sidecar": {"another container shares the network of the check", ofPlain(func(job *batchv1.Job) {
			spec := &job.Spec.Template.Spec
			spec.Containers = append(spec.Containers, corev1.Container{Name: "x", Image: releasetest.Image})
		}), "spec.template.spec.containers is "},
		"Account": {
			"another identity reads something else",
			ofPlain(func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "other" }), "spec.template.spec.serviceAccountName",
		},
		"NoPods": {
			"a Job without completions is complete at once", ofPlain(func(job *batchv1.Job) { job.Spec.Completions = new(int32(0)) }),
			"spec.completions",
		},
		"Suspended": {"the Job never starts", ofPlain(func(job *batchv1.Job) { job.Spec.Suspend = new(true) }), "spec.suspend"},
		"Template": {
			"the labels of the pods select them", ofPlain(func(job *batchv1.Job) { job.Spec.Template.Labels["app"] = "router" }),
			"spec.template.metadata.labels.app",
		},
		"Finalizer": {
			"the Job cannot be deleted", ofPlain(func(job *batchv1.Job) { job.Finalizers = []string{"example.com/held"} }),
			"metadata.finalizers",
		},
		"CheckOfName": {
			"the Job is that of another check",
			ofPlain(func(job *batchv1.Job) { job.Annotations[label.AnnotationCheck] = "Etcd.Other" }), "metadata.annotations",
		},
		"Role": {"the check may read Secrets", func(object payload.Object) bool {
			role, ok := object.(*rbacv1.Role)
			if ok {
				role.Rules[0].Resources = []string{"secrets"}
			}
			return ok
		}, "rules[0].resources[0]"},
		"ClusterRole": {"the rules are those of another role", func(object payload.Object) bool {
			role, ok := object.(*rbacv1.ClusterRole)
			if ok {
				role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"x": "y"}}}}
			}
			return ok
		}, "aggregationRule"},
		"AggregatedRole": {"the role view gets the rules", func(object payload.Object) bool {
			role, ok := object.(*rbacv1.ClusterRole)
			if ok {
				role.Labels["rbac.authorization.k8s.io/aggregate-to-view"] = "true"
			}
			return ok
		}, "metadata.labels.rbac.authorization.k8s.io/aggregate-to-view"},
		"Binding": {"the check gets the rights of another role", func(object payload.Object) bool {
			binding, ok := object.(*rbacv1.RoleBinding)
			if ok {
				binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}
			}
			return ok
		}, "roleRef.kind"},
		"Subjects": {"another account gets the rights of the check", func(object payload.Object) bool {
			binding, ok := object.(*rbacv1.ClusterRoleBinding)
			if ok {
				binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "attacker"})
			}
			return ok
		}, "subjects is "},
		"ServiceAccount": {"the check has no token", func(object payload.Object) bool {
			account, ok := object.(*corev1.ServiceAccount)
			if ok {
				account.AutomountServiceAccountToken = new(false)
			}
			return ok
		}, "automountServiceAccountToken"},
		"ConfigMap": {"the check reads other settings", func(object payload.Object) bool {
			settings, ok := object.(*corev1.ConfigMap)
			if ok {
				settings.Data = map[string]string{"skip": "all"}
			}
			return ok
		}, "data is "},
	}
}

// objectsOf are the objects of a plan that a forgery may change.
func objectsOf(plan jobplan.Plan) []payload.Object {
	objects := slices.Clone(plan.Supporting)
	for _, check := range plan.Checks {
		objects = append(objects, check.Job)
	}
	return objects
}

// An object of a planned name that another client created must not be adopted, by a
// first runner nor by one that takes over, and a clean-up of this runner must not
// delete it.
func TestForeignObjectsAreNotAdopted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for name, tc := range forgeries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := releasetest.Plan(newRun(), aFullRelease(namespace))
			forged := forge(t, plan, tc.forge)
			t.Cleanup(func() {
				release := []byte(`{"metadata":{"finalizers":null}}`)
				_, err := api.BatchV1().Jobs(namespace).Patch(context.Background(), forged.GetName(), "application/merge-patch+json", release,
					metav1.PatchOptions{})
				if err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
				if removal, err := newLauncher(t, config).Cleanup(context.Background(), plan.Run.ID); err != nil {
					t.Errorf("left %v: %v", removal.Left, err)
				}
			})
			launcher := newLauncher(t, config)
			if err := launcher.Resume(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			findings, valid := launcher.Validate(t.Context(), plan)
			if len(findings) == 0 || len(valid.Checks)+len(findings) != len(plan.Checks) {
				t.Fatalf("%s, but it is adopted: %d checks, findings %+v", tc.reason, len(valid.Checks), findings)
			}
			for _, f := range findings {
				if f.Outcome != preflight.Unknown || !f.Blocks || f.Reason != "ForeignObject" || !strings.Contains(f.Message, tc.differ) {
					t.Errorf("%s: want Unknown(ForeignObject) with %q, got %s(%s): %s", tc.reason, tc.differ, f.Outcome, f.Reason, f.Message)
				}
				if !strings.Contains(remedyOf(f), "delete") || !strings.Contains(remedyOf(f), forged.GetName()) {
					t.Errorf("%s: the remedy does not delete %s: %s", tc.reason, forged.GetName(), remedyOf(f))
				}
			}
			for _, check := range plan.Checks {
				if check.Job.Name != forged.GetName() {
					continue
				}
				f := launch.Explain(check, launcher.Start(t.Context(), check))
				if f.Reason != "ForeignObject" || launcher.UID(check) != "" {
					t.Errorf("%s: Start returns %s, UID %q", tc.reason, f.Reason, launcher.UID(check))
				}
			}
			removal, err := launcher.Cleanup(bounded(t), plan.Run.ID)
			if err != nil || len(removal.Foreign) == 0 || removal.Foreign[0].Name != forged.GetName() {
				t.Errorf("%s: the object was changed or deleted: %+v, %v", tc.reason, removal, err)
			}
		})
	}
}

// forge creates the first object of the plan that the forgery changes.
func forge(t *testing.T, plan jobplan.Plan, change func(payload.Object) bool) payload.Object {
	t.Helper()
	for _, object := range objectsOf(plan) {
		copied, ok := object.DeepCopyObject().(payload.Object)
		if ok && change(copied) {
			put(t, copied)
			return copied
		}
	}
	t.Fatal("no object is forged")
	return nil
}

// aRichJob has many of the fields for which the API server has defaults.
func aRichJob(namespace string) *batchv1.Job {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}}
	return releasetest.Job(func(job *batchv1.Job) {
		job.Namespace, job.Name = namespace, "rich"
		spec := &job.Spec.Template.Spec
		spec.InitContainers = []corev1.Container{{Name: "first", Image: releasetest.Image}}
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		spec.Volumes = []corev1.Volume{
			{
				Name:         "settings",
				VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "any"}}},
			},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			}}}},
		}
		container := &spec.Containers[0]
		container.Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
		container.ReadinessProbe = probe
		container.Resources.Limits = corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("1024Mi"),
			corev1.ResourceCPU:    resource.MustParse("1000m"),
		}
		container.Env = []corev1.EnvVar{
			{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
			{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
		}
	})
}

// Defaults of the API server are not differences. The quota rejects the dry run by
// which other differences would be explained.
func TestDefaultsAreNotDifferences(t *testing.T) {
	namespace := newNamespace(t)
	plan := releasetest.Plan(newRun(), releasetest.Release(aRichJob(namespace)))
	create(t, newLauncher(t, config), plan)
	fillWith(t, namespace, 1)
	launcher := newLauncher(t, config)
	if err := launcher.Start(t.Context(), plan.Checks[0]); err != nil {
		t.Error(err)
	}
	created, err := api.BatchV1().Jobs(namespace).Get(t.Context(), plan.Checks[0].Job.Name, metav1.GetOptions{})
	if err != nil || launcher.UID(plan.Checks[0]) != created.UID {
		t.Errorf("UID %q, want that of the Job: %v", launcher.UID(plan.Checks[0]), err)
	}
}

// mutate makes the API server change the Jobs of a namespace with a JSON patch, and
// waits until it does.
func mutate(t *testing.T, namespace, patch string) {
	t.Helper()
	name := "mutate-" + namespace
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"jobs"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "namespace", Expression: "request.namespace == '" + namespace + "'"}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{
					Expression: `[JSONPatch{op: "add", path: "/metadata/annotations/mutated", value: "true"}, ` + patch + "]",
				},
			}},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			FailurePolicy:      new(admissionregistrationv1.Fail),
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	admission := api.AdmissionregistrationV1()
	if _, err := admission.MutatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admission.MutatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if _, err := admission.MutatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admission.MutatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	probe := releasetest.Job(func(job *batchv1.Job) {
		job.Namespace, job.Spec.Template.Spec.RestartPolicy = namespace, corev1.RestartPolicyNever
	})
	for ctx := bounded(t); ; {
		admitted, err := api.BatchV1().Jobs(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err != nil:
			t.Fatal(err)
		case admitted.Annotations["mutated"] != "":
			return
		}
	}
}

// A check that admission changes must not run as if it were that of the release, and
// one that admission only supplements runs, also after a takeover.
func TestAttacksByAdmissionOfJobs(t *testing.T) {
	t.Parallel()
	const container = "/spec/template/spec/containers/0"
	for name, tc := range map[string]struct {
		reason, patch string
		// differs is empty where the Job is accepted.
		differs string
	}{
		"Command": {
			"another program would report the result", `JSONPatch{op: "replace", path: "` + container + `/command", value: ["/bin/true"]}`,
			`containers["check"].command[0] is "/bin/true"`,
		},
		"Image": {
			"another image would report the result", `JSONPatch{op: "replace", path: "` + container + `/image", value: "quay.io/other:latest"}`,
			`containers["check"].image is "quay.io/other:latest"`,
		},
		"Account": {
			"the check reads as another account", `JSONPatch{op: "add", path: "/spec/template/spec/serviceAccountName", value: "other"}`,
			"serviceAccountName",
		},
		"Label": {
			"a Job without the label of the run is not deleted with it", `JSONPatch{op: "replace", path: "/metadata/labels", value: {"a": "b"}}`,
			"metadata.labels",
		},
		"Name": {
			"the Job is that of another check",
			`JSONPatch{op: "replace", path: "/metadata/annotations/preflight.openshift.io~1check", value: "Etcd.Other"}`,
			"metadata.annotations.preflight.openshift.io/check",
		},
		"Mount": {
			"a ConfigMap is the program", `JSONPatch{op: "add", path: "/spec/template/spec/volumes", value: [Object.spec.template.spec.volumes{
				name: "x", configMap: Object.spec.template.spec.volumes.configMap{name: "y"}}]},
				JSONPatch{op: "add", path: "` + container +
				`/volumeMounts", value: [Object.spec.template.spec.containers.volumeMounts{name: "x", mountPath: "/bin"}]}`,
			"volumeMounts",
		},
		"NoPods": {
			"a Job without completions is complete at once", `JSONPatch{op: "replace", path: "/spec/completions", value: 0}`,
			"spec.completions",
		},
		"Controller": {
			"another controller reports the result", `JSONPatch{op: "add", path: "/spec/managedBy", value: "example.com/attack"}`,
			"spec.managedBy",
		},
		"Retries": {
			"a check that failed is repeated until it passes", `JSONPatch{op: "replace", path: "/spec/backoffLimit", value: 100}`,
			"spec.backoffLimit",
		},
		"Template": {
			"the pods are not those of the run", `JSONPatch{op: "add", path: "/spec/template/metadata/labels", value: {"a": "b"}}`,
			"spec.template.metadata.labels",
		},
		"Runtime": {
			"a device of the node, with files of the node",
			`JSONPatch{op: "add", path: "/spec/template/metadata/annotations", value: {"cdi.k8s.io/x": "example.com/device=all"}}`,
			"spec.template.metadata.annotations.cdi.k8s.io/x",
		},
		"Queue": {
			"a controller of queues starts the Job later", `JSONPatch{op: "replace", path: "/spec/suspend", value: true}`,
			"",
		},
		"TTL": {
			"a finished Job is deleted early", `JSONPatch{op: "replace", path: "/spec/ttlSecondsAfterFinished", value: 600}`,
			"",
		},
		"Mirror": {
			"the same digest is the same image", `JSONPatch{op: "replace", path: "` + container + `/image", value: "mirror.example.com/` +
				releasetest.Image[strings.LastIndex(releasetest.Image, "/")+1:] + `"}`,
			"",
		},
		"Sidecar": {
			"another container does not change the check",
			`JSONPatch{op: "add", path: "/spec/template/spec/containers/-", value: {"name": "proxy", "image": "quay.io/proxy:latest"}}`,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			mutate(t, namespace, tc.patch)
			plan := releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) { job.Namespace = namespace })))
			launcher := newLauncher(t, config)
			findings, _ := launcher.Validate(t.Context(), plan)
			started := launcher.Start(t.Context(), plan.Checks[0])
			t.Cleanup(func() {
				if removal, err := launcher.Cleanup(context.Background(), plan.Run.ID); err != nil {
					t.Errorf("left %v: %v", removal.Left, err)
				}
			})
			if tc.differs == "" {
				if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" || started != nil {
					t.Errorf("%s, but it is rejected: %v (-want, +got):\n%s", tc.reason, started, diff)
				}
				if err := newLauncher(t, config).Start(t.Context(), plan.Checks[0]); err != nil {
					t.Errorf("%s, but it is not adopted: %v", tc.reason, err)
				}
				return
			}
			explained := launch.Explain(plan.Checks[0], started)
			for _, f := range append(findings, explained) {
				if f.Outcome != preflight.Unknown || f.Reason != "AlteredByAdmission" || !strings.Contains(f.Message, tc.differs) {
					t.Errorf("%s: want Unknown(AlteredByAdmission) with %q, got %s(%s): %s", tc.reason, tc.differs, f.Outcome, f.Reason, f.Message)
				}
			}
			if len(findings) != 1 || launcher.UID(plan.Checks[0]) != "" {
				t.Errorf("%s: %d findings of the validation, UID %q", tc.reason, len(findings), launcher.UID(plan.Checks[0]))
			}
		})
	}
}

// A label can be added to any object, so it must not suffice for a deletion.
func TestCleanupDeletesOnlyObjectsOfTheRun(t *testing.T) {
	run := newRun()
	for name, tc := range map[string]struct {
		reason, runID, object string
		deleted               bool
	}{
		"OtherName":   {"an object of production has the label", run.ID, "production", false},
		"OtherSuffix": {"the name has the suffix of another run", run.ID, "settings-0123456789", false},
		"Suffix":      {"the name has the suffix of the run", run.ID, "settings-" + run.Suffix(), true},
		"NoID":        {"a label that is no ID has no suffix", "map", "config-map", false},
		"PodName":     {"only pods have further characters", run.ID, "settings-" + run.Suffix() + "-abcde", false},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: tc.object, Namespace: namespace, Labels: map[string]string{label.Run: tc.runID},
			}}
			put(t, object)
			removal, err := newLauncher(t, config).Cleanup(bounded(t), tc.runID)
			if err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			named := []preflight.Object{{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: tc.object}}
			want := cleanup.Removal{Foreign: named}
			if tc.deleted {
				want = cleanup.Removal{Deleted: named}
			}
			if diff := cmp.Diff(want, removal); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			_, err = api.CoreV1().ConfigMaps(namespace).Get(t.Context(), tc.object, metav1.GetOptions{})
			if apierrors.IsNotFound(err) != tc.deleted {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if err == nil {
				if err := api.CoreV1().ConfigMaps(namespace).Delete(t.Context(), tc.object, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
