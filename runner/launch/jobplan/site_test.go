package jobplan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// siteManifests are one Job of the site with supporting objects.
func siteManifests(change func(*batchv1.Job), objects ...payload.Object) *payload.Release {
	job := releasetest.Job(change)
	job.Name = "backup"
	if change != nil {
		change(job)
	}
	release := &payload.Release{Images: map[string]string{releasetest.Image: releasetest.Image}, Jobs: []payload.Job{{File: "checks/backup.yaml", Component: jobplan.SiteComponent, Job: job}}}
	for _, object := range objects {
		release.Supporting = append(release.Supporting, payload.Supporting{File: "checks/rbac.yaml", Component: jobplan.SiteComponent, Object: object})
	}
	return release
}

func siteAccount(name string) payload.Object {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

func siteRole(name string) payload.Object {
	return &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func siteBinding(name, account, role string) payload.Object {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
	}
}

func asAccount(name string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = name }
}

// A check of the site never hides or replaces one of the release.
func TestAttacksBySiteChecks(t *testing.T) {
	etcd := func(change func(*batchv1.Job), objects ...payload.Object) *payload.Release {
		release := releasetest.Release(releasetest.Job(change))
		release.Supporting = releasetest.Supporting(objects...)
		return release
	}
	named := func(name string) func(*batchv1.Job) { return func(job *batchv1.Job) { job.Name = name } }
	ofSite := etcd(nil)
	ofSite.Jobs[0].Component = "site"
	for name, tc := range map[string]struct {
		reason  string
		release *payload.Release
		site    *payload.Release
		// want are parts of the finding; none for a check that runs.
		want []string
	}{
		"None":  {reason: "nothing in common", release: etcd(nil), site: siteManifests(nil)},
		"Job":   {reason: "the same Job", release: etcd(nil), site: siteManifests(named("etcd-preflight")), want: []string{`Job "etcd-preflight"`, "checks/backup.yaml", "0000_50_etcd_00.yaml"}},
		"Names": {reason: "a component of the release has the name site", release: ofSite, site: siteManifests(nil), want: []string{`"Site."`, "0000_50_etcd_00.yaml"}},
		"RefusedJob": {
			reason:  "a Job of the release that violates the policy counts, too",
			release: etcd(func(job *batchv1.Job) { job.Spec.Template.Spec.HostPID = true }), site: siteManifests(named("etcd-preflight")),
			want: []string{`Job "etcd-preflight"`, "checks/backup.yaml"},
		},
		"Account": {
			reason:  "the same supporting object",
			release: etcd(asAccount("reader"), siteAccount("reader")), site: siteManifests(asAccount("reader"), siteAccount("reader")),
			want: []string{`ServiceAccount "reader"`, "0000_50_etcd_rbac.yaml"},
		},
		"AccountOfTheCluster": {
			reason:  "the temporary copy of an account of the cluster would have the name of the site's",
			release: etcd(asAccount("reader")), site: siteManifests(asAccount("reader"), siteAccount("reader")),
			want: []string{`ServiceAccount "reader"`, "0000_50_etcd_00.yaml"},
		},
		"DefaultAccount": {
			reason:  "a Job without an account uses the default one",
			release: etcd(nil), site: siteManifests(asAccount("default"), siteAccount("default")),
			want: []string{`ServiceAccount "default"`},
		},
		"AccountOfTheRelease": {
			reason:  "the account of the cluster would have a copy with the name of the release's",
			release: etcd(asAccount("reader"), siteAccount("reader")), site: siteManifests(asAccount("reader")),
			want: []string{`it refers to ServiceAccount "reader"`, "0000_50_etcd_rbac.yaml"},
		},
		"SharedAccountOfTheCluster": {
			reason:  "both may run as copies of one account of the cluster",
			release: etcd(asAccount("reader")), site: siteManifests(asAccount("reader")),
		},
		"BoundRole": {
			reason:  "a role of the cluster that the release binds is not replaced",
			release: etcd(asAccount("reader"), siteAccount("reader"), siteBinding("reader", "reader", "view")),
			site:    siteManifests(asAccount("own"), siteAccount("own"), siteRole("view"), siteBinding("own", "own", "view")),
			want:    []string{`ClusterRole "view"`, "0000_50_etcd_rbac.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone := jobplan.New("", tc.release)
			both := alone.WithSite(jobplan.New("", tc.site))
			refused := both.Refused[len(alone.Refused):]
			if len(tc.want) == 0 {
				if len(refused) > 0 || len(both.Checks) != len(alone.Checks)+1 || !both.Checks[len(alone.Checks)].Site {
					t.Errorf("%s: want the check of the site to run, got %+v", tc.reason, refused)
				}
			} else if len(refused) != 1 || refused[0].Outcome != preflight.Unknown || refused[0].Reason != "SiteCollision" || len(both.Checks) != len(alone.Checks) {
				t.Fatalf("%s: want one inconclusive finding, got %+v", tc.reason, refused)
			}
			for _, want := range tc.want {
				if !strings.Contains(refused[0].Message, want) {
					t.Errorf("%s: %q lacks %q", tc.reason, refused[0].Message, want)
				}
			}
			// The objects of the release are created as without the site.
			expected, got := alone.Bind(releasetest.Run()), both.Bind(releasetest.Run())
			if diff := cmp.Diff(yamlOf(t, expected.Supporting), notOfSite(t, got.Supporting)); diff != "" {
				t.Errorf("%s: the objects of the release changed (-alone, +with the site):\n%s", tc.reason, diff)
			}
			for i, check := range expected.Checks {
				if diff := cmp.Diff(check.Job, got.Checks[i].Job); diff != "" {
					t.Errorf("%s: the Job of the release changed:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func yamlOf(t *testing.T, objects []payload.Object) []string {
	t.Helper()
	var texts []string
	for _, object := range objects {
		texts = append(texts, asYAML(t, object))
	}
	return texts
}

func notOfSite(t *testing.T, objects []payload.Object) []string {
	t.Helper()
	return yamlOf(t, slices.DeleteFunc(slices.Clone(objects), func(object payload.Object) bool {
		return object.GetLabels()["preflight.openshift.io/component"] == jobplan.SiteComponent
	}))
}

// Each check resolves its references among the objects of its own manifests.
func TestSiteObjects(t *testing.T) {
	release := releasetest.Release(releasetest.Job(asAccount("reader")))
	release.Supporting = releasetest.Supporting(siteAccount("reader"), siteBinding("reader", "reader", "cluster-reader"))
	own := siteManifests(asAccount("own"), siteAccount("own"), siteAccount("unused"), siteRole("own"), siteBinding("own", "own", "own"))
	draft := jobplan.New("", release).WithSite(jobplan.New("", own))
	plan := draft.Bind(releasetest.Run())
	suffix := "-" + releasetest.Run().Suffix()
	if got := plan.Checks[1].Job.Spec.Template.Spec.ServiceAccountName; got != "own"+suffix {
		t.Errorf("the check of the site runs as %q", got)
	}
	var names []string
	for _, object := range plan.Supporting {
		names = append(names, object.GetObjectKind().GroupVersionKind().Kind+" "+strings.TrimSuffix(object.GetName(), suffix))
	}
	want := []string{"ClusterRole own", "ServiceAccount own", "ServiceAccount reader", "ClusterRoleBinding own", "ClusterRoleBinding reader"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("want what the checks need, bindings last (-want, +got):\n%s", diff)
	}
	if identity, ok := draft.Identity(draft.Checks[1]); identity == "" || !ok {
		t.Error("a check of the site can be compared between releases")
	}
	if needs := draft.Needs(); len(needs.Required) <= len(jobplan.New("", release).Needs().Required) {
		t.Error("the permissions of the checks of the site are missing")
	}
}
