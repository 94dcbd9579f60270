package e2e_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ending is how a check ends, with the expected finding.
type ending struct {
	reason  string
	animal  animal
	finding string // the name of the finding; empty for that of the Job
	outcome preflight.Outcome
	want    string // the reason of the finding
	message string // a part of its message
	// waits is true if the run waits for the check until its timeout.
	waits bool
}

// endings returns the endings of a check that only a node shows. Tables of runner/jobs have all
// that the report distinguishes; what an API server rejects without a node is in runner/launch
// and runner/jobs.
func endings() map[string]ending {
	const animalFinding = "Zoo.Animal"
	return map[string]ending{
		"no-result": {
			reason: "a declared result that is missing is not a pass, whatever the exit code",
			animal: animal{Ending: "silent"}, outcome: preflight.Unknown, want: "NoResult", message: "exit code 0",
		},
		"plain-pass": {
			reason: "without a declared result, exit code 0 is a pass",
			animal: animal{Ending: "plain-pass", Plain: true}, outcome: preflight.Pass, want: "Passed",
		},
		"plain-fail": {
			reason: "any other exit code is a failure, with the last line of the log",
			animal: animal{Ending: "plain-fail", Plain: true}, outcome: preflight.Fail, want: "Failed",
			message: "the widget is too old for the target",
		},
		"image-pull": {
			reason: "an image that the registry does not have",
			animal: animal{Ending: "pass", Image: missingImage}, outcome: preflight.Unknown, want: "ImagePull", message: "ghost@sha256:0000",
		},
		"unschedulable": {
			reason: "no node matches the node selector of the pod",
			animal: animal{Ending: "pass", Change: func(job *batchv1.Job) {
				job.Spec.Template.Spec.NodeSelector = map[string]string{"nowhere": "true"}
			}},
			outcome: preflight.Unknown, want: "Unschedulable", message: "its pod cannot be scheduled", waits: true,
		},
		"not-provided": {
			reason: "an image without /bin/preflight has no check, as the enhancement allows",
			animal: animal{Ending: "pass", Plain: true, Image: "quay.io/openshift/origin-empty:latest"}, outcome: preflight.Skipped,
			want: "NotProvided", message: "/bin/preflight",
		},
		"binary-missing": {
			reason: "an image without /bin/preflight is inconclusive if the Job declares a result",
			animal: animal{Ending: "pass", Image: "quay.io/openshift/origin-empty:latest"}, outcome: preflight.Unknown, want: "BinaryMissing",
			message: "/bin/preflight",
		},
		"oom": {
			reason: "a check that runs out of memory is inconclusive",
			animal: animal{Ending: "oom", Plain: true, Change: func(job *batchv1.Job) {
				job.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
			}},
			outcome: preflight.Unknown, want: "OOMKilled", message: "ran out of memory",
		},
		"deadline": {
			reason:  "the deadline of the Job ends a check that does not stop",
			animal:  animal{Ending: "stuck", Change: func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = new(int64(5)) }},
			outcome: preflight.Unknown, want: "DeadlineExceeded", message: "activeDeadlineSeconds",
		},
		"sdk-pass": {
			reason: "a pass of the SDK", animal: animal{Ending: "pass"}, finding: animalFinding, outcome: preflight.Pass,
			want: "Passed",
		},
		"sdk-warn": {
			reason: "a warning of the SDK", animal: animal{Ending: "warn"}, finding: animalFinding, outcome: preflight.Warn,
			want: "CheckWarned", message: "looks pale",
		},
		"sdk-fail": {
			reason: "a failure of the SDK", animal: animal{Ending: "fail"}, finding: animalFinding, outcome: preflight.Fail,
			want: "CheckFailed", message: "is ill",
		},
		"sdk-skip": {
			reason: "a skip of the SDK", animal: animal{Ending: "skip"}, finding: animalFinding, outcome: preflight.Skipped,
			want: "NotApplicable", message: "no animal here",
		},
		"sdk-unknown": {
			reason: "an error of the SDK is inconclusive", animal: animal{Ending: "unknown"}, finding: animalFinding,
			outcome: preflight.Unknown, want: "CheckError", message: "hides",
		},
	}
}

func TestEveryEndingIsDistinguished(t *testing.T) {
	expectEndings(t, "5m", verdict.Blocked, 3, func(e ending) bool { return !e.waits })
}

func TestWaitingEndsAtTheTimeout(t *testing.T) {
	expectEndings(t, "10s", verdict.Undecided, 4, func(e ending) bool { return e.waits })
}

// expectEndings runs a release with the selected endings, and compares the findings.
func expectEndings(t *testing.T, timeout string, decision verdict.Decision, code int, selects func(ending) bool) {
	t.Helper()
	animals := map[string]animal{}
	for name, ending := range endings() {
		if selects(ending) {
			animals[name] = ending.animal
		}
	}
	publish(t, animals)
	result := runPreflight(t, code, "--to", to, "--timeout", timeout)
	if result.Verdict.Decision != decision {
		t.Errorf("decision %s, want %s", result.Verdict.Decision, decision)
	}
	found := map[string]finding.Finding{}
	for _, f := range result.Findings {
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
	// The built-in checks must report, too.
	if all := result.Expected.Checks; result.Expected.Reported != all || all <= len(animals) {
		t.Errorf("%d of %d checks reported, want all, and more than the %d of the release", result.Expected.Reported, all, len(animals))
	}
	testCluster.ExpectNothingLeft(t)
}

func expectEnding(t *testing.T, f finding.Finding, want ending) {
	t.Helper()
	if f.Outcome != want.outcome || f.Reason != want.want || !strings.Contains(f.Message, want.message) {
		t.Errorf("%s: %s (%s) %q; want %s (%s) with %q",
			want.reason, f.Outcome, f.Reason, f.Message, want.outcome, want.want, want.message)
	}
	if want.finding != "" && f.Name != want.finding {
		t.Errorf("%s: the name of the finding is %s, want %s", want.reason, f.Name, want.finding)
	}
	open := f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown
	if open != f.Blocks || (open && f.Remediation == "") {
		t.Errorf("%s: blocks %t, remediation %q", want.reason, f.Blocks, f.Remediation)
	}
}

// jobOf returns the name of the Job of a finding in its manifest.
func jobOf(f finding.Finding) string {
	return f.Job.Name[:strings.LastIndex(f.Job.Name, "-")]
}

// camel converts a name with dashes to CamelCase.
func camel(name string) string {
	var words strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		words.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return words.String()
}
