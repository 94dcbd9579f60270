package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// unknown ends a check that could not tell, for an obstacle.
func (o Observation) unknown(why obstacle) Reading {
	return o.done(finding.Unknown(finding.Reason(why.cause), "%s", why.detail).
		Remedy("%s", why.remedy))
}

// done ends a check with a finding about the Job as a whole.
func (o Observation) done(f finding.Finding) Reading {
	f.Name, f.Source = o.Check.Name, finding.SourceJob
	f.Blocks = f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown
	f.Message = words.Lines(f.Message, maxMessage)
	f.Objects = o.objects()
	return o.answer([]finding.Finding{f})
}

// answer ends a check with these findings, and says where they come from.
func (o Observation) answer(findings []finding.Finding) Reading {
	for i := range findings {
		findings[i].Job = o.job()
		if attempts := findings[i].Job.Attempts; findings[i].Outcome == preflight.Pass && attempts > 1 {
			findings[i].Message = words.Cut(sentence(fmt.Sprintf("passed in attempt %d only", attempts), findings[i].Message), maxMessage)
		}
	}
	return Reading{State: Done, Findings: findings}
}

// along adds what the check had said before something went wrong, as far as it
// speaks against the update.
func (r Reading) along(o Observation, heard said) Reading {
	if !heard.found {
		return r
	}
	all, err := findings(o.Check, heard.result)
	if err != nil {
		return r
	}
	for _, f := range all {
		if f.Outcome == preflight.Fail || f.Outcome == preflight.Warn {
			f.Job = o.job()
			r.Findings = append(r.Findings, f)
		}
	}
	return r
}

// objects are what somebody would look at: the last pod, and the Job.
func (o Observation) objects() []preflight.Object {
	job := o.Check.Job
	objects := []preflight.Object{{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name}}
	if pod, ok := o.newest(); ok {
		objects = append(objects, preflight.Object{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name})
	}
	return objects
}

// job says where and when the check ran. A pod that the cluster put to an end,
// or that was never seen to end, was no attempt, unless it is the last one.
func (o Observation) job() *finding.Job {
	job := &finding.Job{Namespace: o.Check.Job.Namespace, Name: o.Check.Job.Name}
	for i, pod := range o.Pods {
		if i < len(o.Pods)-1 && (interrupted(pod) || pod.Status.Phase != corev1.PodFailed && ending(o.Check, pod) == nil) {
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
	if end := ending(o.Check, pod); end != nil {
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

// newest is the pod of the last attempt.
func (o Observation) newest() (Pod, bool) {
	if len(o.Pods) == 0 {
		return Pod{}, false
	}
	return o.Pods[len(o.Pods)-1], true
}

// mainContainer is the name of the container that is the check.
func mainContainer(check launch.Check) string {
	if containers := check.Job.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Name
	}
	return ""
}

// status is the state of the check's container; nil while there is none.
func status(check launch.Check, pod Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == mainContainer(check) {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// ending is how the check's container ended, also where it was started again
// since; nil while it has not.
func ending(check launch.Check, pod Pod) *corev1.ContainerStateTerminated {
	current := status(check, pod)
	if current == nil {
		return nil
	}
	if current.State.Terminated != nil {
		return current.State.Terminated
	}
	return current.LastTerminationState.Terminated
}

func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

// sentence puts a cause and the words that came with it together.
func sentence(cause, words string) string {
	if words = strings.TrimSpace(words); words == "" {
		return cause
	}
	return fmt.Sprintf("%s: %s", cause, words)
}
