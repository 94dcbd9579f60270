package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// maxCommand bounds a command on one line, in bytes.
const maxCommand = 4 << 10

// maxName bounds a name or a version on one line, in bytes.
const maxName = 256

// headline is the decision and what it means, in one sentence.
func headline(r Report) string {
	word, meaning := decisionOf(r)
	if word == "" {
		return strings.ToUpper(meaning[:1]) + meaning[1:]
	}
	return word + ": " + meaning
}

// decisionOf is the word for the decision, and what it means. A run in progress has no
// word unless a finding blocks.
func decisionOf(r Report) (word, meaning string) {
	target := cmp.Or(words.Line(r.Target.Version, maxName), "the release")
	switch {
	case r.Run.Phase == PhaseRunning && r.Verdict.Decision == verdict.Blocked:
		return "Blocked so far", fmt.Sprintf("do not update this cluster to %s yet. The run has not ended.", target)
	case r.Run.Phase == PhaseRunning:
		return "", fmt.Sprintf("no verdict yet on the update to %s: the run has not ended.", target)
	case !r.Holds():
		return "Outdated", fmt.Sprintf("the verdict on the update to %s was %s, and no longer holds.", target, r.Verdict.Summary())
	}
	text := map[verdict.Decision]string{
		verdict.Ready:        fmt.Sprintf("this cluster can be updated to %s.", target),
		verdict.NothingKnown: fmt.Sprintf("nothing that can be evaluated in advance blocks the update to %s.", target),
		verdict.Blocked:      fmt.Sprintf("do not update this cluster to %s yet.", target),
		verdict.Undecided:    fmt.Sprintf("the update to %s could not be evaluated completely.", target),
	}[r.Verdict.Decision]
	return string(r.Verdict.Decision), cmp.Or(text, "the decision is not known to this version.") + r.remarks()
}

// remarks are what limits a verdict.
func (r Report) remarks() string {
	text := ""
	if r.Verdict.Provisional {
		text += fmt.Sprintf(" Provisional: judged from %s.", words.Line(r.Cluster.Version, maxName))
	}
	if r.Verdict.Forced {
		text += " FORCED: findings that block were bypassed by force."
	}
	switch {
	case r.Run.Detached:
		text += " The checks continue in the cluster: attach to the run."
	case r.Run.Phase == PhaseInterrupted:
		text += " The run was interrupted."
	case r.Run.Phase == PhaseCanceled:
		text += " The run was canceled."
	}
	return text
}

// standing is the decision about one update, if it is current.
func (r Report) standing() string {
	if !r.Holds() {
		return notHolding(r.Verdict.Decision)
	}
	return r.Verdict.Summary()
}

func notHolding(decision verdict.Decision) string {
	return fmt.Sprintf("none that holds (it was %s)", decision)
}

// toDo introduces what is open.
func (r Report) toDo() string {
	if r.Run.Detached {
		return "Not decided yet; attach to the run:"
	}
	return "Fix these, then run the preflight again:"
}
