package e2e_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ending is how a check ends, and what the report has to say of it.
type ending struct {
	reason  string
	animal  animal
	finding string // the name of the finding; that of the Job unless given
	outcome preflight.Outcome
	want    string // the reason of the finding
	says    string // part of its message
	// waits is true for what is waited for until the time is up.
	waits bool
}

// endings are all endings of a check that are distinguished. Each is a real pod on a real node,
// or a real refusal of one.
func endings() map[string]ending {
	const animalFinding = "Zoo.Animal"
	return map[string]ending{
		"no-result": {
			reason: "a promised result that does not come is not a pass, whatever the exit code",
			animal: animal{Ending: "silent"}, outcome: preflight.Unknown, want: "NoResult", says: "exit code 0",
		},
		"plain-pass": {
			reason: "without such a promise exit code 0 is a pass",
			animal: animal{Ending: "plain-pass", Plain: true}, outcome: preflight.Pass, want: "Passed",
		},
		"plain-fail": {
			reason: "and any other a failure, in the check's own last words",
			animal: animal{Ending: "plain-fail", Plain: true}, outcome: preflight.Fail, want: "Failed", says: "the widget is too old for the target",
		},
		"image-pull": {
			reason: "an image that the registry does not have",
			animal: animal{Ending: "pass", Image: ghostImage}, outcome: preflight.Unknown, want: "ImagePull", says: "ghost@sha256:0000",
		},
		"unschedulable": {
			reason: "a pod that no node takes",
			animal: animal{Ending: "pass", Change: func(job *batchv1.Job) {
				job.Spec.Template.Spec.NodeSelector = map[string]string{"nowhere": "true"}
			}},
			outcome: preflight.Unknown, want: "Unschedulable", says: "its pod cannot be scheduled", waits: true,
		},
		"quota": {
			reason: "a pod that the quota of its namespace has no room for",
			animal: animal{Ending: "pass", Namespace: "openshift-quota"}, outcome: preflight.Unknown, want: "QuotaExceeded", says: "exceeded quota", waits: true,
		},
		"service-account": {
			reason:  "a ServiceAccount that neither the release brings nor the cluster has",
			animal:  animal{Ending: "pass", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "missing-account" }},
			outcome: preflight.Unknown, want: "ServiceAccountMissing", says: "missing-account",
		},
		"admission": {
			reason: "a pod that admission refuses",
			animal: animal{Ending: "pass", Namespace: "openshift-restricted"}, outcome: preflight.Unknown, want: "PodSecurity", says: "violates PodSecurity",
		},
		"namespace": {
			reason: "a namespace that is not there",
			animal: animal{Ending: "pass", Namespace: "openshift-nowhere"}, outcome: preflight.Unknown, want: "NamespaceMissing", says: "openshift-nowhere",
		},
		"not-provided": {
			reason: "an image without /bin/preflight has no check, as the enhancement allows",
			animal: animal{Ending: "pass", Plain: true, Image: "quay.io/openshift/origin-empty:latest"}, outcome: preflight.Skipped, want: "NotProvided", says: "/bin/preflight",
		},
		"binary-missing": {
			reason: "but one that promises a result has to have it",
			animal: animal{Ending: "pass", Image: "quay.io/openshift/origin-empty:latest"}, outcome: preflight.Unknown, want: "BinaryMissing", says: "/bin/preflight",
		},
		"oom": {
			reason: "a check that is killed for its memory is inconclusive",
			animal: animal{Ending: "oom", Plain: true, Change: func(job *batchv1.Job) {
				job.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
			}},
			outcome: preflight.Unknown, want: "OOMKilled", says: "ran out of memory",
		},
		"deadline": {
			reason:  "a check that ignores everything is ended by its Job's deadline",
			animal:  animal{Ending: "stuck", Change: func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(5)) }},
			outcome: preflight.Unknown, want: "DeadlineExceeded", says: "activeDeadlineSeconds",
		},
		"refused-image": {
			reason: "an image that the release does not list is not run",
			animal: animal{Ending: "pass", Image: "quay.io/openshift/stranger:latest"}, outcome: preflight.Fail, want: "RefusedImage", says: "stranger",
		},
		"privileged": {
			reason: "nor is a privileged container",
			animal: animal{Ending: "pass", Change: func(job *batchv1.Job) {
				job.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			}},
			outcome: preflight.Fail, want: "RefusedPodSecurity", says: "privileged",
		},
		"sdk-pass":    {reason: "a pass by the SDK", animal: animal{Ending: "pass"}, finding: animalFinding, outcome: preflight.Pass, want: "Passed"},
		"sdk-warn":    {reason: "a warning", animal: animal{Ending: "warn"}, finding: animalFinding, outcome: preflight.Warn, want: "CheckWarned", says: "looks pale"},
		"sdk-fail":    {reason: "a failure", animal: animal{Ending: "fail"}, finding: animalFinding, outcome: preflight.Fail, want: "CheckFailed", says: "is ill"},
		"sdk-skip":    {reason: "a skip", animal: animal{Ending: "skip"}, finding: animalFinding, outcome: preflight.Skipped, want: "NotApplicable", says: "no animal here"},
		"sdk-unknown": {reason: "an error is no answer", animal: animal{Ending: "unknown"}, finding: animalFinding, outcome: preflight.Unknown, want: "CheckError", says: "hides"},
	}
}

func TestEveryEndingIsToldApart(t *testing.T) {
	expectEndings(t, "5m", verdict.Blocked, 3, func(e ending) bool { return !e.waits })
}

func TestWaitingEndsWhenTheTimeIsUp(t *testing.T) {
	expectEndings(t, "10s", verdict.Undecided, 4, func(e ending) bool { return e.waits })
}

// expectEndings runs a release with some of the endings, and compares.
func expectEndings(t *testing.T, timeout string, decision verdict.Decision, code int, chosen func(ending) bool) {
	t.Helper()
	animals := map[string]animal{}
	for name, ending := range endings() {
		if chosen(ending) {
			animals[name] = ending.animal
		}
	}
	publish(t, animals)
	restrict(t)
	decided := reported(t, code, "--to", to, "--timeout", timeout)
	if decided.Verdict.Decision != decision {
		t.Errorf("decision %s, want %s", decided.Verdict.Decision, decision)
	}
	found := map[string]finding.Finding{}
	for _, f := range decided.Findings {
		found[f.Name] = f
		if f.Job != nil {
			found[jobOf(f)] = f
		}
	}
	for name := range animals {
		t.Run(name, func(t *testing.T) {
			f, ok := found[name]
			if !ok {
				f = found["Zoo."+camel(name)]
			}
			expectEnding(t, f, endings()[name])
		})
	}
	// The built-in checks had to report too.
	if all := decided.Expected.Checks; decided.Expected.Reported != all || all <= len(animals) {
		t.Errorf("%d of %d reported, want all, and more than the release's %d", decided.Expected.Reported, all, len(animals))
	}
	house.ExpectNothingLeft(t)
}

func expectEnding(t *testing.T, f finding.Finding, want ending) {
	t.Helper()
	if f.Outcome != want.outcome || f.Reason != want.want || !strings.Contains(f.Message, want.says) {
		t.Errorf("%s: %s (%s) %q; want %s (%s) that says %q",
			want.reason, f.Outcome, f.Reason, f.Message, want.outcome, want.want, want.says)
	}
	if want.finding != "" && f.Name != want.finding {
		t.Errorf("%s: the finding is called %s, want %s", want.reason, f.Name, want.finding)
	}
	troubled := f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown
	if troubled != f.Blocks || (troubled && f.Remediation == "") {
		t.Errorf("%s: blocks %t, remediation %q", want.reason, f.Blocks, f.Remediation)
	}
}

// jobOf is the name that the author gave to the Job of a finding.
func jobOf(f finding.Finding) string {
	return f.Job.Name[:strings.LastIndex(f.Job.Name, "-")]
}

func camel(name string) string {
	var words strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		words.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return words.String()
}

// restrict makes one namespace that has no room, and one that allows little.
func restrict(t *testing.T) {
	t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	_, err := house.Client(t).CoreV1().ResourceQuotas("openshift-quota").Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	house.Kubectl(t, "label", "--overwrite", "namespace", "openshift-restricted", "pod-security.kubernetes.io/enforce=restricted")
}
