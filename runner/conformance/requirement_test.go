package conformance_test

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
)

// Tests of: runner/conformance/requirement

// notTried is the result of a requirement that could not be tested.
const notTried = "Skipped NotTried"

// trials are the endings of a check by trial.
type trials map[string]with

// conforming are the trials of a check that meets every requirement.
func conforming() trials {
	pass := reported(animal(preflight.Pass, "Passed"))
	return trials{
		conformance.AsIs:       pass,
		conformance.Killed:     bySIGKILL(stopped(unfinished(137))),
		conformance.Terminated: stopped(reported(animal(preflight.Unknown, "Interrupted"))),
		conformance.Again:      pass,
		conformance.NonRoot:    pass,
		conformance.ReadOnly:   pass,
		conformance.Memory:     pass,
		conformance.Budget:     pass,
		conformance.CutOff:     reported(animal(preflight.Unknown, "CheckError")),
	}
}

// every has the same ending in each trial with an API server that does not stop the check.
func every(how with) trials {
	all := conforming()
	for trial := range all {
		if trial != conformance.Killed && trial != conformance.Terminated && trial != conformance.CutOff {
			all[trial] = how
		}
	}
	return all
}

// requirements are those of a check, in the order of its results.
func requirements() []string {
	return []string{
		"Manifest", "Image", "ReadOnlyAccess", "Result", "Time", "Output", "Killed", "Terminated", "Idempotent", "NonRoot",
		"ReadOnlyFilesystem", "Memory", "ResultBudget", "FailsClosed",
	}
}

// evidenceCase is a check, of which the rows of a table state what differs from a check
// that meets every requirement.
type evidenceCase struct {
	reason string
	// manifest is that of the check.
	manifest string
	// image is true for an image without a manifest.
	image bool
	// rights are those of its account.
	rights rights.Rights
	// trials replace those of the same name; a nil one leaves no pod.
	trials trials
	// want has the outcome and the reason of each requirement that it does not meet.
	want map[string]string
	// messages has parts of the messages of some requirements.
	messages map[string]string
}

func (tc evidenceCase) results(t *testing.T) []requirement.Result {
	t.Helper()
	if tc.manifest == "" {
		tc.manifest = reading
	}
	s := subject(t, tc.manifest)
	if tc.image {
		s = conformance.Program(t.Context(), image, nil)
	}
	check := conformance.Planned(s)
	all := conforming()
	maps.Copy(all, tc.trials)
	observed := map[string]conformance.Left{}
	for trial, how := range all {
		if how != nil {
			observed[trial] = left(t, check, how)
		}
	}
	return conformance.Results(s, check, tc.rights, observed)
}

// expect compares the results with those of a check that meets every requirement.
func (tc evidenceCase) expect(t *testing.T) {
	t.Helper()
	var order []string
	got := map[string]string{}
	for _, result := range tc.results(t) {
		order = append(order, result.Requirement)
		if result.Outcome != preflight.Pass || result.Reason != "Conforms" {
			got[result.Requirement] = string(result.Outcome) + " " + result.Reason
		}
		if (result.Outcome == preflight.Pass || result.Outcome == preflight.Skipped) != (result.Remediation == "") {
			t.Errorf("%s: %s is %s with the remedy %q", tc.reason, result.Requirement, result.Outcome, result.Remediation)
		}
		if want := tc.messages[result.Requirement]; !strings.Contains(result.Message, want) {
			t.Errorf("%s: the message of %s is %q, want %q", tc.reason, result.Requirement, result.Message, want)
		}
	}
	if diff := cmp.Diff(requirements(), order); diff != "" {
		t.Errorf("%s: requirements (-want, +got):\n%s", tc.reason, diff)
	}
	if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: requirements that are not met (-want, +got):\n%s", tc.reason, diff)
	}
}

// incomparable are the requirements that are not tested without a result to compare with,
// with others.
func incomparable(others map[string]string) map[string]string {
	all := map[string]string{}
	for _, requirement := range []string{"Idempotent", "NonRoot", "ReadOnlyFilesystem", "Memory", "ResultBudget"} {
		all[requirement] = notTried
	}
	maps.Copy(all, others)
	return all
}

// allCases are the rows of all tables, by table.
func allCases() map[string]map[string]evidenceCase {
	return map[string]map[string]evidenceCase{
		"Account": accountCases(), "Result": resultCases(), "Log": logCases(), "Killed": killedCases(), "Terminated": terminatedCases(),
		"Compared": comparedCases(), "CutOff": cutOffCases(),
	}
}

func TestRequirements(t *testing.T) {
	for table, cases := range allCases() {
		for name, tc := range cases {
			t.Run(table+"/"+name, func(t *testing.T) { tc.expect(t) })
		}
	}
}

// Each reason of this package is reported in one of the tables.
func TestEveryReasonIsReported(t *testing.T) {
	reported := map[string]bool{"Conforms": true}
	for _, cases := range allCases() {
		for _, tc := range cases {
			for _, result := range tc.want {
				_, reason, _ := strings.Cut(result, " ")
				reported[reason] = true
			}
		}
	}
	text, err := os.ReadFile("requirement/attempt.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`[rR]eason\w+\s+= finding\.NewReason\("(\w+)"`).FindAllSubmatch(text, -1)
	if len(declared) == 0 {
		t.Fatal("no reasons in attempt.go")
	}
	for _, reason := range declared {
		if !reported[string(reason[1])] {
			t.Errorf("no row has the reason %s", reason[1])
		}
	}
}

// accountCases are about the manifest, the image and the account.
func accountCases() map[string]evidenceCase {
	account := types.NamespacedName{Namespace: "zoo", Name: "candidate"}
	return map[string]evidenceCase{
		"Conforms": {
			reason: "a check that reads meets every requirement",
			rights: rights.Rights{Account: account, Roles: 1},
			messages: map[string]string{
				"Manifest": "0000_50_zoo_11_candidate.yaml is accepted", "Image": "quay.io/openshift/origin-zoo:latest is " + image,
				"ReadOnlyAccess": "system:serviceaccount:zoo:candidate has no write access (1 role)",
			},
		},
		"ClusterRoleBinding": {
			reason: "a binding for the whole cluster grants access, too", manifest: readingAll,
		},
		"NoAccess": {
			reason: "without a binding there is nothing to be cut off from", manifest: job,
			want: map[string]string{"FailsClosed": "Skipped NoAccess"},
		},
		"NotBound": {
			reason:   "a binding of the account of another check grants nothing",
			manifest: job + "---" + strings.ReplaceAll(reading, "candidate", "other"),
			want:     map[string]string{"FailsClosed": "Skipped NoAccess"},
		},
		"MayWrite": {
			reason:   "the message names what the account may write",
			rights:   rights.Rights{Account: account, Writes: []access.Request{{Verb: "create", Resource: "configmaps", Namespace: "zoo"}}},
			want:     map[string]string{"ReadOnlyAccess": "Fail MayWrite"},
			messages: map[string]string{"ReadOnlyAccess": "system:serviceaccount:zoo:candidate may create configmaps in namespace zoo"},
		},
		"APIUnavailable": {
			reason:   "write access to an API that is not served is unknown",
			rights:   rights.Rights{Account: account, Unserved: []string{"metrics.k8s.io/v1beta1"}},
			want:     map[string]string{"ReadOnlyAccess": "Unknown APIUnavailable"},
			messages: map[string]string{"ReadOnlyAccess": "metrics.k8s.io/v1beta1"},
		},
		"Image": {
			reason: "an image without a manifest has no access", image: true,
			want: map[string]string{"FailsClosed": "Skipped NoAccess"}, messages: map[string]string{"Image": image},
		},
	}
}

// but replaces one trial.
func but(all trials, trial string, how with) trials {
	all[trial] = how
	return all
}

// first is a check whose unchanged run ends in this way.
func first(how with) trials { return trials{conformance.AsIs: how} }

// resultCases are about the result of the unchanged run.
func resultCases() map[string]evidenceCase {
	const unknown = preflight.Unknown
	defect := func(reason string) map[string]string {
		return incomparable(map[string]string{"Result": "Fail " + reason, "FailsClosed": notTried})
	}
	always := func(reason string) map[string]string {
		return incomparable(map[string]string{"Result": "Fail " + reason})
	}
	unstarted := func(result, time string) map[string]string {
		return incomparable(map[string]string{"Result": result, "Time": time, "Output": notTried, "FailsClosed": notTried})
	}
	return map[string]evidenceCase{
		"Pass": {
			reason:   "the message has the findings and the exit code",
			messages: map[string]string{"Result": "reported Zoo.Animal Pass (Passed) with exit code 0"},
		},
		"Fail": {
			reason: "a check that fails on this cluster conforms", trials: every(reported(animal(preflight.Fail, "CheckFailed"))),
			messages: map[string]string{"Result": "reported Zoo.Animal Fail (CheckFailed) with exit code 3"},
		},
		"InLog": {
			reason: "the log may have the result", trials: first(inLog(animal(preflight.Pass, "Passed"))),
			messages: map[string]string{"Result": "reported Zoo.Animal Pass"},
		},
		"Silent": {
			reason: "a declared result is missing", trials: first(ended(0, "")), want: defect("NoResult"),
			messages: map[string]string{"Result": "exit code 0 and left no final result"},
		},
		"Unfinished": {
			reason: "the check ended its process itself", trials: first(unfinished(0)), want: defect("NoResult"),
			messages: map[string]string{"Result": "left no final result"},
		},
		"UnfinishedWithoutPromise": {
			reason: "a program of the SDK needs no annotation", manifest: plain, trials: first(unfinished(0)),
			want: incomparable(map[string]string{"Result": "Fail NoResult", "ResultBudget": "Skipped NotFramed", "FailsClosed": "Skipped NoAccess"}),
		},
		"Truncated": {
			reason: "the kubelet truncates a termination message, and the cause is in the message",
			trials: first(ended(0, strings.Repeat("x", 4096))),
			want:   defect("NoResult"), messages: map[string]string{"Result": "its termination message has 4096 bytes, the limit of a kubelet"},
		},
		"Damaged": {
			reason: "a damaged result is none", trials: first(damaged), want: defect("BadResult"), messages: map[string]string{"Result": "checksum"},
		},
		"AnotherRun": {
			reason: "a result of another run is none", trials: first(another), want: defect("BadResult"),
			messages: map[string]string{"Result": `the result is of run ""`},
		},
		"Contradiction": {reason: "the exit code contradicts the result", trials: first(early(1)), want: defect("Contradiction")},
		"Killed": {
			reason: "a check must end by itself", trials: first(ended(137, "")), want: defect("Killed"),
			messages: map[string]string{"Result": "was killed"},
		},
		"OOMKilled": {
			reason: "the memory limit of the manifest is too low", trials: first(because("OOMKilled", unfinished(137))), want: defect("OOMKilled"),
		},
		"BinaryMissing": {
			reason: "the program is not at its path",
			trials: first(because("StartError", ended(128, `exec: "/bin/preflight": stat /bin/preflight: no such file or directory`))),
			want:   defect("BinaryMissing"),
		},
		"NotExecutable": {
			reason: "the program cannot be executed", trials: first(because("StartError", ended(128, `exec: "/bin/preflight": permission denied`))),
			want: defect("NotExecutable"),
		},
		"Retried": {
			reason: "the check failed until the end of the test", trials: first(retried(ended(1, ""))), want: defect("AttemptFailed"),
		},
		"Exits": {
			reason: "without a declared frame, an exit code of the shell is no result", manifest: plain, trials: first(ended(127, "")),
			want: incomparable(map[string]string{
				"Result": "Fail Failed", "ResultBudget": "Skipped NotFramed",
				"FailsClosed": "Skipped NoAccess",
			}),
			messages: map[string]string{"Result": "exited with code 127"},
		},
		"NotProvided": {
			reason: "without a declared frame, a preflight skips an image without the program, which cannot be tested", manifest: plain,
			trials: first(because("StartError", ended(128, `exec: "/bin/preflight": stat /bin/preflight: no such file or directory`))),
			want: incomparable(map[string]string{
				"Result": "Fail NotProvided", "ResultBudget": "Skipped NotFramed",
				"FailsClosed": "Skipped NoAccess",
			}),
		},
		"ContainerConfig": {
			reason: "image and security context of the manifest contradict each other",
			trials: first(waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")),
			want:   unstarted("Fail ContainerConfig", notTried),
		},
		"NeverEnds": {
			reason: "it ignores its deadline", trials: first(running),
			want:     unstarted("Fail Timeout", "Fail NeverEnds"),
			messages: map[string]string{"Time": "still running at its deadline"},
		},
		"Evicted": {
			reason: "the node was short of memory while it ran", trials: first(evicted(running)), want: unstarted("Unknown Evicted", notTried),
		},
		"ImagePull": {
			reason: "the cluster cannot pull the image", trials: first(waiting("ErrImagePull", "manifest unknown")),
			want:     unstarted("Unknown ImagePull", notTried),
			messages: map[string]string{"Result": "manifest unknown"},
		},
		"NotStarted": {
			reason: "the node did not start it in time", trials: first(waiting("ContainerCreating", "")),
			want:     unstarted("Unknown Timeout", notTried),
			messages: map[string]string{"Result": "is being created"},
		},
		"NoFinding": {reason: "nothing is known about it", trials: first(nil), want: unstarted("Unknown NoFinding", notTried)},

		"Panic": {
			reason: "a panic is a defect on every cluster", trials: first(reported(animal(unknown, "Panic"))), want: always("Panic"),
			messages: map[string]string{"Result": "Zoo.Animal is Unknown on every cluster: the animal is unknown"},
		},
		"InvalidCheck": {
			reason: "the SDK rejects the check", trials: first(reported(animal(unknown, "InvalidCheck"))),
			want: always("InvalidCheck"),
		},
		"InvalidArguments": {
			reason: "the program rejects its arguments", trials: first(reported(animal(unknown, "InvalidArguments"))),
			want: always("InvalidArguments"),
		},
		"NotFinished": {
			reason: "the check ended its goroutine", trials: first(reported(animal(unknown, "NotFinished"))),
			want: always("NotFinished"),
		},
		"Timeout": {
			reason: "the check waits until its deadline", trials: first(reported(animal(unknown, "Timeout"))),
			want: always("Timeout"),
		},
		"ReportsNoResult": {
			reason: "the check has the reason of a check without a result", trials: first(reported(animal(unknown, "NoResult"))),
			want: always("NoResult"),
		},
		"NoAccount": {
			reason: "the manifest lacks the account", trials: first(reported(animal(unknown, "ServiceAccountMissing"))),
			want: always("ServiceAccountMissing"),
		},
		"Forbidden": {
			reason: "the manifest lacks a rule", trials: first(reported(animal(unknown, "Forbidden"))),
			want: always("Forbidden"),
		},
		"ForbiddenByClient": {
			reason: "client-go has the message of the API server", want: always("Forbidden"),
			trials: first(reported(saying(animal(unknown, "CheckError"),
				`pods is forbidden: User "system:serviceaccount:zoo:candidate" cannot list resource "pods"`))),
		},
		"ForbiddenByStatus": {
			reason: "another client has the status", want: always("Forbidden"),
			trials: first(reported(saying(animal(unknown, "CheckError"), "the API server responded with status 403 Forbidden"))),
		},
		"ForbiddenWithoutManifest": {
			reason: "an image without a manifest has no permissions", image: true,
			trials: every(reported(saying(animal(unknown, "CheckError"),
				`pods is forbidden: User "system:serviceaccount:a:default" cannot list`))),
			want:     map[string]string{"Result": "Warn Inconclusive", "FailsClosed": "Skipped NoAccess"},
			messages: map[string]string{"Result": "on this cluster (Forbidden)"},
		},
		"Inconclusive": {
			reason: "another cluster may have what the check requires", trials: every(reported(animal(unknown, "CheckError"))),
			want:     map[string]string{"Result": "Warn Inconclusive"},
			messages: map[string]string{"Result": "Zoo.Animal is Unknown on this cluster (CheckError): the animal is unknown"},
		},
		"OneAlways": {
			reason: "a defect is more severe than an inconclusive finding", want: always("Panic"),
			trials: first(reported(animal(unknown, "CheckError"), preflight.Finding{Name: "Second", Outcome: unknown, Reason: "Panic"})),
		},
		"Plain": {
			reason: "the exit code of a script is a result", manifest: plain, trials: every(ended(0, "")),
			want:     map[string]string{"Result": "Warn NotFramed", "ResultBudget": "Skipped NotFramed", "FailsClosed": "Skipped NoAccess"},
			messages: map[string]string{"Result": "only its exit code 0 is known"},
		},
	}
}

// logCases are about its time and its log.
func logCases() map[string]evidenceCase {
	const limit = 1 << 20
	pass := reported(animal(preflight.Pass, "Passed"))
	return map[string]evidenceCase{
		"Fast": {
			reason: "the kubelet reports times in seconds", trials: first(taking(0, pass)),
			messages: map[string]string{"Time": "it took 0s (resolution 1s)"},
		},
		"Minute": {reason: "a minute is allowed", trials: first(taking(time.Minute, pass))},
		"Slow": {
			reason: "a slow check conforms", trials: first(taking(time.Minute+time.Second, pass)),
			want: map[string]string{"Time": "Warn Slow"}, messages: map[string]string{"Time": "it took 1m1s"},
		},
		"Full": {reason: "the log has the limit", trials: first(logging(strings.Repeat("x", limit), pass))},
		"Flood": {
			reason: "the log exceeds the limit", trials: first(logging(strings.Repeat("x", limit+1), pass)),
			want: map[string]string{"Output": "Fail TooMuchOutput"}, messages: map[string]string{"Output": "more than 1024 KiB"},
		},
	}
}

// killedCases are about a check that is killed.
func killedCases() map[string]evidenceCase {
	pass := animal(preflight.Pass, "Passed")
	killed := func(how with) trials { return trials{conformance.Killed: how} }
	return map[string]evidenceCase{
		"Running": {
			reason:   "the message has the state that it reported",
			messages: map[string]string{"Killed": `stopped by SIGKILL, it left a result in the state "running"`},
		},
		"BySIGTERM": {
			reason:   "without the feature ContainerStopSignals, it receives SIGTERM",
			trials:   killed(stopped(reported(animal(preflight.Unknown, "Interrupted")))),
			messages: map[string]string{"Killed": `stopped by the node, with exit code 4, it left a result in the state "final"`},
		},
		"Passes": {
			reason: "a pass that was reported too early counts", trials: killed(stopped(early(0))),
			want:     map[string]string{"Killed": "Fail PassesWhenKilled"},
			messages: map[string]string{"Killed": "stopped by the node, with exit code 0, it counts as passed"},
		},
		"EarlyPass": {
			reason: "the exit code of SIGKILL contradicts a pass", trials: killed(bySIGKILL(stopped(early(137)))),
		},
		"NothingLeft": {
			reason: "a check that does not report that it runs", trials: killed(bySIGKILL(stopped(ended(137, "")))),
			want:     map[string]string{"Killed": "Fail NothingLeft"},
			messages: map[string]string{"Killed": "stopped by SIGKILL, it left no result in the state running: no complete preflight frame"},
		},
		"Plain": {
			reason: "without a declared frame nothing is left", manifest: plain,
			trials:   but(every(ended(0, "")), conformance.Killed, bySIGKILL(stopped(ended(137, "")))),
			want:     map[string]string{"Result": "Warn NotFramed", "ResultBudget": "Skipped NotFramed", "FailsClosed": "Skipped NoAccess"},
			messages: map[string]string{"Killed": "stopped by SIGKILL, it does not count as passed"},
		},
		"ByItself": {
			reason: "it ended before it was stopped", trials: killed(reported(pass)),
			want: map[string]string{"Killed": "Skipped TooFast"}, messages: map[string]string{"Killed": "it exited by itself, with exit code 0"},
		},
		"AtTheSameTime": {
			reason: "it ended before it received SIGKILL", trials: killed(bySIGKILL(stopped(reported(pass)))),
			want: map[string]string{"Killed": "Skipped TooFast"},
		},
		"Unreported": {
			reason: "no finding is no pass", trials: killed(stopped(unreported(early(0)))),
			messages: map[string]string{"Killed": "does not count as passed"},
		},
		"NotStopped": {reason: "the node did not stop it", trials: killed(running), want: map[string]string{"Killed": "Unknown NotTried"}},
		"ImagePull": {
			reason: "the node did not start it", trials: killed(waiting("ErrImagePull", "manifest unknown")),
			want: map[string]string{"Killed": "Unknown ImagePull"},
		},
		"Nothing": {reason: "nothing is known about it", trials: killed(nil), want: map[string]string{"Killed": "Unknown NoFinding"}},
	}
}

// terminatedCases are about a check that is terminated.
func terminatedCases() map[string]evidenceCase {
	terminated := func(how with) trials { return trials{conformance.Terminated: how} }
	return map[string]evidenceCase{
		"Unknown": {
			reason:   "the check reports that it was interrupted",
			messages: map[string]string{"Terminated": "it exited within 5 seconds of SIGTERM, with exit code 4"},
		},
		"Ignores": {
			reason: "the kubelet kills a check that ignores SIGTERM", trials: terminated(stopped(unfinished(137))),
			want:     map[string]string{"Terminated": "Fail IgnoresSIGTERM"},
			messages: map[string]string{"Terminated": "it did not exit within 5 seconds of SIGTERM"},
		},
		"Passes": {
			reason: "a pass that was reported too early counts", trials: terminated(stopped(early(0))),
			want: map[string]string{"Terminated": "Fail PassesWhenTerminated"},
		},
		"ExitsWithZero": {
			reason: "exit code 0 of a script that was stopped does not count as a pass", manifest: plain,
			trials: but(every(ended(0, "")), conformance.Terminated, stopped(ended(0, ""))),
			want: map[string]string{
				"Result": "Warn NotFramed", "ResultBudget": "Skipped NotFramed", "FailsClosed": "Skipped NoAccess",
			},
		},
		"ByItself": {
			reason: "it ended before it was stopped", trials: terminated(early(0)),
			want: map[string]string{"Terminated": "Skipped TooFast"},
		},
		"NotStopped": {
			reason: "the node did not stop it", trials: terminated(running),
			want: map[string]string{"Terminated": "Unknown NotTried"},
		},
		"ImagePull": {
			reason: "the node did not start it", trials: terminated(waiting("ErrImagePull", "manifest unknown")),
			want: map[string]string{"Terminated": "Unknown ImagePull"},
		},
	}
}

// comparedCases are about trials that are compared with the unchanged run.
func comparedCases() map[string]evidenceCase {
	pass := animal(preflight.Pass, "Passed")
	second := preflight.Finding{Name: "Second", Outcome: preflight.Warn, Reason: "CheckWarned", Message: "it looks pale"}
	failed, inconclusive := reported(animal(preflight.Fail, "CheckFailed")), reported(animal(preflight.Unknown, "CheckError"))
	return map[string]evidenceCase{
		"NotIdempotent": {
			reason: "two runs have different outcomes", trials: trials{conformance.Again: failed},
			want:     map[string]string{"Idempotent": "Fail NotIdempotent"},
			messages: map[string]string{"Idempotent": "it reported Zoo.Animal Fail (CheckFailed); unchanged it reports Zoo.Animal Pass (Passed)"},
		},
		"DiesAgain": {
			reason: "the second run left no result", trials: trials{conformance.Again: ended(0, "")},
			want:     map[string]string{"Idempotent": "Fail NotIdempotent"},
			messages: map[string]string{"Idempotent": "left no final result"},
		},
		"NotRunAgain": {
			reason: "the cluster prevented the second run", trials: trials{conformance.Again: waiting("ErrImagePull", "manifest unknown")},
			want: map[string]string{"Idempotent": "Unknown ImagePull"},
		},
		"MessageVaries": {
			reason: "two runs have different messages", trials: trials{conformance.Again: reported(saying(pass, "it is 9:00"))},
			want:     map[string]string{"Idempotent": "Warn MessageVaries"},
			messages: map[string]string{"Idempotent": `Zoo.Animal reported "the animal is pass", then "it is 9:00"`},
		},
		"OrderVaries": {
			reason: "the same findings in another order are the same result",
			trials: but(every(reported(pass, second)), conformance.Again, reported(second, pass)),
		},
		"ErrorVaries": {
			reason: "the message of an error may have a time",
			trials: but(every(inconclusive), conformance.Again, reported(saying(animal(preflight.Unknown, "CheckError"), "it is 9:00"))),
			want:   map[string]string{"Result": "Warn Inconclusive"},
		},
		"RunsAsRoot": {
			reason: "the kubelet does not start an image that runs as root", want: map[string]string{"NonRoot": "Fail RunsAsRoot"},
			trials:   trials{conformance.NonRoot: waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")},
			messages: map[string]string{"NonRoot": "image will run as root"},
		},
		"NeedsRoot": {
			reason: "without root the check has another result", trials: trials{conformance.NonRoot: inconclusive},
			want:     map[string]string{"NonRoot": "Fail NeedsRoot"},
			messages: map[string]string{"NonRoot": "it reported Zoo.Animal Unknown (CheckError)"},
		},
		"WritesToFilesystem": {
			reason: "on a read-only file system the check has another result", trials: trials{conformance.ReadOnly: inconclusive},
			want:     map[string]string{"ReadOnlyFilesystem": "Fail WritesToFilesystem"},
			messages: map[string]string{"ReadOnlyFilesystem": "Unknown (CheckError)"},
		},
		"TooMuchMemory": {
			reason: "the check exceeds the limit", trials: trials{conformance.Memory: because("OOMKilled", unfinished(137))},
			want: map[string]string{"Memory": "Fail TooMuchMemory"}, messages: map[string]string{"Memory": "ran out of memory"},
		},
		"Evicted": {
			reason: "the node was short of memory", trials: trials{conformance.Memory: evicted(ended(137, ""))},
			want: map[string]string{"Memory": "Unknown Evicted"},
		},
		"ResultInLog": {
			reason: "the log has what does not fit into the termination message",
			trials: but(every(truncated(4096, saying(pass, noise(8000)))), conformance.Budget, truncated(512, saying(pass, noise(8000)))),
		},
		"OverBudget": {
			reason: "the program ignores the budget", trials: trials{conformance.Budget: reported(saying(pass, noise(600)))},
			want: map[string]string{"ResultBudget": "Fail OverBudget"}, messages: map[string]string{"ResultBudget": "the budget was 512"},
		},
		"ResultLost": {
			reason: "the result is in neither the termination message nor the log", trials: trials{conformance.Budget: unfinished(0)},
			want: map[string]string{"ResultBudget": "Fail ResultLost"},
		},
		"Fickle": {
			reason: "without two equal results of unchanged runs, there is none to compare with",
			trials: trials{
				conformance.Again:   reported(animal(preflight.Warn, "At1")),
				conformance.NonRoot: reported(animal(preflight.Warn, "At2")),
			},
			want:     map[string]string{"Idempotent": "Fail NotIdempotent", "NonRoot": notTried},
			messages: map[string]string{"NonRoot": "two unchanged runs reported different results"},
		},
	}
}

// cutOffCases are about a check without an API server.
func cutOffCases() map[string]evidenceCase {
	pass := animal(preflight.Pass, "Passed")
	cutOff := func(how with) trials { return trials{conformance.CutOff: how} }
	return map[string]evidenceCase{
		"Unknown": {
			reason:   "the check is inconclusive",
			messages: map[string]string{"FailsClosed": "it reported Zoo.Animal Unknown (CheckError)"},
		},
		"Fail": {reason: "a fail prevents the update", trials: cutOff(reported(animal(preflight.Fail, "CheckFailed")))},
		"NoResult": {
			reason: "a check without a result does not pass", trials: cutOff(unfinished(1)),
			messages: map[string]string{"FailsClosed": "it was inconclusive"},
		},
		"OnePasses": {
			reason: "one inconclusive finding prevents the update",
			trials: cutOff(reported(pass, preflight.Finding{Name: "Second", Outcome: preflight.Unknown, Reason: "CheckError"})),
		},
		"Passes": {
			reason: "an error of the API server is reported as a pass", trials: cutOff(reported(pass)),
			want:     map[string]string{"FailsClosed": "Fail FailsOpen"},
			messages: map[string]string{"FailsClosed": "without an API server it reported Zoo.Animal Pass (Passed)"},
		},
		"Skips": {
			reason: "a skipped check does not prevent the update", trials: cutOff(reported(animal(preflight.Skipped, "NotApplicable"))),
			want: map[string]string{"FailsClosed": "Fail FailsOpen"},
		},
	}
}
