package conformance_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// annotated is the annotation that makes an object part of a preflight.
const annotated = `openshift.io/preflight-check: "true"`

// job is the manifest of a check that runs as the ServiceAccount "candidate". It declares a
// framed result.
const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: candidate, namespace: zoo, annotations: {` + annotated + `, preflight.openshift.io/result: framed}}
spec:
  template:
    spec:
      serviceAccountName: candidate
      restartPolicy: Never
      containers:
      - {name: preflight, image: "quay.io/openshift/origin-zoo:latest", command: [/bin/preflight]}
`

// plain is the manifest of a script that declares no framed result, and has no access.
var plain = strings.Replace(job, ", preflight.openshift.io/result: framed", "", 1)

// reading is the job with read access of its ServiceAccount to ConfigMaps.
const reading = job + `
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: candidate, namespace: zoo, annotations: {` + annotated + `}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: candidate, namespace: zoo, annotations: {` + annotated + `}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: candidate, namespace: zoo, annotations: {` + annotated + `}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: candidate}
subjects: [{kind: ServiceAccount, name: candidate, namespace: zoo}]
`

// readingAll is the job with this access in the whole cluster.
const readingAll = job + `
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: candidate, namespace: zoo, annotations: {` + annotated + `}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: candidate, annotations: {` + annotated + `}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-reader}
subjects: [{kind: ServiceAccount, name: candidate, namespace: zoo}]
`

// image is what runs instead of the image in the manifests.
const image = "registry.example.com/zoo@sha256:1111111111111111111111111111111111111111111111111111111111111111"

// subject returns the subject of a manifest with this image.
func subject(t *testing.T, manifest string) conformance.Subject {
	t.Helper()
	files := map[string][]byte{"0000_50_zoo_11_candidate.yaml": []byte(manifest)}
	s, err := conformance.Manifests(t.Context(), files, []conformance.Substitution{{PullSpec: image}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ending is how a check ends in one trial, as its pod and its log show it.
type ending struct {
	tb    testing.TB
	check jobplan.Check
	pod   corev1.Pod
	log   string
	// retrying is true if the Job starts another pod.
	retrying bool
	// silent is true if a preflight reports nothing about it.
	silent bool
}

// with changes an ending.
type with = func(*ending)

const (
	// started is when the pods start; limit is their deadline in seconds if they are stopped.
	started = 1_800_000_000
	limit   = 5
)

// container is the status of the check's container.
func (e *ending) container() *corev1.ContainerStatus { return &e.pod.Status.ContainerStatuses[0] }

// frame is a result of this run with at most so many bytes; 0 means the default.
func (e *ending) frame(budget int, state string, findings ...preflight.Finding) string {
	e.tb.Helper()
	frame, err := preflight.Result{State: state, RunID: conformance.RunOf(e.check), Findings: findings}.Frame(budget)
	if err != nil {
		e.tb.Fatal(err)
	}
	return string(frame)
}

// ended is a check that ended by itself.
func ended(code int32, message string) with {
	return func(e *ending) {
		e.container().State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Message: message, StartedAt: metav1.Unix(started, 0), FinishedAt: metav1.Unix(started+2, 0),
		}}
	}
}

// reported is a check that ended with a final result and the exit code of the SDK for it.
func reported(findings ...preflight.Finding) with {
	code := int32(preflight.ExitPass)
	for final := (preflight.Result{State: preflight.StateFinal, Findings: findings}); code == preflight.ExitUsage ||
		!final.Agrees(int(code)); {
		code++
	}
	return func(e *ending) { ended(code, e.frame(0, preflight.StateFinal, findings...))(e) }
}

// unfinished is a check that ended with this exit code, after it had reported that it runs.
func unfinished(code int32) with {
	return func(e *ending) {
		ended(code, e.frame(0, preflight.StateRunning, animal(preflight.Unknown, "NotFinished")))(e)
	}
}

// early is a check that ended with this exit code, after it had reported a final pass.
func early(code int32) with {
	return func(e *ending) { ended(code, e.frame(0, preflight.StateFinal, animal(preflight.Pass, "Passed")))(e) }
}

// damaged is a check that ended with a result that was changed after it was framed.
func damaged(e *ending) {
	early(0)(e)
	end := e.container().State.Terminated
	end.Message = strings.Replace(end.Message, "pass", "fail", 1)
}

// another is a check that ended with a result of another run.
func another(e *ending) {
	of := *e
	of.check.Job = e.check.Job.DeepCopy()
	of.check.Job.Labels = nil
	ended(0, of.frame(0, preflight.StateFinal, animal(preflight.Pass, "Passed")))(e)
}

// truncated is a check whose termination message has a part of its result, in at most so
// many bytes, and whose log has all of it.
func truncated(budget int, findings ...preflight.Finding) with {
	return func(e *ending) {
		reported(findings...)(e)
		e.container().State.Terminated.Message = e.frame(budget, preflight.StateFinal, findings...)
		e.log = e.frame(1<<20, preflight.StateFinal, findings...)
	}
}

// stopped is a check that ended when the kubelet stopped it.
func stopped(change with) with {
	return func(e *ending) {
		change(e)
		e.pod.Spec.ActiveDeadlineSeconds, e.pod.Status.Reason = new(int64(limit)), "DeadlineExceeded"
		e.container().State.Terminated.FinishedAt = metav1.Unix(started+limit, 0)
	}
}

// bySIGKILL is a check in a cluster in which the kubelet uses the stop signal of the pod.
func bySIGKILL(change with) with {
	return func(e *ending) {
		change(e)
		e.container().StopSignal = new(corev1.SIGKILL)
	}
}

// because is a container that ended for this reason.
func because(reason string, change with) with {
	return func(e *ending) {
		change(e)
		e.container().State.Terminated.Reason = reason
	}
}

// taking is a check that ended after this time.
func taking(long time.Duration, change with) with {
	return func(e *ending) {
		change(e)
		e.container().State.Terminated.FinishedAt = metav1.NewTime(time.Unix(started, 0).Add(long))
	}
}

// logging is a check with this log.
func logging(log string, change with) with {
	return func(e *ending) {
		change(e)
		e.log = log
	}
}

// inLog is a check that wrote its final result only to its log.
func inLog(findings ...preflight.Finding) with {
	return func(e *ending) {
		reported(findings...)(e)
		e.log, e.container().State.Terminated.Message = e.container().State.Terminated.Message, ""
	}
}

// unreported is a check about which a preflight reports nothing.
func unreported(change with) with {
	return func(e *ending) {
		change(e)
		e.silent = true
	}
}

// retried is a check that ended, and whose Job starts another pod until the end of the run.
func retried(change with) with {
	return func(e *ending) {
		change(e)
		e.retrying = true
	}
}

// running is a check that runs at the end of the run.
func running(e *ending) {
	e.container().State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

// waiting is a check whose container is not started.
func waiting(reason, message string) with {
	return func(e *ending) {
		e.container().State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

// evicted is a check whose pod the kubelet evicted, until the end of the run.
func evicted(change with) with {
	return func(e *ending) {
		change(e)
		e.pod.Status.Reason, e.pod.Status.Message = "Evicted", "The node was low on resource: memory."
		e.retrying = true
	}
}

// left returns what the ending leaves of a check, with the findings of a preflight about it.
func left(tb testing.TB, check jobplan.Check, how with) conformance.Left {
	tb.Helper()
	e := ending{tb: tb, check: check, pod: corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: check.Job.Name + "-pod", Namespace: check.Job.Namespace},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status:     corev1.PodStatus{StartTime: new(metav1.Unix(started, 0)), ContainerStatuses: []corev1.ContainerStatus{{Name: "preflight"}}},
	}}
	how(&e)
	o := diagnosis.Observation{
		Check: check, Job: check.Job.DeepCopy(), Pods: []diagnosis.Pod{{Pod: &e.pod}}, Log: &diagnosis.Log{Pod: e.pod.Name, Text: []byte(e.log)},
		Expired: e.retrying || e.container().State.Terminated == nil,
	}
	if !o.Expired {
		o.Job.Status.Conditions = []batchv1.JobCondition{{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue,
			Reason: batchv1.JobReasonBackoffLimitExceeded,
		}}
	}
	observed := conformance.Left{Pod: &e.pod, Log: []byte(e.log)}
	if !e.silent {
		observed.Findings = diagnosis.Classify(o).Findings
	}
	return observed
}

// animal is a finding of the check.
func animal(outcome preflight.Outcome, reason string) preflight.Finding {
	return preflight.Finding{Name: "Animal", Outcome: outcome, Reason: reason, Message: "the animal is " + strings.ToLower(string(outcome))}
}

// saying is a finding with this message.
func saying(f preflight.Finding, message string) preflight.Finding {
	f.Message = message
	return f
}

// noise is text of this length that does not compress.
func noise(length int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, length)
	for i := range text {
		text[i] = byte('!' + random.IntN(90))
	}
	return string(text)
}
