package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

// Tests of: runner/jobs/diagnosis

// outcomes formats findings for the tables: "Name Outcome(Reason)".
func outcomes(findings []finding.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Name+" "+string(f.Outcome)+"("+f.Reason+")")
	}
	return all
}

const wholeJob = "Etcd.EtcdPreflight "

func TestContainerResults(t *testing.T) {
	const final, unfinished = preflight.StateFinal, preflight.StateRunning
	pass, warn, fail := reported("Quorum", preflight.Pass), reported("Size", preflight.Warn), reported("Alarm", preflight.Fail)
	inconclusive, skip := reported("Quorum", preflight.Unknown), reported("Quorum", preflight.Skipped)
	full := preflight.Result{State: final, RunID: runID, Findings: []preflight.Finding{pass, warn, fail}}
	short := full
	short.Truncated = true

	for name, tc := range map[string]struct {
		reason  string
		observe diagnosis.Observation
		want    []string
		wantLog bool
		words   string // part of the message of the first finding
	}{
		"Pass": {
			reason:  "a container that terminated with a result decides the check, whatever the status of the Job",
			observe: observe(framed, pod(ended(0, frame(t, final, pass)))),
			want:    []string{"Etcd.Quorum Pass(Because)"}, words: "member etcd-0",
		},
		"Warn": {
			reason:  "a warning exits 0",
			observe: observe(framed, pod(ended(0, frame(t, final, pass, warn)))),
			want:    []string{"Etcd.Quorum Pass(Because)", "Etcd.Size Warn(Because)"},
		},
		"Fail": {
			reason:  "each check of the program is a finding of its own",
			observe: observe(framed, pod(ended(3, frame(t, final, pass, fail)))),
			want:    []string{"Etcd.Quorum Pass(Because)", "Etcd.Alarm Fail(Because)"},
		},
		"Skipped": {
			reason:  "a skipped check does not apply",
			observe: observe(framed, pod(ended(0, frame(t, final, skip)))),
			want:    []string{"Etcd.Quorum Skipped(Because)"},
		},
		"CouldNotTell": {
			reason:  "an inconclusive result is a result",
			observe: observe(framed, pod(ended(4, frame(t, final, inconclusive)))),
			want:    []string{"Etcd.Quorum Unknown(Because)"},
		},
		"ResultWithoutPromise": {
			reason:  "a result counts without a promise",
			observe: observe(pod(ended(3, frame(t, final, fail)))),
			want:    []string{"Etcd.Alarm Fail(Because)"},
		},
		"ResultAmongOutput": {
			reason:  "output before and after the result is ignored",
			observe: observe(framed, pod(ended(0, "warming up\n"+frame(t, final, pass)+"bye\n"))),
			want:    []string{"Etcd.Quorum Pass(Because)"},
		},
		"LogRequired": {
			reason:  "a result that is not in the termination message may be in the log",
			observe: observe(framed, pod(ended(0, ""))),
			wantLog: true,
		},
		"LogOfScript": {
			reason:  "a script may print a result without promising one",
			observe: observe(pod(ended(0, ""))),
			wantLog: true,
		},
		"LogForTruncatedResult": {
			reason:  "the log has the findings that the termination message omits",
			observe: observe(framed, pod(ended(3, frameOf(t, short)))),
			wantLog: true,
		},
		"ResultInLog": {
			reason:  "the result in the log counts if the message has none",
			observe: observe(framed, pod(ended(3, "")), logged("noise\n"+frame(t, final, fail))),
			want:    []string{"Etcd.Alarm Fail(Because)"},
		},
		"CompleteResultInLog": {
			reason: "the complete result replaces the truncated one",
			observe: observe(framed, pod(ended(3, frameOf(t,
				preflight.Result{State: final, RunID: runID, Truncated: true, Findings: []preflight.Finding{fail}}))), logged(frameOf(t, full))),
			want: []string{"Etcd.Quorum Pass(Because)", "Etcd.Size Warn(Because)", "Etcd.Alarm Fail(Because)"},
		},
		"TruncatedResultOnly": {
			reason:  "a truncated result decides if the log is gone",
			observe: observe(framed, pod(ended(3, frameOf(t, short))), unreadable),
			want:    []string{"Etcd.Quorum Pass(Because)", "Etcd.Size Warn(Because)", "Etcd.Alarm Fail(Because)"},
		},
		"NoResult": {
			reason:  "a check that promised a result and exits 0 without one has not passed",
			observe: observe(framed, pod(ended(0, "")), logged("all fine\n")),
			want:    []string{wholeJob + "Unknown(NoResult)"}, words: "exit code 0",
		},
		"NoResultNoLog": {
			reason:  "the message has the error of the log request",
			observe: observe(framed, pod(ended(0, "")), unreadable),
			want:    []string{wholeJob + "Unknown(NoResult)"}, words: "i/o timeout",
		},
		"UnfinishedResult": {
			reason:  "an SDK program without a final result is inconclusive, with or without a promise",
			observe: observe(pod(ended(0, frame(t, unfinished, pass))), logged("")),
			want:    []string{wholeJob + "Unknown(NoResult)"},
		},
		"UnfinishedResultWithFail": {
			reason: "failures in an unfinished result are kept",
			observe: observe(framed, pod(ended(1, frame(t, unfinished, pass, fail, reported("Size", preflight.Unknown)))), logged("boom"),
				failed(batchv1.JobReasonBackoffLimitExceeded)),
			want: []string{wholeJob + "Unknown(NoResult)", "Etcd.Alarm Fail(Because)"}, words: "boom",
		},
		"Contradiction": {
			reason:  "a passing result contradicts a failing exit code",
			observe: observe(framed, pod(ended(1, frame(t, final, pass)))),
			want:    []string{wholeJob + "Unknown(Contradiction)"}, words: "exit code 1",
		},
		"ContradictionWithFail": {
			reason:  "a failure is kept although the exit code contradicts it",
			observe: observe(framed, pod(ended(0, frame(t, final, pass, fail)))),
			want:    []string{wholeJob + "Unknown(Contradiction)", "Etcd.Alarm Fail(Because)"},
		},
		"AnotherRun": {
			reason: "a result of another run is invalid",
			observe: observe(framed, pod(ended(0, frameOf(t, preflight.Result{State: final, RunID: "another", Findings: full.Findings[:1]}))),
				logged("")),
			want: []string{wholeJob + "Unknown(BadResult)"}, words: `"another"`,
		},
		"Damaged": {
			reason:  "a damaged result is invalid",
			observe: observe(framed, pod(ended(0, strings.Replace(frame(t, final, pass), "Because", "Perhaps", 1))), logged("")),
			want:    []string{wholeJob + "Unknown(BadResult)"}, words: "checksum",
		},
		"TooMany": {
			reason:  "a result with too many findings is rejected as a whole, since dropping some could drop a failure",
			observe: observe(framed, pod(ended(0, frame(t, final, many(201)...)))),
			want:    []string{wholeJob + "Unknown(BadResult)"}, words: "201 findings",
		},
		"Script": {
			reason:  "without a promised result the exit code decides",
			observe: observe(pod(ended(0, "")), logged("looks good\n")),
			want:    []string{wholeJob + "Pass(Passed)"},
		},
		"ScriptWithoutLog": {
			reason:  "exit code 0 decides without a log",
			observe: observe(pod(ended(0, "")), unreadable),
			want:    []string{wholeJob + "Pass(Passed)"},
		},
		"ScriptFails": {
			reason:  "the message has the last lines of the log once the Job has failed",
			observe: observe(pod(ended(1, "one\ntwo\n")), logged("\x1b[31mno quorum\x1b[0m\n"), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{wholeJob + "Fail(Failed)"}, words: "exited with code 1: no quorum",
		},
		"ScriptFailsWithoutLog": {
			reason:  "the termination message has the last lines",
			observe: observe(pod(ended(1, "one\ntwo\n")), unreadable, failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{wholeJob + "Fail(Failed)"}, words: "exited with code 1: one\ntwo",
		},
		"ScriptFailsAgain": {
			reason: "the message has the number of attempts",
			observe: observe(pod(ended(1, "")), pod(ended(1, "")), logged(""),
				condition(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)),
			want: []string{wholeJob + "Fail(Failed)"}, words: "in the last of 2 attempts",
		},
		"SecondAttemptPasses": {
			reason:  "the last attempt decides",
			observe: observe(framed, pod(ended(1, "")), pod(ended(0, frame(t, final, pass)))),
			want:    []string{"Etcd.Quorum Pass(Because)"},
		},
		"LateResultOfAnEarlierAttempt": {
			reason:  "a final result of an earlier attempt decides although the Job retries",
			observe: observe(framed, pod(ended(3, frame(t, final, fail))), pod(running)),
			want:    []string{"Etcd.Alarm Fail(Because)"},
		},
		"RestartedInPlace": {
			reason: "with restartPolicy OnFailure the result is that of the last termination",
			observe: observe(framed, pod(func(p *diagnosis.Pod) {
				ended(3, frame(t, final, fail))(p)
				status := &p.Status.ContainerStatuses[0]
				status.LastTerminationState, status.RestartCount = status.State, 1
				status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			})),
			want: []string{"Etcd.Alarm Fail(Because)"},
		},
		"OutOfMemory": {
			reason:  "a container that was killed is inconclusive although it exits 0 (kubernetes#131530)",
			observe: observe(framed, pod(endedFor("OOMKilled", 0, frame(t, final, pass)))),
			want:    []string{wholeJob + "Unknown(OOMKilled)"}, words: "ran out of memory",
		},
		"OutOfMemoryScript": {
			reason:  "a script that was killed has not passed",
			observe: observe(pod(endedFor("OOMKilled", 0, ""))),
			want:    []string{wholeJob + "Unknown(OOMKilled)"},
		},
		"Killed": {
			reason:  "SIGKILL is inconclusive",
			observe: observe(pod(ended(137, "")), logged("at work\n"), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{wholeJob + "Unknown(Killed)"}, words: "at work",
		},
		"NotProvided": {
			reason: "the enhancement allows /bin/preflight to be missing",
			observe: observe(pod(endedFor("StartError", 128,
				`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/bin/preflight": stat /bin/preflight: no such file or directory`))),
			want: []string{wholeJob + "Skipped(NotProvided)"}, words: "no /bin/preflight",
		},
		"NotProvidedCRIO": {
			reason: "CRI-O does not create the container, and the error of crun differs",
			observe: observe(pod(waiting("CreateContainerError",
				"container create failed: executable file `/bin/preflight` not found: No such file or directory"))),
			want: []string{wholeJob + "Skipped(NotProvided)"},
		},
		"PromisedButNotProvided": {
			reason:  "a promised result requires a program",
			observe: observe(framed, pod(endedFor("StartError", 128, `exec: "/bin/preflight": stat /bin/preflight: no such file or directory`))),
			want:    []string{wholeJob + "Unknown(BinaryMissing)"},
		},
		"OtherBinaryMissing": {
			reason: "only /bin/preflight may be missing",
			observe: observe(pod(endedFor("StartError", 128, `exec: "/bin/check": stat /bin/check: no such file or directory`)),
				func(o *diagnosis.Observation) {
					o.Check.Job.Spec.Template.Spec.Containers[0].Command = []string{"/bin/check"}
				}),
			want: []string{wholeJob + "Unknown(BinaryMissing)"},
		},
		"NotExecutable": {
			reason:  "a file that cannot be executed is a defect",
			observe: observe(pod(endedFor("StartError", 128, `exec: "/bin/preflight": permission denied`))),
			want:    []string{wholeJob + "Unknown(NotExecutable)"}, words: "permission denied",
		},
		"SidecarFailed": {
			reason: "a check with several containers passes when all of them do",
			observe: observe(pod(ended(0, ""), container("sidecar", corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no proxy"},
			})), logged(""), withSidecar, failed(batchv1.JobReasonBackoffLimitExceeded)),
			want: []string{wholeJob + "Unknown(ContainerFailed)"}, words: "no proxy",
		},
		"InjectedContainer": {
			reason: "containers that are not in the manifest are ignored",
			observe: observe(pod(ended(0, ""), container("istio-proxy", corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{},
			})), logged("")),
			want: []string{wholeJob + "Pass(Passed)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnosis.Classify(tc.observe)
			if tc.wantLog {
				if got.ReadLog != tc.observe.Pods[0].Name || got.State == diagnosis.Done {
					t.Errorf("%s: want a log request, got %+v", tc.reason, got)
				}
				return
			}
			if diff := cmp.Diff(tc.want, outcomes(got.Findings)); diff != "" {
				t.Fatalf("%s (-want, +got):\n%s\n%+v", tc.reason, diff, got)
			}
			assertComplete(t, got)
			if !strings.Contains(got.Findings[0].Message, tc.words) {
				t.Errorf("%s: %q is not in %q", tc.reason, tc.words, got.Findings[0].Message)
			}
		})
	}
}

// assertComplete checks the fields that every finding of a Job must have.
func assertComplete(t *testing.T, classified diagnosis.Classification) {
	t.Helper()
	for _, f := range classified.Findings {
		blocks := f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown
		if f.Blocks != blocks || f.Source != finding.SourceJob || f.Job == nil || f.Job.Name != aCheck().Job.Name {
			t.Errorf("incomplete finding: %+v", f)
		}
		if strings.HasPrefix(f.Name, strings.TrimSpace(wholeJob)) && blocks && (f.Remediation == "" || len(f.Objects) == 0 || f.Message == "") {
			t.Errorf("a finding without cause, remedy or object: %+v", f)
		}
	}
}

func withSidecar(o *diagnosis.Observation) {
	spec := &o.Check.Job.Spec.Template.Spec
	spec.Containers = append(spec.Containers, corev1.Container{Name: "sidecar"})
}

func many(n int) []preflight.Finding {
	var all []preflight.Finding
	for i := range n {
		all = append(all, reported("Check"+strings.Repeat("X", i%100)+string(rune('a'+i/100)), preflight.Pass))
	}
	return all
}

// cordonedNodes is a message of the scheduler of Kubernetes 1.36.
const cordonedNodes = "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/master: }, 2 node(s) " +
	"were unschedulable. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."

func TestWaiting(t *testing.T) {
	const transient = 90 * time.Second
	quota := `Error creating: pods "p-" is forbidden: exceeded quota: full, requested: pods=1, used: pods=0, limited: pods=0`
	for name, tc := range map[string]struct {
		reason    string
		observe   diagnosis.Observation
		cause     string // while it waits
		recheck   time.Duration
		want      string // if it is done at once, or empty
		atTheEnd  string // at the deadline of the run
		inMessage string
		inRemedy  string
	}{
		"JobNotSeen": {
			reason: "the watch may lag behind", observe: observe(func(o *diagnosis.Observation) { o.Job = nil }),
			cause: "JobNotSeen", atTheEnd: "Unknown(JobNotSeen)", inMessage: "timed out: the API server has not returned the Job",
			inRemedy: "readyz",
		},
		"NoPodYet": {
			reason: "the Job controller needs a moment", observe: observe(),
			cause: "PodNotCreated", atTheEnd: "Unknown(PodNotCreated)", inMessage: "no pod yet", inRemedy: "kube-controller-manager",
		},
		"Quota": {
			reason: "another pod may free the quota", observe: observe(warned("Job", "FailedCreate", quota)),
			cause: "QuotaExceeded", recheck: transient, atTheEnd: "Unknown(QuotaExceeded)", inMessage: "exceeded quota: full",
			inRemedy: "describe quota",
		},
		"QuotaStays": {
			reason: "the tolerance is bounded", observe: observe(warned("Job", "FailedCreate", quota),
				waited(finding.ReportedReason("QuotaExceeded"), transient)),
			want: "Unknown(QuotaExceeded)", inMessage: "exceeded quota: full", inRemedy: "describe quota",
		},
		"QuotaAfterSomethingElse": {
			reason:  "each cause has its own time limit",
			observe: observe(warned("Job", "FailedCreate", quota), waited(finding.ReportedReason("PodNotCreated"), transient)),
			cause:   "QuotaExceeded", recheck: transient, atTheEnd: "Unknown(QuotaExceeded)", inRemedy: "describe quota",
		},
		"ServiceAccountMissing": {
			reason: "a missing ServiceAccount does not appear",
			observe: observe(warned("Job", "FailedCreate",
				`Error creating: pods "p-" is forbidden: error looking up service account openshift-etcd/checker: serviceaccount "checker" not found`)),
			want: "Unknown(ServiceAccountMissing)", inMessage: `serviceaccount "checker" not found`, inRemedy: "get serviceaccounts",
		},
		"PodDeniedByTheRun": {
			reason: "the policy of the run denies what admission changed",
			observe: observe(warned("Job", "FailedCreate",
				`Error creating: pods "p-" is forbidden: ValidatingAdmissionPolicy 'preflight-pods-7f3c2a9152' with binding 'preflight-pods-7f3c2a9152' `+
					`denied request: the pod of a preflight runs as planned, but a mutating webhook or policy of the cluster changes spec.volumes["host"]`)),
			want:      "Unknown(AlteredByAdmission)",
			inMessage: `denied before it started, because a mutating webhook or policy of the cluster changes spec.volumes["host"]`,
			inRemedy:  "Exempt",
		},
		"PodNotJudgedByTheRun": {
			reason: "the policy of the run could not be evaluated",
			observe: observe(warned("Job", "FailedCreate",
				`Error creating: pods "p-" is forbidden: ValidatingAdmissionPolicy 'preflight-pods-7f3c2a9152' with binding 'preflight-pods-7f3c2a9152' `+
					`denied request: composited variable "job" fails to evaluate: operation cancelled: actual cost limit exceeded`)),
			want: "Unknown(AlteredByAdmission)", inMessage: "actual cost limit exceeded", inRemedy: "Exempt",
		},
		"PodSecurity": {
			reason: "the level of the namespace does not change",
			observe: observe(warned("Job", "FailedCreate",
				`Error creating: pods "p-" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`)),
			want: "Unknown(PodSecurity)", inMessage: "runAsNonRoot", inRemedy: "--show-labels",
		},
		"SCC": {
			reason: "admission of OpenShift",
			observe: observe(warned("Job", "FailedCreate",
				`Error creating: pods "p-" is forbidden: unable to validate against any security context constraint: []`)),
			want: "Unknown(SecurityContextConstraints)", inMessage: "security context constraint", inRemedy: "SCC",
		},
		"AdmissionDenied": {
			reason:  "a policy of the cluster",
			observe: observe(warned("Job", "FailedCreate", `Error creating: admission webhook "policy.example.com" denied the request: no`)),
			want:    "Unknown(AdmissionDenied)", inMessage: "policy.example.com", inRemedy: "policy or webhook",
		},
		"WebhookDown": {
			reason: "a webhook that is down may come back",
			observe: observe(warned("Job", "FailedCreate",
				`Error creating: Internal error occurred: failed calling webhook "policy.example.com": connection refused`)),
			cause: "PodNotCreated", recheck: transient, atTheEnd: "Unknown(PodNotCreated)", inMessage: "connection refused", inRemedy: "webhook",
		},
		"PodInvalid": {
			reason:  "an invalid pod remains invalid",
			observe: observe(warned("Job", "FailedCreate", `Error creating: Pod "p" is invalid: spec.x: Invalid value`)),
			want:    "Unknown(PodNotCreated)", inMessage: "Invalid value", inRemedy: "message",
		},
		"APIError": {
			reason:  "an error of the API server may be transient",
			observe: observe(warned("Job", "FailedCreate", `Error creating: etcdserver: leader changed`)),
			cause:   "PodNotCreated", recheck: transient, atTheEnd: "Unknown(PodNotCreated)", inMessage: "leader changed", inRemedy: "message",
		},
		"RejectedThenCreated": {
			reason: "an existing pod supersedes the rejection", observe: observe(pod(running), warned("Job", "FailedCreate", quota)),
			atTheEnd: "Unknown(Timeout)", inMessage: "timed out: the check is running", inRemedy: "Retry timeout",
		},
		"Unscheduled": {
			reason: "the scheduler needs a moment", observe: observe(pod(func(p *diagnosis.Pod) { p.Spec.NodeName = "" })),
			cause: "Unscheduled", atTheEnd: "Unknown(Unscheduled)", inMessage: "waits for the scheduler", inRemedy: "kube-scheduler",
		},
		"Unschedulable": {
			reason:  "an autoscaler may add a node until the deadline",
			observe: observe(pod(unscheduled), waited(finding.ReportedReason("Unschedulable"), time.Hour)),
			cause:   "Unschedulable", atTheEnd: "Unknown(Unschedulable)", inMessage: "3 Insufficient memory", inRemedy: "oc get nodes",
		},
		"AllCordoned": {
			reason: "a cordon may be about to be lifted", observe: observe(pod(unscheduledAs(cordonedNodes))),
			cause: "NoSchedulableNode", recheck: transient, atTheEnd: "Unknown(NoSchedulableNode)", inMessage: "is cordoned",
			inRemedy: "oc adm uncordon",
		},
		"AllStayCordoned": {
			reason:  "waiting does not lift a cordon",
			observe: observe(pod(unscheduledAs(cordonedNodes)), waited(finding.ReportedReason("NoSchedulableNode"), transient)),
			want:    "Unknown(NoSchedulableNode)", inMessage: "2 node(s) were unschedulable", inRemedy: "oc adm uncordon",
		},
		"NoNodes": {
			reason: "a hosted cluster without NodePools gets no node by waiting", observe: observe(
				pod(unscheduledAs("no nodes available to schedule pods")), waited(finding.ReportedReason("NoSchedulableNode"), transient)),
			want: "Unknown(NoSchedulableNode)", inMessage: "the cluster has no node", inRemedy: "NodePool",
		},
		"CordonedIn137": {
			reason: "the message of Kubernetes 1.37 does not name the taint, and nodes for infrastructure do not match",
			observe: observe(pod(unscheduledAs("0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) " +
				"had untolerated taint(s), 2 node(s) were unschedulable. no new claims to deallocate, preemption: none."))),
			cause: "NoSchedulableNode", recheck: transient, atTheEnd: "Unknown(NoSchedulableNode)", inMessage: "is cordoned",
			inRemedy: "oc adm uncordon",
		},
		"CordonedAndNotReady": {
			reason: "a node may become ready",
			observe: observe(pod(unscheduledAs("0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, " +
				"2 node(s) were unschedulable. preemption: none."))),
			cause: "Unschedulable", atTheEnd: "Unknown(Unschedulable)", inMessage: "not-ready", inRemedy: "oc get nodes",
		},
		"CordonedAndFull": {
			reason:  "a node that is not cordoned may become free",
			observe: observe(pod(unscheduledAs("0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable. preemption: none."))),
			cause:   "Unschedulable", atTheEnd: "Unknown(Unschedulable)", inMessage: "Insufficient memory", inRemedy: "oc get nodes",
		},
		"Creating": {
			reason: "the creation of a container takes a moment", observe: observe(pod(waiting("ContainerCreating", ""))),
			atTheEnd: "Unknown(Timeout)", inMessage: "being created on node node-1", inRemedy: "Retry timeout",
		},
		"InvalidImageName": {
			reason: "an invalid name remains invalid", observe: observe(pod(waiting("InvalidImageName", "couldn't parse image name"))),
			want: "Unknown(ImagePull)", inMessage: "couldn't parse", inRemedy: "pull secret",
		},
		"NeverPull": {
			reason: "pull policy Never with a missing image is permanent", observe: observe(pod(waiting("ErrImageNeverPull", ""))),
			want: "Unknown(ImagePull)", inMessage: "ErrImageNeverPull", inRemedy: "pull secret",
		},
		"ImageNotFound": {
			reason:  "a missing digest is permanent",
			observe: observe(pod(waiting("ErrImagePull", `rpc error: code = NotFound desc = failed to resolve image: not found`))),
			want:    "Unknown(ImagePull)", inMessage: "not found", inRemedy: "pull secret",
		},
		"ImageUnauthorized": {
			reason:  "missing credentials are permanent, and the back-off message repeats the cause",
			observe: observe(pod(waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: unexpected status: 401 Unauthorized`))),
			want:    "Unknown(ImagePull)", inMessage: "401 Unauthorized", inRemedy: "pull secret",
		},
		"InitImageNotFound": {
			reason:  "the images of init containers count",
			observe: observe(pod(initWaiting("ErrImagePull", "manifest unknown"), waiting("PodInitializing", ""))),
			want:    "Unknown(ImagePull)", inMessage: "manifest unknown", inRemedy: "pull secret",
		},
		"RegistryBusy": {
			reason:  "a registry under load is tolerated",
			observe: observe(pod(waiting("ErrImagePull", "429 Too Many Requests")), waited(finding.ReportedReason("ImagePull"), 30*time.Second)),
			cause:   "ImagePull", recheck: 60 * time.Second, atTheEnd: "Unknown(ImagePull)", inMessage: "429 Too Many Requests",
			inRemedy: "registry",
		},
		"RegistryStaysBusy": {
			reason: "the tolerance is bounded", observe: observe(pod(waiting("ImagePullBackOff", "429 Too Many Requests")),
				waited(finding.ReportedReason("ImagePull"), transient)),
			want: "Unknown(ImagePull)", inMessage: "429 Too Many Requests", inRemedy: "registry",
		},
		"RegistryNotResolved": {
			reason:  "a DNS error is about the network, not about the image",
			observe: observe(pod(waiting("ErrImagePull", "dial tcp: lookup registry: no such host"))),
			cause:   "ImagePull", recheck: transient, atTheEnd: "Unknown(ImagePull)", inMessage: "no such host", inRemedy: "registry",
		},
		"MirrorBusySourceUnauthorized": {
			reason: "a disconnected cluster depends on its mirror, and its source always rejects it",
			observe: observe(pod(waiting("ErrImagePull", "(Mirrors also failed: [mirror/x: pinging container registry mirror: received "+
				"unexpected HTTP status: 503 Service Unavailable]): quay.io/x: unauthorized"))),
			cause: "ImagePull", recheck: transient, atTheEnd: "Unknown(ImagePull)", inMessage: "503 Service Unavailable", inRemedy: "mirror",
		},
		"PullQPSExceeded": {
			reason: "the kubelet limits its own pulls", observe: observe(pod(waiting("ErrImagePull", "pull QPS exceeded"))),
			cause: "ImagePull", recheck: transient, atTheEnd: "Unknown(ImagePull)", inMessage: "QPS exceeded", inRemedy: "registry",
		},
		"ConfigMapMissing": {
			reason: "the release expects it", observe: observe(pod(waiting("CreateContainerConfigError", `configmap "settings" not found`))),
			want: "Unknown(ConfigMissing)", inMessage: `configmap "settings" not found`, inRemedy: "Create the object",
		},
		"KeyMissing": {
			reason: "a missing key is permanent", observe: observe(
				pod(waiting("CreateContainerConfigError", `couldn't find key level in ConfigMap openshift-etcd/settings`))),
			want: "Unknown(ContainerConfig)", inMessage: "couldn't find key", inRemedy: "message",
		},
		"ConfigNotSynced": {
			reason:  "the kubelet's cache may lag behind",
			observe: observe(pod(waiting("CreateContainerConfigError", `failed to sync configmap cache: timed out waiting for the condition`))),
			cause:   "ContainerConfig", recheck: transient, atTheEnd: "Unknown(ContainerConfig)", inMessage: "failed to sync", inRemedy: "message",
		},
		"ContainerError": {
			reason: "an error of the runtime may be transient", observe: observe(pod(waiting("CreateContainerError", `context deadline exceeded`))),
			cause: "ContainerError", recheck: transient, atTheEnd: "Unknown(ContainerError)", inMessage: "cannot be started", inRemedy: "owners",
		},
		"VolumeConfigMapMissing": {
			reason: "the only report is an event",
			observe: observe(pod(waiting("ContainerCreating", "")),
				warned("Pod", "FailedMount", `MountVolume.SetUp failed for volume "settings" : configmap "settings" not found`)),
			want: "Unknown(ConfigMissing)", inMessage: `configmap "settings" not found`, inRemedy: "Create the object",
		},
		"NamespaceNew": {
			reason: "a controller publishes this ConfigMap to a new namespace after a moment",
			observe: observe(pod(waiting("ContainerCreating", "")),
				warned("Pod", "FailedMount", `MountVolume.SetUp failed for volume "kube-api-access-x" : configmap "kube-root-ca.crt" not found`)),
			cause: "VolumeNotReady", atTheEnd: "Unknown(VolumeNotReady)", inMessage: `"kube-root-ca.crt" not found`, inRemedy: "message",
		},
		"VolumeSlow": {
			reason: "a mount may take a long time",
			observe: observe(pod(waiting("ContainerCreating", "")),
				warned("Pod", "FailedMount", `MountVolume.SetUp failed: object "a"/"b" not registered`)),
			cause: "VolumeNotReady", atTheEnd: "Unknown(VolumeNotReady)", inMessage: "not registered", inRemedy: "message",
		},
		"Sandbox": {
			reason:  "the network may come up",
			observe: observe(pod(waiting("ContainerCreating", "")), warned("Pod", "FailedCreatePodSandBox", `plugin type="bridge" failed (add)`)),
			cause:   "SandboxFailed", atTheEnd: "Unknown(SandboxFailed)", inMessage: "bridge", inRemedy: "network",
		},
		"OldWarning": {
			reason:  "an old warning does not count once the container runs",
			observe: observe(pod(running), warned("Pod", "FailedMount", `configmap "settings" not found`)), atTheEnd: "Unknown(Timeout)",
			inMessage: "is running", inRemedy: "Retry timeout",
		},
		"Running": {
			reason: "the last log lines are in the message", observe: observe(framed, pod(running), logged("step 2 of 3: reading members\n")),
			atTheEnd: "Unknown(Timeout)", inMessage: "last log lines: step 2 of 3", inRemedy: "Retry timeout",
		},
		"WatchFails": {
			reason:   "without the watch the state may be out of date",
			observe:  observe(pod(running), func(o *diagnosis.Observation) { o.APIErrors = "the watch on pods: connection refused" }),
			atTheEnd: "Unknown(Timeout)", inMessage: "connection refused", inRemedy: "Retry timeout",
		},
		"Retries": {
			reason: "an exit code does not decide while the Job retries", observe: observe(pod(ended(1, "")), logged("no quorum\n")),
			cause: "AttemptFailed", atTheEnd: "Unknown(AttemptFailed)", inMessage: "attempt 1 ended with exit code 1", inRemedy: "log of the check",
		},
		"InitRetries": {
			reason: "the exit code of an init container does not decide", observe: observe(pod(initEnded(1, "no network"))),
			cause: "InitFailed", atTheEnd: "Unknown(InitFailed)", inMessage: "no network", inRemedy: "owners",
		},
		"InitFailed": {
			reason:  "the exit code decides once the Job has failed",
			observe: observe(pod(initEnded(1, "no network")), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    "Unknown(InitFailed)", inMessage: "no network", inRemedy: "owners",
		},
		"Evicted": {
			reason: "an evicted check is retried", observe: observe(pod(evicted, ended(137, ""), gone)),
			cause: "Evicted", atTheEnd: "Unknown(Evicted)", inMessage: "low on resource", inRemedy: "oc get nodes",
		},
		"EvictedAndFailed": {
			reason:  "an eviction decides once the replacement Job has failed",
			observe: observe(pod(evicted, ended(137, ""), gone), failed(batchv1.JobReasonBackoffLimitExceeded), restarted),
			want:    "Unknown(Evicted)", inMessage: "low on resource", inRemedy: "oc get nodes",
		},
		"QuotaRequires": {
			reason: "a quota for requests that the pod does not specify is not used up",
			observe: observe(warned("Job", "FailedCreate",
				`Error creating: pods "p-" is forbidden: failed quota: compute: must specify limits.cpu for: check`)),
			want: "Unknown(QuotaRequires)", inMessage: "must specify limits.cpu", inRemedy: "LimitRange",
		},
		"OwnDeadline": {
			reason:  "a check that its pod's own deadline stopped was not finished",
			observe: observe(pod(pastDeadline, ended(1, "")), logged(""), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    "Unknown(DeadlineExceeded)", inMessage: "its pod exceeded its activeDeadlineSeconds: Pod was active", inRemedy: "owners",
		},
		"OwnDeadlineZero": {
			reason:  "exit code 0 of a check that was stopped is no pass",
			observe: observe(pod(pastDeadline, ended(0, "")), logged(""), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    "Unknown(DeadlineExceeded)", inMessage: "its pod exceeded", inRemedy: "owners",
		},
		"OwnDeadlineFinal": {
			reason:  "a final result was reported before",
			observe: observe(framed, pod(pastDeadline, ended(3, frame(t, preflight.StateFinal, reported("Alarm", preflight.Fail))))),
			want:    "Fail(Because)",
		},
		"DrainedZero": {
			reason: "exit code 0 of a check that was drained is no pass", observe: observe(pod(disrupted, ended(0, "")), logged("")),
			cause: "Disrupted", atTheEnd: "Unknown(Disrupted)", inMessage: "EvictionByEvictionAPI", inRemedy: "oc get nodes",
		},
		"Drained": {
			reason:  "an inconclusive result of an interrupted check does not decide",
			observe: observe(framed, pod(disrupted, ended(4, frame(t, preflight.StateFinal, reported("Quorum", preflight.Unknown))))),
			cause:   "Disrupted", atTheEnd: "Unknown(Disrupted)", inMessage: "EvictionByEvictionAPI", inRemedy: "oc get nodes",
		},
		"DrainedOOM": {
			reason:  "the status of a drained pod may be OOMKilled (kubernetes#140716)",
			observe: observe(framed, pod(disrupted, endedFor("OOMKilled", 137, "")), logged("")),
			cause:   "Disrupted", atTheEnd: "Unknown(Disrupted)", inMessage: "EvictionByEvictionAPI", inRemedy: "oc get nodes",
		},
		"DrainedAfterFailure": {
			reason:  "a failure decides although the pod was drained",
			observe: observe(framed, pod(disrupted, ended(3, frame(t, preflight.StateFinal, reported("Alarm", preflight.Fail))))),
			want:    "Fail(Because)",
		},
		"PodDeleted": {
			reason:   "the Job controller creates another pod",
			observe:  observe(framed, pod(deleting, ended(4, frame(t, preflight.StateFinal, reported("Quorum", preflight.Unknown))), gone)),
			atTheEnd: "Unknown(Timeout)", inMessage: "its pod is gone", inRemedy: "Retry timeout",
		},
		"PodVanished": {
			reason: "the Job controller creates another pod", observe: observe(pod(running, gone)),
			atTheEnd: "Unknown(Timeout)", inMessage: "its pod is gone", inRemedy: "Retry timeout",
		},
		"JobDeleted": {
			reason: "the Job was created again before", observe: observe(pod(running), deleted, restarted),
			want: "Unknown(JobDeleted)", inMessage: "deleted by another client: the check is running", inRemedy: "client that deletes",
		},
		"JobDeletedAfterResult": {
			reason:  "a result decides although the Job was deleted",
			observe: observe(framed, pod(ended(0, frame(t, preflight.StateFinal, reported("Quorum", preflight.Pass))), gone), deleted),
			want:    "Pass(Because)",
		},
		"DeadlineWhilePulling": {
			reason:  "the message has the last activity",
			observe: observe(pod(waiting("ErrImagePull", "429 Too Many Requests"), deleting), failed(batchv1.JobReasonDeadlineExceeded)),
			want:    "Unknown(DeadlineExceeded)", inMessage: "429 Too Many Requests", inRemedy: "cause of the delay",
		},
		"DeadlineWithoutAPod": {
			reason:  "without a pod the message has the rejection",
			observe: observe(warned("Job", "FailedCreate", quota), failed(batchv1.JobReasonDeadlineExceeded)),
			want:    "Unknown(DeadlineExceeded)", inMessage: "exceeded quota", inRemedy: "cause of the delay",
		},
		"FailedUnobserved": {
			reason: "the watch on pods may lag behind that on Jobs", observe: observe(pod(running), failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause: "Lost", recheck: 5 * time.Second, atTheEnd: "Unknown(Lost)", inMessage: "gone before its end was observed", inRemedy: "again",
		},
		"FailedAndLost": {
			reason: "the tolerance is bounded", observe: observe(pod(running, gone), failed(batchv1.JobReasonBackoffLimitExceeded),
				waited(finding.ReportedReason("Lost"), 5*time.Second), restarted),
			want: "Unknown(Lost)", inMessage: "gone before its end was observed", inRemedy: "again",
		},
		"FailedWithoutAPod": {
			reason:  "nothing of the outcome was observed",
			observe: observe(failed(batchv1.JobReasonBackoffLimitExceeded), waited(finding.ReportedReason("Lost"), time.Minute), restarted),
			want:    "Unknown(Lost)", inMessage: "no pod of it was observed", inRemedy: "again",
		},
		"CompleteUnobserved": {
			reason: "the result may have findings", observe: observe(framed, pod(running), condition(batchv1.JobSuccessCriteriaMet, "")),
			cause: "Lost", recheck: 5 * time.Second, atTheEnd: "Unknown(Lost)", inMessage: "the Job is complete", inRemedy: "again",
		},
		"CompleteAndLost": {
			reason: "a promised result that was not read is missing", observe: observe(framed, pod(running, gone),
				condition(batchv1.JobComplete, ""), waited(finding.ReportedReason("Lost"), time.Minute), restarted),
			want: "Unknown(Lost)", inMessage: "the Job is complete", inRemedy: "again",
		},
		"CompleteScript": {
			reason:  "the condition Complete implies exit code 0",
			observe: observe(pod(running, gone), condition(batchv1.JobComplete, ""), waited(finding.ReportedReason("Lost"), time.Minute)),
			want:    "Pass(Passed)",
		},
		"SidecarRunning": {
			reason: "all containers of the manifest must end", observe: observe(pod(ended(0, ""),
				container("sidecar", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})), logged(""), withSidecar),
			atTheEnd: "Unknown(Timeout)", inMessage: "other containers", inRemedy: "Retry timeout",
		},
		"Suspended": {
			reason: "a suspended Job waits", observe: observe(condition(batchv1.JobSuspended, "")),
			cause: "PodNotCreated", atTheEnd: "Unknown(PodNotCreated)", inMessage: "no pod yet", inRemedy: "controller",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnosis.Classify(tc.observe)
			if tc.want == "" {
				if got.State == diagnosis.Done || got.Detail == "" || got.Reason.String() != tc.cause || got.Recheck != tc.recheck {
					t.Fatalf("%s: want it to wait for %q and a recheck after %s, got %+v", tc.reason, tc.cause, tc.recheck, got)
				}
				expired(&tc.observe)
				got = diagnosis.Classify(tc.observe)
				tc.want = tc.atTheEnd
			}
			if got.State != diagnosis.Done || len(got.Findings) != 1 || !strings.HasSuffix(outcomes(got.Findings)[0], " "+tc.want) {
				t.Fatalf("%s: want %s, got %v %+v", tc.reason, tc.want, outcomes(got.Findings), got)
			}
			assertComplete(t, got)
			if f := got.Findings[0]; !strings.Contains(f.Message, tc.inMessage) || !strings.Contains(remedyOf(f), tc.inRemedy) {
				t.Errorf("%s: want cause %q and remedy %q, got %q and %q", tc.reason, tc.inMessage, tc.inRemedy, f.Message, remedyOf(f))
			}
		})
	}
}

func TestLostOutcomeIsRestartedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe diagnosis.Observation
		cause   string
		words   string
	}{
		"Deleted": {
			reason: "the Job was deleted before it had a result", observe: observe(pod(running), deleted),
			cause: "JobDeleted", words: "deleted by another client",
		},
		"DeletedUnseen": {
			reason: "the Job was never observed, and does not exist", observe: observe(deleted, func(o *diagnosis.Observation) { o.Job = nil }),
			cause: "JobDeleted", words: "deleted by another client",
		},
		"FailedByEviction": {
			reason:  "an eviction is not an attempt, although the manifest allows only one pod",
			observe: observe(pod(evicted, ended(137, ""), gone), failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause:   "Evicted", words: "low on resource",
		},
		"FailedByDrain": {
			reason: "a drain is not an attempt",
			observe: observe(framed, pod(disrupted, ended(4, frame(t, preflight.StateFinal, reported("Quorum", preflight.Unknown)))),
				failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause: "Disrupted", words: "EvictionByEvictionAPI",
		},
		"FailedByDeletedPod": {
			reason: "an inconclusive result of a deleted pod does not decide",
			observe: observe(framed, pod(deleting, ended(4, frame(t, preflight.StateFinal, reported("Quorum", preflight.Unknown))), gone),
				failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause: "PodDeleted", words: "deleted by another client",
		},
		"CompleteAndLost": {
			reason:  "the pod of a finished Job is gone with its node",
			observe: observe(framed, pod(running, gone), condition(batchv1.JobComplete, ""), waited(finding.ReportedReason("Lost"), time.Minute)),
			cause:   "Lost", words: "the Job is complete",
		},
		"FailedAndLost": {
			reason:  "the end of the Job was not observed",
			observe: observe(failed(batchv1.JobReasonBackoffLimitExceeded), waited(finding.ReportedReason("Lost"), time.Minute)),
			cause:   "Lost", words: "no pod of it was observed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnosis.Classify(tc.observe)
			if !got.Restart || got.State != diagnosis.Waiting || got.Reason.String() != tc.cause || !strings.Contains(got.Detail, tc.words) {
				t.Errorf("%s: want a restart for %s, got %+v", tc.reason, tc.cause, got)
			}
			restarted(&tc.observe)
			got = diagnosis.Classify(tc.observe)
			if want := wholeJob + "Unknown(" + tc.cause + ")"; got.Restart || len(got.Findings) != 1 || outcomes(got.Findings)[0] != want {
				t.Errorf("%s, but only once: want %s, got %+v", tc.reason, want, got)
			}
			assertComplete(t, got)
		})
	}
}

func TestPodsAreListedBeforeRestart(t *testing.T) {
	for name, end := range map[string]func(*diagnosis.Observation){
		"Complete": condition(batchv1.JobComplete, ""), "Failed": failed(batchv1.JobReasonBackoffLimitExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			for _, promise := range []func(*diagnosis.Observation){framed, func(*diagnosis.Observation) {}} {
				o := observe(promise, end, waited(finding.ReportedReason("Lost"), time.Minute))
				o.Listed = false
				if got := diagnosis.Classify(o); !got.ListPods || got.Restart || got.State == diagnosis.Done {
					t.Errorf("the watch on pods may lag behind, so they must be listed; got %+v", got)
				}
			}
		})
	}
}

func TestIdle(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe diagnosis.Observation
		want    bool
	}{
		"Unschedulable": {"no container has run", observe(pod(unscheduled)), true},
		"SecondAttempt": {"the state of an earlier attempt is kept", observe(pod(ended(1, "")), pod(unscheduled)), false},
		"InitHasRun":    {"an init container has run", observe(pod(initEnded(0, ""), unscheduled)), false},
		"Running":       {"the check runs", observe(pod(running)), false},
		"Pulling":       {"image pulls have their own time limit", observe(pod(waiting("ErrImagePull", "429 Too Many Requests"))), false},
		"WithoutAPod":   {"a new Job would not have a pod either", observe(), false},
		"VolumeMissing": {
			"a volume has no time limit",
			observe(pod(waiting("ContainerCreating", "")), warned("Pod", "FailedMount", "not registered")), true,
		},
		"PodGone": {"the Job controller creates another pod", observe(pod(unscheduled, gone)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diagnosis.Classify(tc.observe); got.Idle != tc.want || got.State == diagnosis.Done {
				t.Errorf("%s: want idle %t, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestAttempts(t *testing.T) {
	const final = preflight.StateFinal
	pass := frame(t, final, reported("Quorum", preflight.Pass))
	for name, tc := range map[string]struct {
		reason   string
		observe  diagnosis.Observation
		attempts int
		words    string
	}{
		"First": {"one attempt is not mentioned", observe(framed, pod(ended(0, pass))), 1, "member etcd-0 is pass"},
		"Flaky": {
			"a pass in a later attempt is mentioned", observe(framed, pod(ended(1, "")), pod(ended(0, pass))), 2,
			"passed in attempt 2 only: member",
		},
		"FlakyExit": {
			"also if the exit code decides", observe(pod(ended(1, "")), pod(ended(0, "")), logged("")), 2,
			"passed in attempt 2 only: the check",
		},
		"Drained": {
			"a drain is not an attempt", observe(framed, pod(disrupted, ended(143, ""), gone), pod(ended(0, pass))), 1,
			"member etcd-0 is pass",
		},
		"Evicted": {"an eviction is not an attempt", observe(framed, pod(evicted, gone), pod(ended(0, pass))), 1, "member etcd-0 is pass"},
		"Deleted": {
			"a deleted pod is not an attempt", observe(framed, pod(deleting, ended(137, ""), gone), pod(ended(0, pass))), 1,
			"member etcd-0 is pass",
		},
		"Vanished": {
			"a pod without an observed end is not an attempt", observe(framed, pod(running, gone), pod(ended(0, pass))), 1,
			"member etcd-0 is pass",
		},
		"Mixed": {
			"attempts are counted among disruptions", observe(framed, pod(ended(1, "")), pod(evicted, gone), pod(ended(0, pass))),
			2, "passed in attempt 2 only: member",
		},
		"Failure": {
			"the message of a failure is not changed",
			observe(framed, pod(ended(1, "")), pod(ended(3, frame(t, final, reported("Alarm", preflight.Fail))))), 2, "member etcd-0 is fail",
		},
		"LastDisrupted": {
			"the last pod is an attempt, although it was disrupted",
			observe(framed, pod(disrupted, ended(3, frame(t, final, reported("Alarm", preflight.Fail))))), 1, "member etcd-0 is fail",
		},
		"Restarted": {"a replacement Job counts from one", observe(framed, restarted, pod(ended(0, pass))), 1, "member etcd-0 is pass"},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnosis.Classify(tc.observe).Findings
			if len(got) != 1 || got[0].Job == nil || got[0].Job.Attempts != tc.attempts || !strings.HasPrefix(got[0].Message, tc.words) {
				t.Errorf("%s: want %d attempts and %q, got %+v", tc.reason, tc.attempts, tc.words, got)
			}
		})
	}
}

func TestJobOfFinding(t *testing.T) {
	o := observe(framed, pod(ended(1, "")), pod(func(p *diagnosis.Pod) {
		ended(3, frame(t, preflight.StateFinal, reported("Alarm", preflight.Fail)))(p)
		p.Status.ContainerStatuses[0].RestartCount = 1
	}))
	want := &finding.Job{
		Namespace: "openshift-etcd", Name: "etcd-preflight-7f3c2a9152", Attempts: 3, ExitCode: new(int32(3)), Node: "node-1",
		StartTime: "2027-01-15T08:00:00Z", CompletionTime: "2027-01-15T08:00:02Z",
	}
	if diff := cmp.Diff(want, diagnosis.Classify(o).Findings[0].Job); diff != "" {
		t.Errorf("Job (-want, +got):\n%s", diff)
	}
}
