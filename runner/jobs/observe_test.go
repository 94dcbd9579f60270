package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

const runID = "7f3c2a91-52de-4b1c-8d70-1f2e3d4c5b6a"

func aCheck() jobplan.Check {
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "etcd-preflight-7f3c2a9152", Namespace: "openshift-etcd", Labels: map[string]string{label.Run: runID},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label.Run: runID}},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "check", Image: "quay.io/openshift/etcd", Command: []string{"/bin/preflight"}}},
			},
		}},
	}
	return jobplan.Check{Name: "Etcd.EtcdPreflight", Component: "etcd", File: "0000_12_etcd.yaml", Job: job}
}

// observe returns an observation of an existing Job.
func observe(changes ...func(*diagnosis.Observation)) diagnosis.Observation {
	check := aCheck()
	o := diagnosis.Observation{Check: check, Job: check.Job.DeepCopy()}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func framed(o *diagnosis.Observation) { o.Check.Framed = true }

func failed(reason string) func(*diagnosis.Observation) {
	return condition(batchv1.JobFailed, reason)
}

func condition(kind batchv1.JobConditionType, reason string) func(*diagnosis.Observation) {
	return func(o *diagnosis.Observation) {
		o.Job.Status.Conditions = append(o.Job.Status.Conditions,
			batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "message of the controller"})
	}
}

func expired(o *diagnosis.Observation) { o.Expired = true }

func deleted(o *diagnosis.Observation) { o.Deleted = true }

func restarted(o *diagnosis.Observation) { o.Restarted = true }

// waited is a reason that has lasted for some time. A lost outcome implies listed
// pods.
func waited(reason finding.Reason, long time.Duration) func(*diagnosis.Observation) {
	return func(o *diagnosis.Observation) {
		o.Reason, o.Waited, o.Listed = reason, long, reason.String() == "Lost"
	}
}

// logged is the log of the last pod.
func logged(text string) func(*diagnosis.Observation) {
	return func(o *diagnosis.Observation) {
		o.Log = &diagnosis.Log{Pod: o.Pods[len(o.Pods)-1].Name, Text: []byte(text)}
	}
}

func unreadable(o *diagnosis.Observation) {
	o.Log = &diagnosis.Log{Pod: o.Pods[len(o.Pods)-1].Name, Error: "dial tcp 10.0.0.1:10250: i/o timeout"}
}

func warned(kind, reason, message string) func(*diagnosis.Observation) {
	return func(o *diagnosis.Observation) {
		name := o.Check.Job.Name
		if kind == "Pod" {
			name = o.Pods[len(o.Pods)-1].Name
		}
		o.Warnings = append(o.Warnings, &corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "openshift-etcd", Name: name}, Reason: reason, Message: message,
		})
	}
}

// pod adds the pod of another attempt, on a node.
func pod(changes ...func(*diagnosis.Pod)) func(*diagnosis.Observation) {
	return func(o *diagnosis.Observation) {
		number := string(rune('a' + len(o.Pods)))
		p := diagnosis.Pod{Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: o.Check.Job.Name + "-pod" + number, Namespace: "openshift-etcd", UID: types.UID(number)},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
		}}
		for _, change := range changes {
			change(&p)
		}
		o.Pods = append(o.Pods, p)
	}
}

func gone(p *diagnosis.Pod) { p.Gone = true }

func deleting(p *diagnosis.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} }

// unscheduledAs is unscheduled with another message of the scheduler.
func unscheduledAs(message string) func(*diagnosis.Pod) {
	return func(p *diagnosis.Pod) {
		unscheduled(p)
		p.Status.Conditions[0].Message = message
	}
}

func unscheduled(p *diagnosis.Pod) {
	p.Spec.NodeName = ""
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: "0/3 nodes are available: 3 Insufficient memory.",
	}}
}

func disrupted(p *diagnosis.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
	})
}

func evicted(p *diagnosis.Pod) {
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
}

// pastDeadline is what the kubelet writes when the pod's own activeDeadlineSeconds have passed.
func pastDeadline(p *diagnosis.Pod) {
	p.Status.Phase, p.Status.Reason = corev1.PodFailed, "DeadlineExceeded"
	p.Status.Message = "Pod was active on the node longer than the specified deadline"
}

func container(name string, state corev1.ContainerState) func(*diagnosis.Pod) {
	return func(p *diagnosis.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: name, Image: "quay.io/openshift/etcd", State: state})
	}
}

func running(p *diagnosis.Pod) {
	container("check", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})(p)
}

func waiting(reason, message string) func(*diagnosis.Pod) {
	return container("check", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

func ended(code int32, message string) func(*diagnosis.Pod) {
	return endedFor("", code, message)
}

func endedFor(reason string, code int32, message string) func(*diagnosis.Pod) {
	return container("check", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reason, ExitCode: code, Message: message,
		StartedAt: metav1.Unix(1_800_000_000, 0), FinishedAt: metav1.Unix(1_800_000_002, 0),
	}})
}

func initEnded(code int32, message string) func(*diagnosis.Pod) {
	return func(p *diagnosis.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "settle", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message},
		}}}
	}
}

func initWaiting(reason, message string) func(*diagnosis.Pod) {
	return func(p *diagnosis.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "settle", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}}
	}
}

// frame is a result in the SDK's format.
func frame(tb testing.TB, state string, findings ...preflight.Finding) string {
	tb.Helper()
	return frameOf(tb, preflight.Result{State: state, RunID: runID, Findings: findings})
}

func frameOf(tb testing.TB, result preflight.Result) string {
	tb.Helper()
	text, err := result.Frame(1 << 20)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func reported(name string, outcome preflight.Outcome) preflight.Finding {
	return preflight.Finding{Name: name, Outcome: outcome, Reason: "Because", Message: "member etcd-0 is " + strings.ToLower(string(outcome))}
}

// remedyOf is the remedy of a finding with its actions.
func remedyOf(f finding.Finding) string {
	text := f.Remediation
	for _, action := range f.Actions {
		text += "; " + strings.TrimSpace(fmt.Sprintf("%s %s %s", action.Type, action.Value, action.Command))
	}
	return text
}
