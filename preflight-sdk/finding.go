package preflight

import (
	"cmp"
)

// Finding is the result of one check. A check that links this SDK fills it
// through [T].
type Finding struct {
	// Name identifies the finding. Administrators type it to accept the finding. It
	// matches ^[A-Z][A-Za-z0-9.-]*$, the rule for risk names in ClusterVersion.
	Name string `json:"name"`
	// Outcome is how the check ended.
	Outcome Outcome `json:"outcome"`
	// Reason is the kind of cause as one CamelCase word, stable across releases.
	Reason string `json:"reason"`
	// Message states the cause in one sentence and names the object.
	Message string `json:"message"`
	// Remediation is the action that resolves the finding, in sentences.
	Remediation string `json:"remediation,omitempty"`
	// Actions are the steps of the remediation that are commands, in order.
	Actions []Action `json:"actions,omitempty"`
	// URL is the documentation of the check.
	URL string `json:"url,omitempty"`
	// Objects are the affected objects, most important first.
	Objects []Object `json:"objects,omitempty"`
	// Evidence contains short facts that support the message, by name.
	Evidence map[string]string `json:"evidence,omitempty"`
}

// Action is one step of a remediation.
type Action struct {
	// Command is the whole command, to be copied into a shell.
	Command string `json:"command"`
}

// Object identifies one Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Outcome is the result of a check in one word.
type Outcome string

// The outcomes. Every check ends with one of these: a check that did not end
// regularly is Unknown.
const (
	// Pass means that the check found nothing that prevents the update.
	Pass Outcome = "Pass"
	// Warn means that an administrator should know the finding, but that it does
	// not prevent the update.
	Warn Outcome = "Warn"
	// Fail means that the check found that the update would do harm.
	Fail Outcome = "Fail"
	// Unknown means that the check was inconclusive. It never counts as a pass.
	Unknown Outcome = "Unknown"
	// Skipped means that the check does not apply to this cluster. The message
	// states why.
	Skipped Outcome = "Skipped"
)

// Compare orders outcomes, the worst first: Fail, Unknown, Warn, Skipped, Pass.
// It is negative when o is worse than other, positive when other is worse, and 0
// when neither is. An outcome that this version does not define ranks as
// Unknown.
func (o Outcome) Compare(other Outcome) int { return cmp.Compare(severity(other), severity(o)) }

// severity orders outcomes: the most severe outcome that a check reports is the
// outcome of its finding. An undefined outcome is as severe as Unknown.
func severity(outcome Outcome) int {
	switch outcome {
	case Pass:
		return 0
	case Skipped:
		return 1
	case Warn:
		return 2
	case Unknown:
		return 3
	case Fail:
		return 4
	}
	return severity(Unknown)
}
