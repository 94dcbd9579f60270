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
	"github.com/openshift/update-preflight/runner/jobs"
)

// answer is a finding as the tables have it: "Name Outcome(Reason)".
func answers(findings []finding.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Name+" "+string(f.Outcome)+"("+f.Reason+")")
	}
	return all
}

const whole = "Etcd.EtcdPreflight "

func TestWhatAContainerSaid(t *testing.T) {
	const final, unfinished = preflight.StateFinal, preflight.StateRunning
	pass, warn, fail := said("Quorum", preflight.Pass), said("Size", preflight.Warn), said("Alarm", preflight.Fail)
	unsure, skip := said("Quorum", preflight.Unknown), said("Quorum", preflight.Skipped)
	full := preflight.Result{State: final, RunID: runID, Findings: []preflight.Finding{pass, warn, fail}}
	short := full
	short.Truncated = true

	for name, tc := range map[string]struct {
		reason  string
		observe jobs.Observation
		want    []string
		wantLog bool
		words   string // in the message of the first finding
	}{
		"Pass": {
			reason:  "a container's end with its result is the answer, whatever the Job says yet",
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
			reason:  "the check says that it does not apply",
			observe: observe(framed, pod(ended(0, frame(t, final, skip)))),
			want:    []string{"Etcd.Quorum Skipped(Because)"},
		},
		"CouldNotTell": {
			reason:  "could not tell is an answer too",
			observe: observe(framed, pod(ended(4, frame(t, final, unsure)))),
			want:    []string{"Etcd.Quorum Unknown(Because)"},
		},
		"UnpromisedFrame": {
			reason:  "a result counts though nobody promised one",
			observe: observe(pod(ended(3, frame(t, final, fail)))),
			want:    []string{"Etcd.Alarm Fail(Because)"},
		},
		"FrameInNoise": {
			reason:  "what is around the result does not matter",
			observe: observe(framed, pod(ended(0, "warming up\n"+frame(t, final, pass)+"bye\n"))),
			want:    []string{"Etcd.Quorum Pass(Because)"},
		},
		"ReadTheLogFirst": {
			reason:  "without a result in the message it may be in the log",
			observe: observe(framed, pod(ended(0, ""))),
			wantLog: true,
		},
		"ReadTheLogOfAScript": {
			reason:  "a script may print a result without promising one",
			observe: observe(pod(ended(0, ""))),
			wantLog: true,
		},
		"ReadTheLogForTheRest": {
			reason:  "what was left out of the message is in the log",
			observe: observe(framed, pod(ended(3, frameOf(t, short)))),
			wantLog: true,
		},
		"FrameInLog": {
			reason:  "the log counts where the message has no result",
			observe: observe(framed, pod(ended(3, "")), logged("noise\n"+frame(t, final, fail))),
			want:    []string{"Etcd.Alarm Fail(Because)"},
		},
		"WholeFrameInLog": {
			reason:  "the whole result is better than the short one",
			observe: observe(framed, pod(ended(3, frameOf(t, preflight.Result{State: final, RunID: runID, Truncated: true, Findings: []preflight.Finding{fail}}))), logged(frameOf(t, full))),
			want:    []string{"Etcd.Quorum Pass(Because)", "Etcd.Size Warn(Because)", "Etcd.Alarm Fail(Because)"},
		},
		"ShortFrameOnly": {
			reason:  "a short result is an answer when the log is gone",
			observe: observe(framed, pod(ended(3, frameOf(t, short))), unreadable),
			want:    []string{"Etcd.Quorum Pass(Because)", "Etcd.Size Warn(Because)", "Etcd.Alarm Fail(Because)"},
		},
		"NoResult": {
			reason:  "a check that promised a result and exits 0 without one has not passed",
			observe: observe(framed, pod(ended(0, "")), logged("all fine\n")),
			want:    []string{whole + "Unknown(NoResult)"}, words: "exit code 0",
		},
		"NoResultNoLog": {
			reason:  "that the log could not be read is said",
			observe: observe(framed, pod(ended(0, "")), unreadable),
			want:    []string{whole + "Unknown(NoResult)"}, words: "i/o timeout",
		},
		"RunningFrameOnly": {
			reason:  "a program of the SDK's that did not come to its last word, promised or not",
			observe: observe(pod(ended(0, frame(t, unfinished, pass))), logged("")),
			want:    []string{whole + "Unknown(NoResult)"},
		},
		"RunningFrameWithAFail": {
			reason:  "what speaks against the update is not lost with the rest",
			observe: observe(framed, pod(ended(1, frame(t, unfinished, pass, fail, said("Size", preflight.Unknown)))), logged("boom"), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{whole + "Unknown(NoResult)", "Etcd.Alarm Fail(Because)"}, words: "boom",
		},
		"Contradiction": {
			reason:  "a result that passes and an exit code that does not cannot both be right",
			observe: observe(framed, pod(ended(1, frame(t, final, pass)))),
			want:    []string{whole + "Unknown(Contradiction)"}, words: "exit code 1",
		},
		"ContradictionWithAFail": {
			reason:  "a failure is kept when the exit code denies it",
			observe: observe(framed, pod(ended(0, frame(t, final, pass, fail)))),
			want:    []string{whole + "Unknown(Contradiction)", "Etcd.Alarm Fail(Because)"},
		},
		"AnotherRun": {
			reason:  "a result of another run says nothing about this one",
			observe: observe(framed, pod(ended(0, frameOf(t, preflight.Result{State: final, RunID: "another", Findings: full.Findings[:1]}))), logged("")),
			want:    []string{whole + "Unknown(BadResult)"}, words: `"another"`,
		},
		"Damaged": {
			reason:  "half a result is none",
			observe: observe(framed, pod(ended(0, strings.Replace(frame(t, final, pass), "Because", "Perhaps", 1))), logged("")),
			want:    []string{whole + "Unknown(BadResult)"}, words: "checksum",
		},
		"TooMany": {
			reason:  "dropping findings could drop the one that matters",
			observe: observe(framed, pod(ended(0, frame(t, final, many(201)...)))),
			want:    []string{whole + "Unknown(BadResult)"}, words: "201 findings",
		},
		"Script": {
			reason:  "without a promise the exit code is the answer",
			observe: observe(pod(ended(0, "")), logged("looks good\n")),
			want:    []string{whole + "Pass(Passed)"},
		},
		"ScriptWithoutLog": {
			reason:  "exit code 0 does not need a log",
			observe: observe(pod(ended(0, "")), unreadable),
			want:    []string{whole + "Pass(Passed)"},
		},
		"ScriptFails": {
			reason:  "the last lines of the log are the message, once the Job has given up",
			observe: observe(pod(ended(1, "one\ntwo\n")), logged("\x1b[31mno quorum\x1b[0m\n"), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{whole + "Fail(Failed)"}, words: "exited with code 1: no quorum",
		},
		"ScriptFailsWithoutLog": {
			reason:  "the kubelet has kept the last lines",
			observe: observe(pod(ended(1, "one\ntwo\n")), unreadable, failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{whole + "Fail(Failed)"}, words: "exited with code 1: one\ntwo",
		},
		"ScriptFailsAgain": {
			reason:  "the number of attempts is told",
			observe: observe(pod(ended(1, "")), pod(ended(1, "")), logged(""), condition(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{whole + "Fail(Failed)"}, words: "in the last of 2 attempts",
		},
		"SecondAttemptPasses": {
			reason:  "the last attempt decides",
			observe: observe(framed, pod(ended(1, "")), pod(ended(0, frame(t, final, pass)))),
			want:    []string{"Etcd.Quorum Pass(Because)"},
		},
		"LateResultOfAnEarlierAttempt": {
			reason:  "a result that was there is not lost because the Job tries again",
			observe: observe(framed, pod(ended(3, frame(t, final, fail))), pod(running)),
			want:    []string{"Etcd.Alarm Fail(Because)"},
		},
		"RestartedInPlace": {
			reason: "with restartPolicy OnFailure the result is that of the container before",
			observe: observe(framed, pod(func(p *jobs.Pod) {
				ended(3, frame(t, final, fail))(p)
				status := &p.Status.ContainerStatuses[0]
				status.LastTerminationState, status.RestartCount = status.State, 1
				status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			})),
			want: []string{"Etcd.Alarm Fail(Because)"},
		},
		"OutOfMemory": {
			reason:  "a container that was killed did not say what it would have, though it exits 0 (kubernetes#131530)",
			observe: observe(framed, pod(endedFor("OOMKilled", 0, frame(t, final, pass)))),
			want:    []string{whole + "Unknown(OOMKilled)"}, words: "ran out of memory",
		},
		"OutOfMemoryScript": {
			reason:  "a script that was killed has not passed",
			observe: observe(pod(endedFor("OOMKilled", 0, ""))),
			want:    []string{whole + "Unknown(OOMKilled)"},
		},
		"Killed": {
			reason:  "SIGKILL is nobody's answer",
			observe: observe(pod(ended(137, "")), logged("at work\n"), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want:    []string{whole + "Unknown(Killed)"}, words: "at work",
		},
		"NotProvided": {
			reason: "the enhancement allows /bin/preflight to be missing",
			observe: observe(pod(endedFor("StartError", 128,
				`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/bin/preflight": stat /bin/preflight: no such file or directory`))),
			want: []string{whole + "Skipped(NotProvided)"}, words: "no /bin/preflight",
		},
		"NotProvidedCRIO": {
			reason:  "CRI-O does not create the container, and crun has other words",
			observe: observe(pod(waiting("CreateContainerError", "container create failed: executable file `/bin/preflight` not found: No such file or directory"))),
			want:    []string{whole + "Skipped(NotProvided)"},
		},
		"PromisedButNotProvided": {
			reason:  "who promises a result has a program",
			observe: observe(framed, pod(endedFor("StartError", 128, `exec: "/bin/preflight": stat /bin/preflight: no such file or directory`))),
			want:    []string{whole + "Unknown(BinaryMissing)"},
		},
		"OtherBinaryMissing": {
			reason: "only /bin/preflight may be missing",
			observe: observe(pod(endedFor("StartError", 128, `exec: "/bin/check": stat /bin/check: no such file or directory`)), func(o *jobs.Observation) {
				o.Check.Job.Spec.Template.Spec.Containers[0].Command = []string{"/bin/check"}
			}),
			want: []string{whole + "Unknown(BinaryMissing)"},
		},
		"NotExecutable": {
			reason:  "a file that is there and cannot be run is a defect",
			observe: observe(pod(endedFor("StartError", 128, `exec: "/bin/preflight": permission denied`))),
			want:    []string{whole + "Unknown(NotExecutable)"}, words: "permission denied",
		},
		"HelperFailed": {
			reason: "a check with several containers passes when all of them do",
			observe: observe(pod(ended(0, ""), container("helper", corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no proxy"},
			})), logged(""), helper, failed(batchv1.JobReasonBackoffLimitExceeded)),
			want: []string{whole + "Unknown(ContainerFailed)"}, words: "no proxy",
		},
		"InjectedContainer": {
			reason: "a container that the manifest does not have is not waited for",
			observe: observe(pod(ended(0, ""), container("istio-proxy", corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{},
			})), logged("")),
			want: []string{whole + "Pass(Passed)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := jobs.Classify(tc.observe)
			if tc.wantLog {
				if got.ReadLog != tc.observe.Pods[0].Name || got.State == jobs.Done {
					t.Errorf("%s: want the log read, got %+v", tc.reason, got)
				}
				return
			}
			if diff := cmp.Diff(tc.want, answers(got.Findings)); diff != "" {
				t.Fatalf("%s (-want, +got):\n%s\n%+v", tc.reason, diff, got)
			}
			attested(t, got)
			if !strings.Contains(got.Findings[0].Message, tc.words) {
				t.Errorf("%s: %q is not in %q", tc.reason, tc.words, got.Findings[0].Message)
			}
		})
	}
}

// attested holds for every answer.
func attested(t *testing.T, reading jobs.Reading) {
	t.Helper()
	for _, f := range reading.Findings {
		stops := f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown
		if f.Blocks != stops || f.Source != finding.SourceJob || f.Job == nil || f.Job.Name != aCheck().Job.Name {
			t.Errorf("incomplete finding: %+v", f)
		}
		if strings.HasPrefix(f.Name, strings.TrimSpace(whole)) && stops && (f.Remediation == "" || len(f.Objects) == 0 || f.Message == "") {
			t.Errorf("a finding without cause, remedy or object: %+v", f)
		}
	}
}

func helper(o *jobs.Observation) {
	spec := &o.Check.Job.Spec.Template.Spec
	spec.Containers = append(spec.Containers, corev1.Container{Name: "helper"})
}

func many(n int) []preflight.Finding {
	var all []preflight.Finding
	for i := range n {
		all = append(all, said("Check"+strings.Repeat("X", i%100)+string(rune('a'+i/100)), preflight.Pass))
	}
	return all
}

func TestWhatIsInTheWay(t *testing.T) {
	const patience = 90 * time.Second
	quota := `Error creating: pods "p-" is forbidden: exceeded quota: full, requested: pods=1, used: pods=0, limited: pods=0`
	for name, tc := range map[string]struct {
		reason    string
		observe   jobs.Observation
		cause     string // while it waits
		recheck   time.Duration
		want      string // as an answer at once, or empty
		atTheEnd  string // when the time is up
		inMessage string
		inRemedy  string
	}{
		"JobNotSeen": {
			reason: "the watch may be behind", observe: observe(func(o *jobs.Observation) { o.Job = nil }),
			cause: "JobNotSeen", atTheEnd: "Unknown(JobNotSeen)", inMessage: "time is up: the API server has not shown the Job", inRemedy: "readyz",
		},
		"NoPodYet": {
			reason: "the Job controller takes a moment", observe: observe(),
			cause: "PodNotCreated", atTheEnd: "Unknown(PodNotCreated)", inMessage: "no pod yet", inRemedy: "kube-controller-manager",
		},
		"Quota": {
			reason: "another pod may free the quota", observe: observe(warned("Job", "FailedCreate", quota)),
			cause: "QuotaExceeded", recheck: patience, atTheEnd: "Unknown(QuotaExceeded)", inMessage: "exceeded quota: full", inRemedy: "describe quota",
		},
		"QuotaStays": {
			reason: "not for ever", observe: observe(warned("Job", "FailedCreate", quota), waited("QuotaExceeded", patience)),
			want: "Unknown(QuotaExceeded)", inMessage: "exceeded quota: full", inRemedy: "describe quota",
		},
		"QuotaAfterSomethingElse": {
			reason: "patience with one thing is not spent on another", observe: observe(warned("Job", "FailedCreate", quota), waited("PodNotCreated", patience)),
			cause: "QuotaExceeded", recheck: patience, atTheEnd: "Unknown(QuotaExceeded)", inRemedy: "describe quota",
		},
		"ServiceAccountMissing": {
			reason:  "nobody is going to create it",
			observe: observe(warned("Job", "FailedCreate", `Error creating: pods "p-" is forbidden: error looking up service account openshift-etcd/checker: serviceaccount "checker" not found`)),
			want:    "Unknown(ServiceAccountMissing)", inMessage: `serviceaccount "checker" not found`, inRemedy: "get serviceaccounts",
		},
		"PodSecurity": {
			reason:  "the namespace's level is a decision",
			observe: observe(warned("Job", "FailedCreate", `Error creating: pods "p-" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`)),
			want:    "Unknown(PodSecurity)", inMessage: "runAsNonRoot", inRemedy: "--show-labels",
		},
		"SCC": {
			reason:  "OpenShift's own admission",
			observe: observe(warned("Job", "FailedCreate", `Error creating: pods "p-" is forbidden: unable to validate against any security context constraint: []`)),
			want:    "Unknown(SecurityContextConstraints)", inMessage: "security context constraint", inRemedy: "SCC",
		},
		"AdmissionDenied": {
			reason:  "somebody's policy",
			observe: observe(warned("Job", "FailedCreate", `Error creating: admission webhook "policy.example.com" denied the request: no`)),
			want:    "Unknown(AdmissionDenied)", inMessage: "policy.example.com", inRemedy: "policy or webhook",
		},
		"WebhookDown": {
			reason:  "a webhook that is down may come back",
			observe: observe(warned("Job", "FailedCreate", `Error creating: Internal error occurred: failed calling webhook "policy.example.com": connection refused`)),
			cause:   "PodNotCreated", recheck: patience, atTheEnd: "Unknown(PodNotCreated)", inMessage: "connection refused", inRemedy: "webhook",
		},
		"PodInvalid": {
			reason:  "what is invalid stays invalid",
			observe: observe(warned("Job", "FailedCreate", `Error creating: Pod "p" is invalid: spec.x: Invalid value`)),
			want:    "Unknown(PodNotCreated)", inMessage: "Invalid value", inRemedy: "message",
		},
		"APITrouble": {
			reason:  "an API server that has no time gets some",
			observe: observe(warned("Job", "FailedCreate", `Error creating: etcdserver: leader changed`)),
			cause:   "PodNotCreated", recheck: patience, atTheEnd: "Unknown(PodNotCreated)", inMessage: "leader changed", inRemedy: "message",
		},
		"RefusedBeforeButThereNow": {
			reason: "a pod that is there was not refused", observe: observe(pod(running), warned("Job", "FailedCreate", quota)),
			atTheEnd: "Unknown(Timeout)", inMessage: "time is up: the check is running", inRemedy: "--timeout",
		},
		"Unscheduled": {
			reason: "the scheduler takes a moment", observe: observe(pod(func(p *jobs.Pod) { p.Spec.NodeName = "" })),
			cause: "Unscheduled", atTheEnd: "Unknown(Unscheduled)", inMessage: "waits for the scheduler", inRemedy: "kube-scheduler",
		},
		"Unschedulable": {
			reason: "an autoscaler may help, until the time is up", observe: observe(pod(unscheduled), waited("Unschedulable", time.Hour)),
			cause: "Unschedulable", atTheEnd: "Unknown(Unschedulable)", inMessage: "3 Insufficient memory", inRemedy: "oc get nodes",
		},
		"Creating": {
			reason: "a container takes a moment", observe: observe(pod(waiting("ContainerCreating", ""))),
			atTheEnd: "Unknown(Timeout)", inMessage: "being created on node node-1", inRemedy: "--timeout",
		},
		"InvalidImageName": {
			reason: "a name does not get better", observe: observe(pod(waiting("InvalidImageName", "couldn't parse image name"))),
			want: "Unknown(ImagePull)", inMessage: "couldn't parse", inRemedy: "pull secret",
		},
		"NeverPull": {
			reason: "nobody is going to bring it", observe: observe(pod(waiting("ErrImageNeverPull", ""))),
			want: "Unknown(ImagePull)", inMessage: "ErrImageNeverPull", inRemedy: "pull secret",
		},
		"ImageNotFound": {
			reason: "a digest that is not there does not appear", observe: observe(pod(waiting("ErrImagePull", `rpc error: code = NotFound desc = failed to resolve image: not found`))),
			want: "Unknown(ImagePull)", inMessage: "not found", inRemedy: "pull secret",
		},
		"ImageUnauthorized": {
			reason:  "credentials do not get better, and the back-off repeats the cause",
			observe: observe(pod(waiting("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: unexpected status: 401 Unauthorized`))),
			want:    "Unknown(ImagePull)", inMessage: "401 Unauthorized", inRemedy: "pull secret",
		},
		"InitImageNotFound": {
			reason: "init containers have images too", observe: observe(pod(initWaiting("ErrImagePull", "manifest unknown"), waiting("PodInitializing", ""))),
			want: "Unknown(ImagePull)", inMessage: "manifest unknown", inRemedy: "pull secret",
		},
		"RegistryBusy": {
			reason: "a registry that has no time gets some", observe: observe(pod(waiting("ErrImagePull", "429 Too Many Requests")), waited("ImagePull", 30*time.Second)),
			cause: "ImagePull", recheck: 60 * time.Second, atTheEnd: "Unknown(ImagePull)", inMessage: "429 Too Many Requests", inRemedy: "registry",
		},
		"RegistryStaysBusy": {
			reason: "not for ever", observe: observe(pod(waiting("ImagePullBackOff", "429 Too Many Requests")), waited("ImagePull", patience)),
			want: "Unknown(ImagePull)", inMessage: "429 Too Many Requests", inRemedy: "registry",
		},
		"RegistryNotResolved": {
			reason: "no such host is about the network, not about the image", observe: observe(pod(waiting("ErrImagePull", "dial tcp: lookup registry: no such host"))),
			cause: "ImagePull", recheck: patience, atTheEnd: "Unknown(ImagePull)", inMessage: "no such host", inRemedy: "registry",
		},
		"MirrorBusySourceClosed": {
			reason:  "a cluster that is cut off depends on its mirror, and is never let into the source",
			observe: observe(pod(waiting("ErrImagePull", "(Mirrors also failed: [mirror/x: pinging container registry mirror: received unexpected HTTP status: 503 Service Unavailable]): quay.io/x: unauthorized"))),
			cause:   "ImagePull", recheck: patience, atTheEnd: "Unknown(ImagePull)", inMessage: "503 Service Unavailable", inRemedy: "mirror",
		},
		"PullQPSExceeded": {
			reason: "a kubelet bounds its own pulls", observe: observe(pod(waiting("ErrImagePull", "pull QPS exceeded"))),
			cause: "ImagePull", recheck: patience, atTheEnd: "Unknown(ImagePull)", inMessage: "QPS exceeded", inRemedy: "registry",
		},
		"ConfigMapMissing": {
			reason: "the release expects it", observe: observe(pod(waiting("CreateContainerConfigError", `configmap "settings" not found`))),
			want: "Unknown(ConfigMissing)", inMessage: `configmap "settings" not found`, inRemedy: "create it",
		},
		"KeyMissing": {
			reason: "a ConfigMap without the key", observe: observe(pod(waiting("CreateContainerConfigError", `couldn't find key level in ConfigMap openshift-etcd/settings`))),
			want: "Unknown(ContainerConfig)", inMessage: "couldn't find key", inRemedy: "message",
		},
		"ConfigNotSynced": {
			reason: "the kubelet's cache may be behind", observe: observe(pod(waiting("CreateContainerConfigError", `failed to sync configmap cache: timed out waiting for the condition`))),
			cause: "ContainerConfig", recheck: patience, atTheEnd: "Unknown(ContainerConfig)", inMessage: "failed to sync", inRemedy: "message",
		},
		"ContainerError": {
			reason: "a runtime's trouble may pass", observe: observe(pod(waiting("CreateContainerError", `context deadline exceeded`))),
			cause: "ContainerError", recheck: patience, atTheEnd: "Unknown(ContainerError)", inMessage: "cannot be started", inRemedy: "owners",
		},
		"VolumeConfigMapMissing": {
			reason:  "only an event says so",
			observe: observe(pod(waiting("ContainerCreating", "")), warned("Pod", "FailedMount", `MountVolume.SetUp failed for volume "settings" : configmap "settings" not found`)),
			want:    "Unknown(ConfigMissing)", inMessage: `configmap "settings" not found`, inRemedy: "create it",
		},
		"NamespaceNew": {
			reason:  "what every namespace has takes a moment to be in a new one",
			observe: observe(pod(waiting("ContainerCreating", "")), warned("Pod", "FailedMount", `MountVolume.SetUp failed for volume "kube-api-access-x" : configmap "kube-root-ca.crt" not found`)),
			cause:   "VolumeNotReady", atTheEnd: "Unknown(VolumeNotReady)", inMessage: `"kube-root-ca.crt" not found`, inRemedy: "message",
		},
		"VolumeSlow": {
			reason:  "a mount may take long",
			observe: observe(pod(waiting("ContainerCreating", "")), warned("Pod", "FailedMount", `MountVolume.SetUp failed: object "a"/"b" not registered`)),
			cause:   "VolumeNotReady", atTheEnd: "Unknown(VolumeNotReady)", inMessage: "not registered", inRemedy: "message",
		},
		"Sandbox": {
			reason:  "the network may come up",
			observe: observe(pod(waiting("ContainerCreating", "")), warned("Pod", "FailedCreatePodSandBox", `plugin type="bridge" failed (add)`)),
			cause:   "SandboxFailed", atTheEnd: "Unknown(SandboxFailed)", inMessage: "bridge", inRemedy: "network",
		},
		"OldWarning": {
			reason:  "what is over is not in the way",
			observe: observe(pod(running), warned("Pod", "FailedMount", `configmap "settings" not found`)), atTheEnd: "Unknown(Timeout)", inMessage: "is running", inRemedy: "--timeout",
		},
		"Running": {
			reason: "the last words help", observe: observe(framed, pod(running), logged("step 2 of 3: reading members\n")),
			atTheEnd: "Unknown(Timeout)", inMessage: "its last words: step 2 of 3", inRemedy: "--timeout",
		},
		"WatchTrouble": {
			reason: "what was not seen may have happened", observe: observe(pod(running), func(o *jobs.Observation) { o.Trouble = "the watch on pods: connection refused" }),
			atTheEnd: "Unknown(Timeout)", inMessage: "connection refused", inRemedy: "--timeout",
		},
		"TriesAgain": {
			reason: "an exit code is no answer as long as the Job tries again", observe: observe(pod(ended(1, "")), logged("no quorum\n")),
			cause: "AttemptFailed", atTheEnd: "Unknown(AttemptFailed)", inMessage: "attempt 1 ended with exit code 1", inRemedy: "check says",
		},
		"InitTriesAgain": {
			reason: "so are init containers", observe: observe(pod(initEnded(1, "no network"))),
			cause: "InitFailed", atTheEnd: "Unknown(InitFailed)", inMessage: "no network", inRemedy: "owners",
		},
		"InitFailed": {
			reason: "until the Job has given up", observe: observe(pod(initEnded(1, "no network")), failed(batchv1.JobReasonBackoffLimitExceeded)),
			want: "Unknown(InitFailed)", inMessage: "no network", inRemedy: "owners",
		},
		"Evicted": {
			reason: "an evicted check runs again", observe: observe(pod(evicted, ended(137, ""), gone)),
			cause: "Evicted", atTheEnd: "Unknown(Evicted)", inMessage: "low on resource", inRemedy: "oc get nodes",
		},
		"EvictedForGood": {
			reason: "unless the Job has given up", observe: observe(pod(evicted, ended(137, ""), gone), failed(batchv1.JobReasonBackoffLimitExceeded), restarted),
			want: "Unknown(Evicted)", inMessage: "low on resource", inRemedy: "oc get nodes",
		},
		"Drained": {
			reason: "that it was interrupted is not the check's answer", observe: observe(framed, pod(disrupted, ended(4, frame(t, preflight.StateFinal, said("Quorum", preflight.Unknown))))),
			cause: "Disrupted", atTheEnd: "Unknown(Disrupted)", inMessage: "EvictionByEvictionAPI", inRemedy: "oc get nodes",
		},
		"DrainedOOM": {
			reason: "a drained pod may read OOMKilled (kubernetes#140716)", observe: observe(framed, pod(disrupted, endedFor("OOMKilled", 137, "")), logged("")),
			cause: "Disrupted", atTheEnd: "Unknown(Disrupted)", inMessage: "EvictionByEvictionAPI", inRemedy: "oc get nodes",
		},
		"DrainedAfterAFailure": {
			reason: "a definite failure is one in whatever pod", observe: observe(framed, pod(disrupted, ended(3, frame(t, preflight.StateFinal, said("Alarm", preflight.Fail))))),
			want: "Fail(Because)",
		},
		"PodDeleted": {
			reason: "the Job controller makes another one", observe: observe(framed, pod(deleting, ended(4, frame(t, preflight.StateFinal, said("Quorum", preflight.Unknown))), gone)),
			atTheEnd: "Unknown(Timeout)", inMessage: "its pod is gone", inRemedy: "--timeout",
		},
		"PodVanished": {
			reason: "the Job controller makes another one", observe: observe(pod(running, gone)),
			atTheEnd: "Unknown(Timeout)", inMessage: "its pod is gone", inRemedy: "--timeout",
		},
		"JobDeleted": {
			reason: "it was started once more already", observe: observe(pod(running), deleted, restarted),
			want: "Unknown(JobDeleted)", inMessage: "deleted by somebody else: the check is running", inRemedy: "who deletes",
		},
		"JobDeletedAfterItsEnd": {
			reason: "an answer stays one", observe: observe(framed, pod(ended(0, frame(t, preflight.StateFinal, said("Quorum", preflight.Pass))), gone), deleted),
			want: "Pass(Because)",
		},
		"DeadlineWhilePulling": {
			reason: "what it was doing is the cause", observe: observe(pod(waiting("ErrImagePull", "429 Too Many Requests"), deleting), failed(batchv1.JobReasonDeadlineExceeded)),
			want: "Unknown(DeadlineExceeded)", inMessage: "429 Too Many Requests", inRemedy: "waited for",
		},
		"DeadlineWithoutAPod": {
			reason: "no pod at all", observe: observe(warned("Job", "FailedCreate", quota), failed(batchv1.JobReasonDeadlineExceeded)),
			want: "Unknown(DeadlineExceeded)", inMessage: "exceeded quota", inRemedy: "waited for",
		},
		"FailedButNotSeen": {
			reason: "the watch on pods may be behind that on Jobs", observe: observe(pod(running), failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause: "Lost", recheck: 5 * time.Second, atTheEnd: "Unknown(Lost)", inMessage: "gone before anybody saw why", inRemedy: "again",
		},
		"FailedAndLost": {
			reason: "not for ever", observe: observe(pod(running, gone), failed(batchv1.JobReasonBackoffLimitExceeded), waited("Lost", 5*time.Second), restarted),
			want: "Unknown(Lost)", inMessage: "gone before anybody saw why", inRemedy: "again",
		},
		"FailedWithoutAPod": {
			reason: "nothing is known", observe: observe(failed(batchv1.JobReasonBackoffLimitExceeded), waited("Lost", time.Minute), restarted),
			want: "Unknown(Lost)", inMessage: "no pod of it was seen", inRemedy: "again",
		},
		"CompleteButNotSeen": {
			reason: "what it said may matter", observe: observe(framed, pod(running), condition(batchv1.JobSuccessCriteriaMet, "")),
			cause: "Lost", recheck: 5 * time.Second, atTheEnd: "Unknown(Lost)", inMessage: "the Job is complete", inRemedy: "again",
		},
		"CompleteAndLost": {
			reason: "a promised result that nobody saw is none", observe: observe(framed, pod(running, gone), condition(batchv1.JobComplete, ""), waited("Lost", time.Minute), restarted),
			want: "Unknown(Lost)", inMessage: "the Job is complete", inRemedy: "again",
		},
		"CompleteScript": {
			reason: "of a script the Job controller knows the exit code", observe: observe(pod(running, gone), condition(batchv1.JobComplete, ""), waited("Lost", time.Minute)),
			want: "Pass(Passed)",
		},
		"HelperRunning": {
			reason: "all containers of the manifest must end", observe: observe(pod(ended(0, ""), container("helper", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})), logged(""), helper),
			atTheEnd: "Unknown(Timeout)", inMessage: "other containers", inRemedy: "--timeout",
		},
		"Suspended": {
			reason: "a Job that somebody suspends waits", observe: observe(condition(batchv1.JobSuspended, "")),
			cause: "PodNotCreated", atTheEnd: "Unknown(PodNotCreated)", inMessage: "no pod yet", inRemedy: "controller",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := jobs.Classify(tc.observe)
			if tc.want == "" {
				if got.State == jobs.Done || got.Detail == "" || got.Cause != tc.cause || got.Recheck != tc.recheck {
					t.Fatalf("%s: want it to wait for %q and look again after %s, got %+v", tc.reason, tc.cause, tc.recheck, got)
				}
				expired(&tc.observe)
				got = jobs.Classify(tc.observe)
				tc.want = tc.atTheEnd
			}
			if got.State != jobs.Done || len(got.Findings) != 1 || !strings.HasSuffix(answers(got.Findings)[0], " "+tc.want) {
				t.Fatalf("%s: want %s, got %v %+v", tc.reason, tc.want, answers(got.Findings), got)
			}
			attested(t, got)
			if f := got.Findings[0]; !strings.Contains(f.Message, tc.inMessage) || !strings.Contains(f.Remediation, tc.inRemedy) {
				t.Errorf("%s: want cause %q and remedy %q, got %q and %q", tc.reason, tc.inMessage, tc.inRemedy, f.Message, f.Remediation)
			}
		})
	}
}

func TestWhatIsLostIsStartedOnceMore(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe jobs.Observation
		cause   string
		words   string
	}{
		"Deleted": {
			reason: "somebody deleted the Job before it had an answer", observe: observe(pod(running), deleted),
			cause: "JobDeleted", words: "deleted by somebody else",
		},
		"DeletedUnseen": {
			reason: "it was never seen, and is not there", observe: observe(deleted, func(o *jobs.Observation) { o.Job = nil }),
			cause: "JobDeleted", words: "deleted by somebody else",
		},
		"GivenUpForAnEviction": {
			reason:  "a Job whose author has it end with its first pod was no attempt",
			observe: observe(pod(evicted, ended(137, ""), gone), failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause:   "Evicted", words: "low on resource",
		},
		"GivenUpForADrain": {
			reason:  "so it is with a drain",
			observe: observe(framed, pod(disrupted, ended(4, frame(t, preflight.StateFinal, said("Quorum", preflight.Unknown)))), failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause:   "Disrupted", words: "EvictionByEvictionAPI",
		},
		"GivenUpForADeletedPod": {
			reason:  "what a check says whose pod was deleted under it is no answer either",
			observe: observe(framed, pod(deleting, ended(4, frame(t, preflight.StateFinal, said("Quorum", preflight.Unknown))), gone), failed(batchv1.JobReasonBackoffLimitExceeded)),
			cause:   "PodDeleted", words: "deleted by somebody else",
		},
		"CompleteAndLost": {
			reason:  "the pod of a finished Job goes with its node",
			observe: observe(framed, pod(running, gone), condition(batchv1.JobComplete, ""), waited("Lost", time.Minute)),
			cause:   "Lost", words: "the Job is complete",
		},
		"FailedAndLost": {
			reason:  "nobody saw why",
			observe: observe(failed(batchv1.JobReasonBackoffLimitExceeded), waited("Lost", time.Minute)),
			cause:   "Lost", words: "no pod of it was seen",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := jobs.Classify(tc.observe)
			if !got.Restart || got.State != jobs.Waiting || got.Cause != tc.cause || !strings.Contains(got.Detail, tc.words) {
				t.Errorf("%s: want it started again for %s, got %+v", tc.reason, tc.cause, got)
			}
			restarted(&tc.observe)
			got = jobs.Classify(tc.observe)
			if want := whole + "Unknown(" + tc.cause + ")"; got.Restart || len(got.Findings) != 1 || answers(got.Findings)[0] != want {
				t.Errorf("%s, but not for ever: want %s, got %+v", tc.reason, want, got)
			}
			attested(t, got)
		})
	}
}

func TestNothingIsLostBeforeItWasLookedFor(t *testing.T) {
	for name, end := range map[string]func(*jobs.Observation){
		"Complete": condition(batchv1.JobComplete, ""), "Failed": failed(batchv1.JobReasonBackoffLimitExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			for _, promise := range []func(*jobs.Observation){framed, func(*jobs.Observation) {}} {
				o := observe(promise, end, waited("Lost", time.Minute))
				o.Listed = false
				if got := jobs.Classify(o); !got.ListPods || got.Restart || got.State == jobs.Done {
					t.Errorf("the watch on pods may be behind, so they are to be listed; got %+v", got)
				}
			}
		})
	}
}

func TestWhatMayStepAside(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe jobs.Observation
		want    bool
	}{
		"Unschedulable":   {"nothing of it has run", observe(pod(unscheduled)), true},
		"TriedBefore":     {"what an earlier attempt came to is not thrown away", observe(pod(ended(1, "")), pod(unscheduled)), false},
		"InitHasRun":      {"an init container has done its work", observe(pod(initEnded(0, ""), unscheduled)), false},
		"Running":         {"it is at work", observe(pod(running)), false},
		"Pulling":         {"the patience with that is bounded", observe(pod(waiting("ErrImagePull", "429 Too Many Requests"))), false},
		"WithoutAPod":     {"another Job would not have one either", observe(), false},
		"VolumeNotThere":  {"a volume may take for ever", observe(pod(waiting("ContainerCreating", "")), warned("Pod", "FailedMount", "not registered")), true},
		"ItsPodGoesAlong": {"another one comes by itself", observe(pod(unscheduled, gone)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := jobs.Classify(tc.observe); got.Idle != tc.want || got.State == jobs.Done {
				t.Errorf("%s: want idle %t, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestAttempts(t *testing.T) {
	const final = preflight.StateFinal
	pass := frame(t, final, said("Quorum", preflight.Pass))
	for name, tc := range map[string]struct {
		reason   string
		observe  jobs.Observation
		attempts int
		words    string
	}{
		"AtOnce":     {"there is nothing to tell", observe(framed, pod(ended(0, pass))), 1, "member etcd-0 is pass"},
		"Flaky":      {"a pass that was none at first is told", observe(framed, pod(ended(1, "")), pod(ended(0, pass))), 2, "passed in attempt 2 only: member"},
		"FlakyExit":  {"also where the exit code is the answer", observe(pod(ended(1, "")), pod(ended(0, "")), logged("")), 2, "passed in attempt 2 only: the check"},
		"Drained":    {"a drain is no attempt", observe(framed, pod(disrupted, ended(143, ""), gone), pod(ended(0, pass))), 1, "member etcd-0 is pass"},
		"Evicted":    {"an eviction is no attempt", observe(framed, pod(evicted, gone), pod(ended(0, pass))), 1, "member etcd-0 is pass"},
		"Deleted":    {"nor is a pod that somebody deleted", observe(framed, pod(deleting, ended(137, ""), gone), pod(ended(0, pass))), 1, "member etcd-0 is pass"},
		"Vanished":   {"nor one that was not seen to end", observe(framed, pod(running, gone), pod(ended(0, pass))), 1, "member etcd-0 is pass"},
		"AllOfThem":  {"what counts is counted", observe(framed, pod(ended(1, "")), pod(evicted, gone), pod(ended(0, pass))), 2, "passed in attempt 2 only: member"},
		"AFailure":   {"a failure says it in its own words", observe(framed, pod(ended(1, "")), pod(ended(3, frame(t, final, said("Alarm", preflight.Fail))))), 2, "member etcd-0 is fail"},
		"LastOfAll":  {"the last one is one, whatever became of it", observe(framed, pod(disrupted, ended(3, frame(t, final, said("Alarm", preflight.Fail))))), 1, "member etcd-0 is fail"},
		"AStandInOK": {"what stands in for a lost one begins to count anew", observe(framed, restarted, pod(ended(0, pass))), 1, "member etcd-0 is pass"},
	} {
		t.Run(name, func(t *testing.T) {
			got := jobs.Classify(tc.observe).Findings
			if len(got) != 1 || got[0].Job == nil || got[0].Job.Attempts != tc.attempts || !strings.HasPrefix(got[0].Message, tc.words) {
				t.Errorf("%s: want %d attempts and %q, got %+v", tc.reason, tc.attempts, tc.words, got)
			}
		})
	}
}

func TestTheJobOfAFinding(t *testing.T) {
	o := observe(framed, pod(ended(1, "")), pod(func(p *jobs.Pod) {
		ended(3, frame(t, preflight.StateFinal, said("Alarm", preflight.Fail)))(p)
		p.Status.ContainerStatuses[0].RestartCount = 1
	}))
	want := &finding.Job{
		Namespace: "openshift-etcd", Name: "etcd-preflight-7f3c2a9152", Attempts: 3, ExitCode: new(int32(3)), Node: "node-1",
		StartTime: "2027-01-15T08:00:00Z", CompletionTime: "2027-01-15T08:00:02Z",
	}
	if diff := cmp.Diff(want, jobs.Classify(o).Findings[0].Job); diff != "" {
		t.Errorf("where and when it ran (-want, +got):\n%s", diff)
	}
}
