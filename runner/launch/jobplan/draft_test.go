package jobplan_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/test/golden"
)

func TestBindEnhancementExample(t *testing.T) {
	plan := releasetest.Draft(releasetest.Run(), releasetest.Read(t, "testdata/cloud-credential.yaml"))
	if diff := cmp.Diff([]finding.Finding(nil), plan.Refused); diff != "" {
		t.Fatalf("a valid release is rejected (-want, +got):\n%s", diff)
	}
	var documents []string
	for _, object := range plan.Supporting {
		documents = append(documents, asYAML(t, object))
	}
	for _, check := range plan.Checks {
		documents = append(documents, asYAML(t, check.Job))
	}
	got := strings.Join(documents, "---\n")

	golden.Compare(t, "testdata/cloud-credential.golden.yaml", got)
}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestBindDoesNotModifyRelease(t *testing.T) {
	release, untouched := releasetest.Read(t, "testdata/cloud-credential.yaml"), releasetest.Read(t, "testdata/cloud-credential.yaml")
	first := releasetest.Draft(releasetest.Run(), release)
	if diff := cmp.Diff(untouched.Jobs, release.Jobs); diff != "" {
		t.Errorf("Bind changed the release's Jobs (-before, +after):\n%s", diff)
	}
	if diff := cmp.Diff(untouched.Supporting, release.Supporting); diff != "" {
		t.Errorf("Bind changed the release's supporting objects (-before, +after):\n%s", diff)
	}
	second := releasetest.Draft(releasetest.Run(), release)
	if diff := cmp.Diff(first.Supporting, second.Supporting); diff != "" {
		t.Errorf("the plans of the same release differ (-first, +second):\n%s", diff)
	}
}

func TestAuthorsChoices(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*batchv1.Job)
		want   func(batchv1.JobSpec) bool
	}{
		"Deadline": {
			reason: "a shorter deadline of the author is kept",
			change: func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(30)) },
			want:   func(spec batchv1.JobSpec) bool { return *spec.ActiveDeadlineSeconds == 30 },
		},
		"LateDeadline": {
			reason: "the Job must not outlast the run",
			change: func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(1_000_000)) },
			want:   func(spec batchv1.JobSpec) bool { return *spec.ActiveDeadlineSeconds == 11*60 },
		},
		"ShortGrace": {
			reason: "a shorter grace period of the author is kept",
			change: func(job *batchv1.Job) { job.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1)) },
			want:   func(spec batchv1.JobSpec) bool { return *spec.Template.Spec.TerminationGracePeriodSeconds == 1 },
		},
		"LongGrace": {
			reason: "a long grace period may not outlast the clean-up",
			change: func(job *batchv1.Job) { job.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(86400)) },
			want:   func(spec batchv1.JobSpec) bool { return *spec.Template.Spec.TerminationGracePeriodSeconds == 30 },
		},
		"LongGraceOfAProbe": {
			reason: "nor may that of a probe",
			change: func(job *batchv1.Job) {
				job.Spec.Template.Spec.Containers[0].StartupProbe = &corev1.Probe{TerminationGracePeriodSeconds: new(int64(86400))}
			},
			want: func(spec batchv1.JobSpec) bool {
				return *spec.Template.Spec.Containers[0].StartupProbe.TerminationGracePeriodSeconds == 30
			},
		},
		"LongToken": {
			reason: "a token for another audience is valid until it expires, also when the pod is gone",
			change: func(job *batchv1.Job) {
				job.Spec.Template.Spec.Volumes = []corev1.Volume{{
					Name: "token",
					VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
							Audience:          "vault",
							ExpirationSeconds: new(int64(31_536_000)),
						}}},
					}},
				}}
			},
			want: func(spec batchv1.JobSpec) bool {
				return *spec.Template.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds == 3600
			},
		},
		"NoDeadline": {
			reason: "the default deadline is that of the run and a minute",
			want:   func(spec batchv1.JobSpec) bool { return *spec.ActiveDeadlineSeconds == 11*60 },
		},
		"LongTTL": {
			reason: "a longer TTL of the author is kept",
			change: func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = new(int32(7200)) },
			want:   func(spec batchv1.JobSpec) bool { return *spec.TTLSecondsAfterFinished == 7200 },
		},
		"ShortTTL": {
			reason: "a Job must not be deleted before its result is read",
			change: func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = new(int32(0)) },
			want:   func(spec batchv1.JobSpec) bool { return *spec.TTLSecondsAfterFinished == 3600 },
		},
		"Retries": {
			reason: "the backoff limit of the author is kept",
			change: func(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(0)) },
			want:   func(spec batchv1.JobSpec) bool { return *spec.BackoffLimit == 0 },
		},
		"NoRetries": {
			reason: "the default of 6 retries takes longer than a run",
			want:   func(spec batchv1.JobSpec) bool { return *spec.BackoffLimit == 2 },
		},
		"OnFailure": {
			reason: "the API accepts a podFailurePolicy with restartPolicy Never only",
			change: func(job *batchv1.Job) { job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure },
			want: func(spec batchv1.JobSpec) bool {
				return spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && spec.PodFailurePolicy == nil
			},
		},
		"NoRestartPolicy": {
			reason: "the enhancement's example has none, and the default of the API is invalid for Jobs",
			want: func(spec batchv1.JobSpec) bool {
				return spec.Template.Spec.RestartPolicy == corev1.RestartPolicyNever && len(spec.PodFailurePolicy.Rules) == 2
			},
		},
		"FailurePolicy": {
			reason: "a policy of the author replaces the default",
			change: func(job *batchv1.Job) { job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{} },
			want:   func(spec batchv1.JobSpec) bool { return len(spec.PodFailurePolicy.Rules) == 0 },
		},
		"OldServiceAccountField": {
			reason: "the deprecated field has the same meaning",
			change: func(job *batchv1.Job) { job.Spec.Template.Spec.DeprecatedServiceAccount = "old" },
			want: func(spec batchv1.JobSpec) bool {
				return spec.Template.Spec.ServiceAccountName == "old" && spec.Template.Spec.DeprecatedServiceAccount == ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(tc.change)))
			if len(plan.Checks) != 1 {
				t.Fatalf("refused: %v", plan.Refused)
			}
			if spec := plan.Checks[0].Job.Spec; !tc.want(spec) {
				t.Errorf("%s: got\n%s", tc.reason, asYAML(t, spec))
			}
		})
	}
}

func TestResultBytesFitTerminationMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		containers int
		want       string
	}{
		"One":   {reason: "a termination message has at most 4096 bytes", containers: 1, want: "4096"},
		"Two":   {reason: "the 12288 bytes of a pod are shared, two more containers may be injected", containers: 2, want: "3072"},
		"Eight": {reason: "all containers share the bytes of the pod", containers: 8, want: "1228"},
		"Many":  {reason: "512 is the minimum of the SDK", containers: 40, want: "512"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
				spec := &job.Spec.Template.Spec
				for range tc.containers - 1 {
					spec.InitContainers = append(spec.InitContainers, spec.Containers[0])
				}
			})))
			spec := plan.Checks[0].Job.Spec.Template.Spec
			for _, container := range append(spec.InitContainers, spec.Containers...) {
				if !slices.Contains(container.Env, corev1.EnvVar{Name: "PREFLIGHT_RESULT_BYTES", Value: tc.want}) {
					t.Errorf("%s: want %s bytes, got %v", tc.reason, tc.want, container.Env)
				}
			}
		})
	}
}

func TestUpdatePath(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		previous []string
		want     []corev1.EnvVar
	}{
		"Direct": {
			reason: "the path of a direct update has two versions", previous: []string{"4.20.2", "4.20.3"},
			want: []corev1.EnvVar{{Name: "PREFLIGHT_UPDATE_PATH", Value: "4.20.3,4.21.0"}},
		},
		"Indirect": {reason: "the path of an indirect update is unknown", previous: []string{"4.20.2"}},
		"None":     {reason: "the path of a release without previous versions is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			release := releasetest.Release(releasetest.Job(nil))
			release.Previous = tc.previous
			var got []corev1.EnvVar
			for _, variable := range releasetest.Draft(releasetest.Run(), release).Checks[0].Job.Spec.Template.Spec.Containers[0].Env {
				if variable.Name == "PREFLIGHT_UPDATE_PATH" {
					got = append(got, variable)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("long-", 20)
	for name, tc := range map[string]struct {
		reason         string
		component, job string
		wantCheck      string
		wantJob        string
	}{
		"Plain": {
			reason: "words are joined", component: "cloud-credential-operator", job: "cloud-credential-preflight",
			wantCheck: "CloudCredentialOperator.CloudCredentialPreflight", wantJob: `^cloud-credential-preflight-7f3c2a9152$`,
		},
		"Digit": {
			reason: "a valid name begins with a capital letter", component: "3scale", job: "p",
			wantCheck: "C3scale.P", wantJob: `^p-7f3c2a9152$`,
		},
		"NoComponent": {
			reason: "a manifest outside of the naming scheme has a name", component: "", job: "p",
			wantCheck: "Release.P", wantJob: `^p-7f3c2a9152$`,
		},
		"Dots": {
			reason: "the first dot ends the component", component: "etcd", job: "a.b",
			wantCheck: "Etcd.AB", wantJob: `^a\.b-7f3c2a9152$`,
		},
		"Long": {
			reason: "a shortened name keeps the suffix and has a hash", component: "etcd", job: long + "x",
			wantCheck: "Etcd." + strings.Repeat("Long", 20) + "X", wantJob: `^long-[a-z-]+[a-z]-[0-9a-f]{5}-7f3c2a9152$`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := releasetest.Release(releasetest.Job(func(job *batchv1.Job) { job.Name = tc.job }))
			release.Jobs[0].Component = tc.component
			check := releasetest.Draft(releasetest.Run(), release).Checks[0]
			if check.Name != tc.wantCheck {
				t.Errorf("%s: check %q, want %q", tc.reason, check.Name, tc.wantCheck)
			}
			if !regexp.MustCompile(tc.wantJob).MatchString(check.Job.Name) {
				t.Errorf("%s: Job %q does not match %s", tc.reason, check.Job.Name, tc.wantJob)
			}
			if pod := check.Job.Name + "-abcde"; len(pod) > validation.DNS1123LabelMaxLength {
				t.Errorf("%s: its pods' names, like %q, do not fit a host name", tc.reason, pod)
			}
			for key, value := range check.Job.Labels {
				if violations := validation.IsValidLabelValue(value); len(violations) > 0 {
					t.Errorf("%s: label %s=%q: %v", tc.reason, key, value, violations)
				}
			}
		})
	}
}

func TestNamesAreUnique(t *testing.T) {
	long := strings.Repeat("long-", 20)
	named := func(name, namespace string) *batchv1.Job {
		return releasetest.Job(func(job *batchv1.Job) { job.Name, job.Namespace = name, namespace })
	}
	plan := releasetest.Draft(releasetest.Run(),
		releasetest.Release(named(long+"x", "a"), named(long+"y", "a"), named("p-q", "a"), named("p.q", "a"), named("p-q", "b")))
	names, jobs := map[string]bool{}, map[string]bool{}
	for _, check := range plan.Checks {
		names[check.Name] = true
		jobs[check.Job.Namespace+"/"+check.Job.Name] = true
	}
	if len(names) != 5 || len(jobs) != 5 {
		t.Errorf("want five checks and Jobs, got checks %v and Jobs %v", names, jobs)
	}
}

func TestFramed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, annotation string
		want               bool
	}{
		"Promised": {reason: "the author promises a result", annotation: "framed", want: true},
		"Other":    {reason: "only the value framed is a promise", annotation: "true"},
		"None":     {reason: "a check need not promise a result"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
				job.Annotations["preflight.openshift.io/result"] = tc.annotation
			})))
			if got := plan.Checks[0].Framed; got != tc.want {
				t.Errorf("%s: Framed = %v", tc.reason, got)
			}
		})
	}
}

func TestDeadlineVariable(t *testing.T) {
	run := releasetest.Run()
	run.Deadline = run.Deadline.In(time.FixedZone("elsewhere", 3600))
	env := releasetest.Draft(run, releasetest.Release(releasetest.Job(nil))).Checks[0].Job.Spec.Template.Spec.Containers[0].Env
	if want := (corev1.EnvVar{Name: "PREFLIGHT_DEADLINE", Value: "2026-11-21T08:10:00Z"}); !slices.Contains(env, want) {
		t.Errorf("the SDK reads UTC: want %v in %v", want, env)
	}
}

// FuzzNames checks that any names in a payload lead to valid names of objects and
// findings.
func FuzzNames(f *testing.F) {
	f.Add("cloud-credential-operator", "cloud-credential-preflight-checks")
	f.Add("", "")
	f.Add("\xff.-é", strings.Repeat("-", 300))
	accepted := regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	f.Fuzz(func(t *testing.T, component, job string) {
		release := releasetest.Release(releasetest.Job(func(j *batchv1.Job) { j.Name = job }))
		release.Jobs[0].Component = component
		plan := releasetest.Draft(releasetest.Run(), release)
		for _, found := range plan.Refused {
			if !accepted.MatchString(found.Name) {
				t.Errorf("%q is not a valid name", found.Name)
			}
		}
		for _, check := range plan.Checks {
			if !accepted.MatchString(check.Name) {
				t.Errorf("%q is not a valid name", check.Name)
			}
			if len(check.Job.Name) > 57 || len(validation.IsValidLabelValue(check.Job.Labels[label.Component])) > 0 {
				t.Errorf("invalid name %q or labels %v", check.Job.Name, check.Job.Labels)
			}
		}
	})
}

// siteManifests are one Job of the site with supporting objects.
func siteManifests(change func(*batchv1.Job), objects ...payload.Object) *payload.Release {
	job := releasetest.Job(change)
	job.Name = "backup"
	if change != nil {
		change(job)
	}
	release := &payload.Release{
		Images: map[string]string{releasetest.Image: releasetest.Image},
		Jobs:   []payload.Job{{File: "checks/backup.yaml", Component: jobplan.SiteComponent, Job: job}},
	}
	for _, object := range objects {
		release.Supporting = append(release.Supporting,
			payload.Supporting{File: "checks/rbac.yaml", Component: jobplan.SiteComponent, Object: object})
	}
	return release
}

func siteAccount(name string) payload.Object {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
	}
}

func siteRole(name string) payload.Object {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

func siteBinding(name, account, role string) payload.Object {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
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
		"None": {reason: "nothing in common", release: etcd(nil), site: siteManifests(nil)},
		"Job": {
			reason: "the same Job", release: etcd(nil), site: siteManifests(named("etcd-preflight")),
			want: []string{`Job "etcd-preflight"`, "checks/backup.yaml", "0000_50_etcd_00.yaml"},
		},
		"Names": {
			reason: "a component of the release has the name site", release: ofSite, site: siteManifests(nil),
			want: []string{`"Site."`, "0000_50_etcd_00.yaml"},
		},
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
			} else if len(refused) != 1 || refused[0].Outcome != preflight.Unknown || refused[0].Reason != "SiteCollision" ||
				len(both.Checks) != len(alone.Checks) {
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
