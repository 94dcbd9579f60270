package jobs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/label"
)

// The Job is compared when it is created, but admission can change its pods later.
func TestAttacksOnPods(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1.PodSpec)
		want   string
		words  string // part of the message
	}{
		"Unchanged": {reason: "the pod is that of the Job", change: func(*corev1.PodSpec) {}, want: "Etcd.Quorum Pass(Because)"},
		"Command": {
			reason: "another program reports the result", change: func(spec *corev1.PodSpec) { spec.Containers[0].Command = []string{"/bin/true"} },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `spec.containers["check"].command[0] is "/bin/true"`,
		},
		"Arguments": {
			reason: "the arguments change the program", change: func(spec *corev1.PodSpec) { spec.Containers[0].Args = []string{"--version"} },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: "args",
		},
		"Image": {
			reason: "another image reports the result", change: func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/other" },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `image is "quay.io/other"`,
		},
		"Environment": {
			reason: "a preloaded library is another program",
			change: func(spec *corev1.PodSpec) {
				spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/injected.so"})
			},
			want: wholeJob + "Unknown(AlteredByAdmission)", words: "env",
		},
		"Message": {
			reason: "the result is read from another file",
			change: func(spec *corev1.PodSpec) { spec.Containers[0].TerminationMessagePath = "/injected/result" },
			want:   wholeJob + "Unknown(AlteredByAdmission)", words: "terminationMessagePath",
		},
		"Account": {
			reason: "the check reads as another account", change: func(spec *corev1.PodSpec) { spec.ServiceAccountName = "other" },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `serviceAccountName is "other"`,
		},
		"Renamed": {
			reason: "another container has the name of the check", change: func(spec *corev1.PodSpec) { spec.Containers[0].Name = "other" },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `containers["check"] is not set`,
		},
		"DefaultAccount": {
			reason: "the API server sets the default account", change: func(spec *corev1.PodSpec) { spec.ServiceAccountName = "default" },
			want: "Etcd.Quorum Pass(Because)",
		},
		"Sidecar": {
			reason: "another container does not change the check",
			change: func(spec *corev1.PodSpec) {
				spec.Containers = append(spec.Containers, corev1.Container{Name: "proxy", Image: "quay.io/proxy"})
			},
			want: "Etcd.Quorum Pass(Because)",
		},
		"InitContainer": {
			reason: "another init container does not change the check",
			change: func(spec *corev1.PodSpec) {
				spec.InitContainers = []corev1.Container{{Name: "init", Image: "quay.io/init"}}
			},
			want: "Etcd.Quorum Pass(Because)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			altered := func(p *diagnosis.Pod) {
				spec := aCheck().Job.Spec.Template.Spec.DeepCopy()
				tc.change(spec)
				p.Spec, p.Labels = *spec, aCheck().Job.Spec.Template.Labels
			}
			got := diagnosis.Classify(observe(framed, pod(altered, ended(0, frame(t, preflight.StateFinal, reported("Quorum", preflight.Pass))))))
			if diff := cmp.Diff([]string{tc.want}, outcomes(got.Findings)); diff != "" {
				t.Fatalf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(got.Findings[0].Message, tc.words) {
				t.Errorf("%s: %q is not in %q", tc.reason, tc.words, got.Findings[0].Message)
			}
		})
	}
}

// ofPolicy is the pod of a check that ends, after a mutating policy has changed it.
func ofPolicy(code int32, changes ...func(*corev1.Pod)) func(*diagnosis.Pod) {
	return func(p *diagnosis.Pod) {
		p.Spec = *aCheck().Job.Spec.Template.Spec.DeepCopy()
		ended(code, "")(p)
		for _, change := range changes {
			change(p.Pod)
		}
	}
}

func without(label string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { delete(pod.Labels, label) }
}

func otherProgram(pod *corev1.Pod) { pod.Spec.Containers[0].Args = []string{"pass"} }

// selecting makes the fake API server select what it returns to a watch, as a real one does.
func (s *simulation) selecting(resource string) {
	s.client.PrependWatchReactor(resource, func(action clienttesting.Action) (bool, watch.Interface, error) {
		selected := labels.Everything()
		if watching, ok := action.(clienttesting.WatchAction); ok {
			selected = watching.GetWatchRestrictions().Labels
		}
		all, err := s.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		shown := watch.NewRaceFreeFake()
		s.alive.Go(func() {
			defer all.Stop()
			for {
				select {
				case <-s.ctx.Done():
					return
				case event := <-all.ResultChan():
					if object, err := meta.Accessor(event.Object); err == nil && selected.Matches(labels.Set(object.GetLabels())) {
						shown.Action(event.Type, event.Object)
					}
				}
			}
		})
		return true, shown, err
	})
}

// What admission can change of a pod does not decide whether it is compared: a Job whose pod was not compared does not
// pass.
func TestAttacksByHiddenPods(t *testing.T) {
	const lost, altered, passed = wholeJob + "Unknown(Lost)", wholeJob + "Unknown(AlteredByAdmission)", wholeJob + "Pass(Passed)"
	for name, tc := range map[string]struct {
		reason string
		pods   []func(*diagnosis.Pod)
		want   string
		words  string // part of the message
		status batchv1.JobStatus
	}{
		"Unchanged": {reason: "the pod is that of the Job", pods: []func(*diagnosis.Pod){ofPolicy(0)}, want: passed},
		"Program": {
			reason: "no watch shows the pod with another program",
			pods:   []func(*diagnosis.Pod){ofPolicy(0, without(label.Run), otherProgram)}, want: altered, words: label.Run,
		},
		"Hidden": {
			reason: "who removes the label hides the pod from others, too",
			pods:   []func(*diagnosis.Pod){ofPolicy(0, without(label.Run))}, want: altered, words: label.Run + " is not set",
		},
		"OtherRun": {
			reason: "the label of another run",
			pods:   []func(*diagnosis.Pod){ofPolicy(0, func(pod *corev1.Pod) { pod.Labels[label.Run] = "x" })}, want: altered, words: label.Run,
		},
		"JobName": {
			reason: "nothing is selected by the label with the name of the Job",
			pods:   []func(*diagnosis.Pod){ofPolicy(0, without(batchv1.JobNameLabel))}, want: passed,
		},
		"JobNameAndProgram": {
			reason: "the pod is found by its owner", pods: []func(*diagnosis.Pod){ofPolicy(0, without(batchv1.JobNameLabel), otherProgram)},
			want: altered, words: "args",
		},
		"OwnerName": {
			reason: "the pod is found by the UID of its owner, whatever its name",
			pods:   []func(*diagnosis.Pod){ofPolicy(0, otherProgram, func(pod *corev1.Pod) { pod.OwnerReferences[0].Name = "other" })},
			want:   altered, words: "args",
		},
		"AllLabels": {
			reason: "the pod cannot be found after its end",
			pods:   []func(*diagnosis.Pod){ofPolicy(0, func(pod *corev1.Pod) { pod.Labels = nil })}, want: lost,
		},
		"NoOwner": {
			reason: "a pod without the Job as its controller is not of the Job",
			pods:   []func(*diagnosis.Pod){ofPolicy(0, func(pod *corev1.Pod) { pod.OwnerReferences = nil })}, want: lost,
		},
		"OtherOwner": {
			reason: "a pod of another Job", want: lost,
			pods: []func(*diagnosis.Pod){ofPolicy(0, func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "other" })},
		},
		"NoPod": {reason: "the pod was deleted before it was seen", want: lost, status: batchv1.JobStatus{Succeeded: 1}},
		"FirstAttempt": {
			reason: "a hidden attempt had another program", want: altered, words: label.Run, status: batchv1.JobStatus{Succeeded: 1, Failed: 1},
			pods: []func(*diagnosis.Pod){ofPolicy(1, without(label.Run), otherProgram), ofPolicy(0)},
		},
		"SeenAttempt": {
			reason: "an attempt had another program, and the last one has the planned one", want: altered, words: "args",
			status: batchv1.JobStatus{Succeeded: 1, Failed: 1},
			pods:   []func(*diagnosis.Pod){ofPolicy(1, otherProgram), ofPolicy(0)},
		},
		"LostAttempt": {
			reason: "an attempt was never seen", want: lost, status: batchv1.JobStatus{Succeeded: 1, Failed: 1},
			pods: []func(*diagnosis.Pod){ofPolicy(0)},
		},
		"Attempts": {
			reason: "all attempts had the planned program", want: passed, status: batchv1.JobStatus{Succeeded: 1, Failed: 1},
			pods: []func(*diagnosis.Pod){ofPolicy(1), ofPolicy(0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := aCheck()
				s := newSimulation(t.Context(), t, func(s *simulation, job *batchv1.Job) {
					for i, change := range tc.pods {
						if i == len(tc.pods)-1 && tc.status.Failed > 0 { // the controller counts a failed pod before it replaces it
							job.Status.Failed = tc.status.Failed
							_, err := s.client.BatchV1().Jobs(job.Namespace).UpdateStatus(s.ctx, job, metav1.UpdateOptions{})
							s.check(err)
							s.pass(10 * time.Second)
						}
						s.pod(job, change, func(p *diagnosis.Pod) {
							p.Name += string(rune('a' + i))
							p.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
						})
					}
					job.Status = tc.status
					s.finish(job)
				}, check)
				s.selecting("pods")
				var message string
				got := s.collect(jobs.Options{Progress: nil})
				if last := s.last[check.Name].Findings; len(last) > 0 {
					message = last[0].Message
				}
				if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
					t.Fatalf("%s (-want, +got):\n%s%s", tc.reason, diff, message)
				}
				if !strings.Contains(message, tc.words) {
					t.Errorf("%s: %q is not in %q", tc.reason, tc.words, message)
				}
			})
		})
	}
}

// What an altered pod did to a node may have decided another check: nothing that the Jobs of its cluster report in favor of
// the update counts.
func TestAttacksBesideAnAlteredPod(t *testing.T) {
	of := func(name, reason, cluster string, outcome preflight.Outcome, attempts int) finding.Finding {
		f := finding.Reported(gap.Proven("the test"), outcome, finding.ReportedReason(reason), "text").Named(name).From(finding.SourceJob)
		f.Job = &finding.Job{Cluster: cluster, Node: "node-1", Attempts: attempts}
		return f
	}
	passes, fails := of("Etcd.Passes", "Because", "", preflight.Pass, 1), of("Etcd.Fails", "Because", "", preflight.Fail, 1)
	built := finding.Pass(gap.Proven("the test"), finding.ReportedReason("AsExpected"), "text").Named("Drain").From(finding.SourceHealth)
	for name, tc := range map[string]struct {
		reason   string
		findings []finding.Finding
		want     []string
	}{
		"Ordinary": {"no pod was altered", []finding.Finding{passes, fails}, []string{"Etcd.Passes Pass(Because)", "Etcd.Fails Fail(Because)"}},
		"Altered": {
			"the altered pod may have run before or beside",
			[]finding.Finding{passes, of("Etcd.Altered", "AlteredByAdmission", "", preflight.Unknown, 1), fails, built},
			[]string{
				"Etcd.Passes Unknown(BesideAlteredPod)", "Etcd.Altered Unknown(AlteredByAdmission)", "Etcd.Fails Fail(Because)",
				"Drain Pass(AsExpected)",
			},
		},
		"Denied": {
			"the pod was denied before it ran",
			[]finding.Finding{passes, of("Etcd.Altered", "AlteredByAdmission", "", preflight.Unknown, 0)},
			[]string{"Etcd.Passes Pass(Because)", "Etcd.Altered Unknown(AlteredByAdmission)"},
		},
		"Warning": {
			"a warning does not block either",
			[]finding.Finding{
				of("Etcd.Warns", "Because", "", preflight.Warn, 1), of("Etcd.Altered", "AlteredByAdmission", "", preflight.Unknown, 1),
				of("Etcd.Skips", "Because", "", preflight.Skipped, 1),
			},
			[]string{"Etcd.Warns Unknown(BesideAlteredPod)", "Etcd.Altered Unknown(AlteredByAdmission)", "Etcd.Skips Unknown(BesideAlteredPod)"},
		},
		"OtherCluster": {
			"the pod ran in the management cluster",
			[]finding.Finding{passes, of("Etcd.Altered", "AlteredByAdmission", finding.Management, preflight.Unknown, 1)},
			[]string{"Etcd.Passes Pass(Because)", "Etcd.Altered Unknown(AlteredByAdmission)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, outcomes(diagnosis.Withdraw(tc.findings))); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
