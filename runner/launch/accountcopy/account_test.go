package accountcopy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/payload"
)

func TestAccounts(t *testing.T) {
	as := func(name, account string) *batchv1.Job {
		return releasetest.Job(func(job *batchv1.Job) { job.Name, job.Spec.Template.Spec.ServiceAccountName = name, account })
	}
	reading := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	namespace := as("x", "").Namespace
	suffix := "-" + releasetest.Run().Suffix()
	for name, tc := range map[string]struct {
		reason  string
		jobs    []*batchv1.Job
		objects []payload.Object
		want    []accountcopy.Account
	}{
		"Default": {
			reason: "a Job without a ServiceAccount uses the default of its namespace", jobs: []*batchv1.Job{as("b", ""), as("a", "default")},
			want: []accountcopy.Account{{Namespace: namespace, Name: "default", Author: "default", Checks: []string{"Etcd.A", "Etcd.B"}}},
		},
		"Existing": {
			reason: "the permissions of an existing ServiceAccount are not in the plan", jobs: []*batchv1.Job{as("a", "operator")},
			want: []accountcopy.Account{{Namespace: namespace, Name: "operator", Author: "operator", Checks: []string{"Etcd.A"}}},
		},
		"Copy": {
			reason: "the plan has all permissions of a copy", jobs: []*batchv1.Job{as("a", "checker")},
			objects: []payload.Object{
				releasetest.Account("checker"), releasetest.Role(reading),
				releasetest.Binding("Role", "reader", releasetest.Subject("checker")),
			},
			want: []accountcopy.Account{{
				Namespace: namespace, Name: "checker" + suffix, Author: "checker", Checks: []string{"Etcd.A"},
				Rules: []rbacv1.PolicyRule{reading},
			}},
		},
		"CopyWithClusterRole": {
			reason: "the permissions of view are not in the plan", jobs: []*batchv1.Job{as("a", "checker")},
			objects: []payload.Object{
				releasetest.Account("checker"), releasetest.Role(reading), releasetest.Binding("Role", "reader", releasetest.Subject("checker")),
				func() payload.Object {
					viewing := releasetest.Binding("ClusterRole", "view", releasetest.Subject("checker"))
					viewing.Name = "viewing"
					return viewing
				}(),
			},
			want: []accountcopy.Account{{
				Namespace: namespace, Name: "checker" + suffix, Author: "checker", Checks: []string{"Etcd.A"},
				Rules: []rbacv1.PolicyRule{reading},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := releasetest.Release(tc.jobs...)
			release.Supporting = releasetest.Supporting(tc.objects...)
			plan := releasetest.Plan(releasetest.Run(), release)
			if diff := cmp.Diff(tc.want, accountcopy.Of(plan)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
