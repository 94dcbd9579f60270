package diagnosis

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/checkresult"
	"github.com/openshift/update-preflight/runner/launch"
)

// done ends a check with a finding about the Job as a whole.
func done(o Observation, f finding.Finding) Classification {
	f = f.Named(o.Check.Name).From(finding.SourceJob)
	f.Message = words.Lines(f.Message, checkresult.MaxMessage)
	f.Objects = o.objects()
	return doneWith(o, []finding.Finding{f})
}

// doneWith ends a check with these findings, and adds where it ran.
func doneWith(o Observation, findings []finding.Finding) Classification {
	for i := range findings {
		findings[i].Job = o.job()
		if attempts := findings[i].Job.Attempts; findings[i].Outcome == preflight.Pass && attempts > 1 {
			findings[i].Message = words.Cut(checkresult.Sentence(fmt.Sprintf("passed in attempt %d only", attempts), findings[i].Message), checkresult.MaxMessage)
		}
	}
	return Classification{State: Done, Findings: findings}
}

// withFailures adds the failures and warnings of an incomplete or contradicted result.
func (c Classification) withFailures(o Observation, result checkresult.Result) Classification {
	if !result.Found {
		return c
	}
	all, err := checkresult.Findings(o.Check, result.Result)
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

func (o Observation) objects() []preflight.Object {
	job := o.Check.Job
	objects := []preflight.Object{{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name}}
	if pod, ok := o.Newest(); ok {
		objects = append(objects, preflight.Object{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name})
	}
	return objects
}

// job is where and when the check ran. A pod that was disrupted or deleted, or
// whose end was not observed, does not count as an attempt unless it is the last.
func (o Observation) job() *finding.Job {
	job := &finding.Job{Namespace: o.Check.Job.Namespace, Name: o.Check.Job.Name}
	for i, pod := range o.Pods {
		if i < len(o.Pods)-1 && (interrupted(pod) || pod.Status.Phase != corev1.PodFailed && checkresult.Terminated(o.Check, pod.Pod) == nil) {
			continue
		}
		job.Attempts++
		if current := checkresult.Status(o.Check, pod.Pod); current != nil {
			job.Attempts += int(current.RestartCount)
		}
	}
	pod, ok := o.Newest()
	if !ok {
		return job
	}
	job.Node = pod.Spec.NodeName
	if started := pod.Status.StartTime; started != nil {
		job.StartTime = words.Time(started.Time)
	}
	if end := checkresult.Terminated(o.Check, pod.Pod); end != nil {
		job.ExitCode = &end.ExitCode
		job.StartTime, job.CompletionTime = words.Time(end.StartedAt.Time), words.Time(end.FinishedAt.Time)
	}
	return job
}

// unknown ends a check that is inconclusive.
func unknown(o Observation, why cause) Classification {
	return done(o, finding.Unknown(why.reason, "%s", why.detail).Remedy("%s", why.remedy).Do(why.actions...))
}

// tolerate waits until the timeout of the cause has passed.
func tolerate(o Observation, why cause) Classification {
	classified := why.waiting()
	if why.timeout == untilDeadline {
		classified.Idle = o.neverRan()
		return classified
	}
	waited := time.Duration(0)
	if o.Reason.String() == why.reason.String() {
		waited = o.Waited
	}
	if waited >= why.timeout {
		return unknown(o, why)
	}
	classified.Recheck = why.timeout - waited
	return classified
}

// expired ends the check at the deadline of the run, with its last state.
func expired(o Observation, classified Classification) Classification {
	why := classified.cause
	detail := classified.Detail
	if pod, ok := o.Newest(); ok && o.logOf(pod) != nil {
		if lines := checkresult.Tail(string(o.Log.Text)); lines != "" {
			detail = checkresult.Sentence(detail+"; last log lines", lines)
		}
	}
	if o.APIErrors != "" {
		detail += "; requests to the API server fail: " + words.Line(o.APIErrors, checkresult.MaxLine)
	}
	if why.reason == (finding.Reason{}) {
		why.reason = collector.ReasonTimeout
	}
	if why.remedy == "" {
		why.remedy, why.actions = "Run the preflight again with a longer timeout.", []finding.Action{finding.Retry(finding.OptionTimeout)}
	}
	why.detail = "timed out: " + detail
	return unknown(o, why)
}

// NotStarted ends a check that was queued at the deadline of the run: for the first time, or again after waiting.
func (o Observation) NotStarted(waiting Classification) Classification {
	if waiting.Reason != (finding.Reason{}) {
		return expired(o, waiting)
	}
	return unknown(o, cause{
		reason: launch.ReasonNotStarted, detail: "timed out: the check waited for other checks to end, and was not started",
		remedy:  "Run the preflight again with a longer timeout or a higher parallelism.",
		actions: []finding.Action{finding.Retry(finding.OptionTimeout), finding.Retry(finding.OptionParallelism)},
	})
}
