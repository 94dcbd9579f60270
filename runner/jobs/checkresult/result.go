// Package checkresult answers: what did the container of a check report?
//
// [Of] reads the result of the SDK in the termination message and the log of a container,
// and [Findings] converts it: its text comes from a pod, so its sizes are bounded.
package checkresult

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// The reasons of a check that reported no valid one.
var (
	ReasonPassed = finding.NewReason("Passed", finding.Explanation{
		Meaning: "The check exited with code 0 and reported no findings of its own.",
		Cause:   "The check found nothing that blocks the update.",
	})
	ReasonFailed = finding.NewReason("Failed", finding.Explanation{
		Meaning: "The check exited with a non-zero code and reported no findings of its own.",
		Cause:   "The message contains the last lines of its log.",
		Remedy:  "Fix the problem in the log, then run the preflight again.",
	})
	reasonWarned = finding.NewReason("Warned", finding.Explanation{
		Meaning: "The check reported a warning without a valid reason.",
		Cause:   "The check did not set a CamelCase reason.",
		Remedy:  "Read the message of the finding.",
	})
	reasonNotApplicable = finding.NewReason("NotApplicable", finding.Explanation{
		Meaning: "The check was skipped without a valid reason.",
		Cause:   "The check reported that it does not apply, and did not set a CamelCase reason.",
	})
	reasonCouldNotTell = finding.NewReason("CouldNotTell", finding.Explanation{
		Meaning: "The check was inconclusive without a valid reason.",
		Cause:   "The check did not set a CamelCase reason.",
		Remedy:  "Fix the problem in the message, then run the preflight again.",
	})
)

// Limits of the result of one Job.
const (
	maxFindings = 200
	maxObjects  = 50
	maxActions  = 20
	maxEvidence = 50
)

// Result is the SDK result that a container wrote. The zero value means that it wrote none.
type Result struct {
	Result preflight.Result
	Found  bool
	// Invalid is why the written result cannot be used; empty if it can.
	Invalid string
}

// Of parses the termination message, and the log if it was read; log is nil otherwise. The log is read if the message
// contains no result, or only a part of it. A result of another run is invalid.
func Of(run, message string, log []byte) Result {
	result := parse(run, []byte(message))
	if log == nil {
		return result
	}
	full := parse(run, log)
	if full.Final() || !result.Found && result.Invalid == "" {
		return full
	}
	return result
}

func parse(run string, data []byte) Result {
	result, err := preflight.ParseFrame(data)
	switch {
	case errors.Is(err, preflight.ErrNoFrame):
		return Result{}
	case err != nil:
		return Result{Invalid: err.Error()}
	case result.RunID != run:
		return Result{Invalid: fmt.Sprintf("the result is of run %q, this is run %q", result.RunID, run)}
	}
	return Result{Result: result, Found: true}
}

// Final reports whether the container wrote its last result.
func (r Result) Final() bool {
	return r.Found && r.Result.State == preflight.StateFinal
}

// Complete is true when no log needs to be read.
func (r Result) Complete() bool {
	return r.Final() && !r.Result.Truncated
}

// Findings converts a result: names start with the component, sizes are bounded,
// and fields that only a runner sets are ignored. It returns an error for a result
// that cannot be converted completely.
func Findings(check jobplan.Check, result preflight.Result) ([]finding.Finding, error) {
	if len(result.Findings) > maxFindings {
		return nil, fmt.Errorf("it has %d findings, more than %d", len(result.Findings), maxFindings)
	}
	var all []finding.Finding
	for _, f := range result.Findings {
		name := check.Prefix() + "." + f.Name
		if len(f.Name) == 0 || len(name) > 2*maxWord || !isName(name, ".-") {
			return nil, fmt.Errorf("%q is not a valid name of a check", words.Line(f.Name, maxWord))
		}
		all = append(all, sanitize(name, f))
	}
	if len(all) == 0 {
		return nil, errors.New("it has no findings")
	}
	return all, nil
}

func sanitize(name string, f preflight.Finding) finding.Finding {
	out := finding.Reported(gap.Proven("the result of the check"), f.Outcome, finding.ReportedReason(f.Reason), "%s", f.Message).
		Named(name).
		From(finding.SourceJob).
		Remedy("%s", f.Remediation).
		Documented(sanitizeURL(f.URL))
	if !isName(f.Reason, "") || len(f.Reason) > maxWord {
		out.Reason = defaultReason(f.Outcome).String()
	}
	for _, object := range f.Objects[:min(maxObjects, len(f.Objects))] {
		out.Objects = append(out.Objects, preflight.Object{
			APIVersion: words.Line(object.APIVersion, maxWord), Kind: words.Line(object.Kind, maxWord),
			Namespace: words.Line(object.Namespace, maxWord), Name: words.Line(object.Name, 2*maxWord),
		})
	}
	for _, action := range f.Actions[:min(maxActions, len(f.Actions))] {
		if step := finding.Script(action.Command); step.Command != "" {
			out = out.Do(step)
		}
	}
	out.Evidence = evidence(f.Evidence)
	return out
}

// isName is true for a capital letter followed by letters, digits and characters of allowed.
func isName(text, allowed string) bool {
	capital := func(r rune) bool { return 'A' <= r && r <= 'Z' }
	for i, r := range text {
		valid := capital(r) || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune(allowed, r)
		if !valid || i == 0 && !capital(r) {
			return false
		}
	}
	return text != ""
}

func defaultReason(outcome preflight.Outcome) finding.Reason {
	switch outcome {
	case preflight.Pass:
		return ReasonPassed
	case preflight.Warn:
		return reasonWarned
	case preflight.Fail:
		return ReasonFailed
	case preflight.Skipped:
		return reasonNotApplicable
	case preflight.Unknown:
	}
	return reasonCouldNotTell
}

// sanitizeURL returns an HTTP URL, or nothing.
func sanitizeURL(url string) string {
	if url = words.Line(url, MaxLine); strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return url
	}
	return ""
}

// evidence keeps the first maxEvidence facts in the order of their keys.
func evidence(facts map[string]string) map[string]string {
	if len(facts) == 0 {
		return nil
	}
	kept := map[string]string{}
	for _, key := range sortedKeys(facts)[:min(maxEvidence, len(facts))] {
		kept[words.Line(key, maxWord)] = words.Lines(facts[key], MaxLine)
	}
	return kept
}

func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

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
