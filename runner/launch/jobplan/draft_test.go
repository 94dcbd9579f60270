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
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
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
				job.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: new(int64(31_536_000))}}},
				}}}}
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
	plan := releasetest.Draft(releasetest.Run(), releasetest.Release(named(long+"x", "a"), named(long+"y", "a"), named("p-q", "a"), named("p.q", "a"), named("p-q", "b")))
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
