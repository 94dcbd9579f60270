package jobplan_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/check"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

const controlPlane = "clusters-example"

// above is a release with a check and its objects for the management cluster, and a check for the guest.
func above(job *batchv1.Job, objects ...payload.Object) *payload.Release {
	release := releasetest.Release(job, releasetest.Job(func(job *batchv1.Job) { job.Name = "guest" }))
	release.Jobs[0].Management = true
	release.Supporting = releasetest.Supporting(objects...)
	for i := range release.Supporting {
		release.Supporting[i].Management = true
	}
	return release
}

// The check and its objects are in the namespace of the control plane, and in no other place.
func TestNewHostedMovesToTheControlPlane(t *testing.T) {
	account := func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "reader" }
	release := above(releasetest.Job(account),
		releasetest.Account("reader"), releasetest.Role(rbacv1.PolicyRule{
			Verbs: []string{"get"}, APIGroups: []string{"apps"},
			Resources: []string{"deployments"},
		}),
		releasetest.Binding("Role", "reader", releasetest.Subject("reader")))
	draft := jobplan.NewHosted("4.20.3", release, controlPlane)
	if len(draft.Refused) > 0 || len(draft.Checks) != 2 {
		t.Fatalf("refused %+v, checks %+v", draft.Refused, draft.Checks)
	}
	run := releasetest.Run()
	guest := draft.Bind(run)
	if len(guest.Checks) != 1 || len(guest.Supporting) > 0 || guest.Checks[0].Job.Labels[label.ControlPlane] != "" {
		t.Errorf("guest: %+v", guest)
	}
	run.Namespace = controlPlane
	plan := draft.Bind(run)
	if len(plan.Checks) != 1 || plan.Checks[0].Side != check.Management || len(plan.Supporting) != 3 {
		t.Fatalf("management cluster: %+v", plan)
	}
	job := plan.Checks[0].Job
	if job.Spec.Template.Labels["hypershift.openshift.io/need-management-kas-access"] != "true" {
		t.Errorf("the network policies of HyperShift deny the pod the API server: labels %v", job.Spec.Template.Labels)
	}
	for _, object := range append(slices.Clone(plan.Supporting), payload.Object(job)) {
		if object.GetNamespace() != controlPlane || object.GetLabels()[label.ControlPlane] != controlPlane {
			t.Errorf("%T %s/%s with the labels %v", object, object.GetNamespace(), object.GetName(), object.GetLabels())
		}
		if subjects, _ := jobplan.BindingOf(object); len(subjects) > 0 && subjects[0].Namespace != controlPlane {
			t.Errorf("the binding has the subject %+v", subjects[0])
		}
	}
	for _, request := range draft.On(check.Guest).Needs().Required {
		if request.Namespace == controlPlane {
			t.Errorf("%+v is required in the guest", request)
		}
	}
	if alone := jobplan.New("4.20.3", release).Bind(releasetest.Run()); len(alone.Checks) != 2 || alone.Checks[0].Job.Namespace != "default" {
		t.Errorf("a cluster that is not hosted has %+v, want both checks where their manifests say", alone.Checks)
	}
}

// What a check could read or change beyond its control plane is refused there, and only there.
func TestNewHostedRefuses(t *testing.T) {
	pod := func(change func(*corev1.PodSpec)) *batchv1.Job {
		return releasetest.Job(func(job *batchv1.Job) {
			job.Spec.Template.Spec.ServiceAccountName = "reader"
			change(&job.Spec.Template.Spec)
		})
	}
	plain := func() *batchv1.Job { return pod(func(*corev1.PodSpec) {}) }
	secrets := func(groups, resources []string) payload.Object {
		return releasetest.Role(rbacv1.PolicyRule{
			Verbs: []string{"get"}, APIGroups: groups, Resources: resources,
			ResourceNames: []string{"etcd-client-tls"},
		})
	}
	bound := []payload.Object{releasetest.Account("reader"), releasetest.Binding("Role", "reader", releasetest.Subject("reader"))}
	for name, tc := range map[string]struct {
		reason  string
		job     *batchv1.Job
		objects []payload.Object
		path    string
	}{
		"Volume": {
			reason: "the Secret may be the client certificate of etcd", path: "volumes[0].secret",
			job: pod(func(spec *corev1.PodSpec) {
				spec.Volumes = []corev1.Volume{{
					Name:         "v",
					VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "etcd-client-tls"}},
				}}
			}),
		},
		"Projection": {
			reason: "a projected volume reads it as well", path: "volumes[0].projected.sources[0].secret",
			job: pod(func(spec *corev1.PodSpec) {
				spec.Volumes = []corev1.Volume{{
					Name:         "v",
					VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{}}}}},
				}}
			}),
		},
		"Variable": {
			reason: "a variable reads it as well", path: "containers[0].env[0].valueFrom.secretKeyRef",
			job: pod(func(spec *corev1.PodSpec) {
				spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}}
			}),
		},
		"Variables": {
			reason: "all variables of a Secret", path: "containers[0].envFrom[0].secretRef",
			job: pod(func(spec *corev1.PodSpec) {
				spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
			}),
		},
		"Role": {
			reason: "the account could read it", job: plain(),
			objects: append(slices.Clone(bound), secrets([]string{""}, []string{"secrets"})), path: "rules[0].resources",
		},
		"Wildcard": {
			reason: "a wildcard includes Secrets", job: plain(),
			objects: append(slices.Clone(bound), secrets([]string{"*"}, []string{"*"})), path: "rules[0].resources",
		},
		"ClusterRole": {
			reason: "the neighbors are the control planes of others", job: plain(), path: "kind",
			objects: []payload.Object{
				releasetest.Account("reader"),
				&rbacv1.ClusterRoleBinding{
					Subjects: []rbacv1.Subject{releasetest.Subject("reader")},
					RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := above(tc.job, tc.objects...)
			draft := jobplan.NewHosted("4.20.3", release, controlPlane)
			if len(draft.Refused) != 1 || draft.Refused[0].Outcome != preflight.Fail || !strings.Contains(draft.Refused[0].Message, tc.path) {
				t.Errorf("%s: refused %+v, want %s", tc.reason, draft.Refused, tc.path)
			}
			if len(draft.Refused) == 1 && draft.Refused[0].Reason != "RefusedControlPlane" && name != "Wildcard" {
				t.Errorf("reason %s", draft.Refused[0].Reason)
			}
		})
	}
}

// Only the release is trusted in the management cluster.
func TestNewHostedRefusesChecksOfTheSite(t *testing.T) {
	site := above(releasetest.Job(nil))
	draft := jobplan.NewHosted("4.20.3", releasetest.Release(), controlPlane).WithSite(jobplan.NewHosted("4.20.3", site, controlPlane))
	if len(draft.Checks) != 1 || len(draft.Refused) != 1 || draft.Refused[0].Outcome != preflight.Unknown ||
		draft.Refused[0].Reason != "RefusedControlPlane" {
		t.Errorf("checks %+v, refused %+v; want the check of the guest only", draft.Checks, draft.Refused)
	}
}
