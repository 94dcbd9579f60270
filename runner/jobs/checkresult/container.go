package checkresult

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// MainContainer is the name of the container that is the check.
func MainContainer(check jobplan.Check) string {
	if containers := check.Job.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Name
	}
	return ""
}

// Status is the status of the check's container; nil without one.
func Status(check jobplan.Check, pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == MainContainer(check) {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Terminated is the last termination of the check's container, also if it was
// restarted since; nil before the first.
func Terminated(check jobplan.Check, pod *corev1.Pod) *corev1.ContainerStateTerminated {
	current := Status(check, pod)
	if current == nil {
		return nil
	}
	if current.State.Terminated != nil {
		return current.State.Terminated
	}
	return current.LastTerminationState.Terminated
}

// Limits of text that comes from a pod, in bytes.
const (
	MaxMessage = 32 << 10
	MaxLine    = 2 << 10
	maxWord    = 128
	maxTail    = 1 << 10
	// tailLines is how many of the last lines of a log a message has.
	tailLines = 10
)

// Tail returns the last lines of a log, without the lines of SDK results.
func Tail(log string) string {
	lines := strings.Split(words.Lines(words.Last(log, 4*maxTail), 4*maxTail), "\n")
	var kept []string
	for _, text := range lines {
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "preflight/") {
			kept = append(kept, text)
		}
	}
	return words.Last(strings.Join(kept[max(0, len(kept)-tailLines):], "\n"), maxTail)
}

// Sentence joins a clause and its detail with a colon.
func Sentence(clause, detail string) string {
	if detail = strings.TrimSpace(detail); detail == "" {
		return clause
	}
	return fmt.Sprintf("%s: %s", clause, detail)
}
