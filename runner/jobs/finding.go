package jobs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// done ends a check with a finding about the Job as a whole.
func done(o Observation, f finding.Finding) Classification {
	f.Name, f.Source = o.Check.Name, finding.SourceJob
	f.Blocks = f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown
	f.Message = words.Lines(f.Message, maxMessage)
	f.Objects = o.objects()
	return doneWith(o, []finding.Finding{f})
}

// doneWith ends a check with these findings, and adds where it ran.
func doneWith(o Observation, findings []finding.Finding) Classification {
	for i := range findings {
		findings[i].Job = o.job()
		if attempts := findings[i].Job.Attempts; findings[i].Outcome == preflight.Pass && attempts > 1 {
			findings[i].Message = words.Cut(sentence(fmt.Sprintf("passed in attempt %d only", attempts), findings[i].Message), maxMessage)
		}
	}
	return Classification{State: Done, Findings: findings}
}

// withFailures adds the failures and warnings of an incomplete or contradicted
// result.
func (c Classification) withFailures(o Observation, result containerResult) Classification {
	if !result.found {
		return c
	}
	all, err := findings(o.Check, result.result)
	if err != nil {
		return c
	}
	for _, f := range all {
		if f.Outcome == preflight.Fail || f.Outcome == preflight.Warn {
			f.Job = o.job()
			c.Findings = append(c.Findings, f)
		}
	}
	return c
}

// objects are the Job and its newest pod.
func (o Observation) objects() []preflight.Object {
	job := o.Check.Job
	objects := []preflight.Object{{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name}}
	if pod, ok := o.newest(); ok {
		objects = append(objects, preflight.Object{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name})
	}
	return objects
}

// job is where and when the check ran. A pod that was disrupted or deleted, or
// whose end was not observed, does not count as an attempt unless it is the last.
func (o Observation) job() *finding.Job {
	job := &finding.Job{Namespace: o.Check.Job.Namespace, Name: o.Check.Job.Name}
	for i, pod := range o.Pods {
		if i < len(o.Pods)-1 && (interrupted(pod) || pod.Status.Phase != corev1.PodFailed && terminated(o.Check, pod) == nil) {
			continue
		}
		job.Attempts++
		if current := status(o.Check, pod); current != nil {
			job.Attempts += int(current.RestartCount)
		}
	}
	pod, ok := o.newest()
	if !ok {
		return job
	}
	job.Node = pod.Spec.NodeName
	job.StartTime = timeOf(pod.Status.StartTime)
	if end := terminated(o.Check, pod); end != nil {
		job.ExitCode = &end.ExitCode
		job.StartTime, job.CompletionTime = timeOf(&end.StartedAt), timeOf(&end.FinishedAt)
	}
	return job
}

func timeOf(at *metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
