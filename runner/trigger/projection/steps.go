package projection

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// The reasons of the steps.
const (
	reasonTargetKnown   = "TargetKnown"
	reasonTargetUnknown = "TargetUnknown"
	reasonWindowOpen    = "WindowOpen"
	reasonTooEarly      = "TooEarly"
	reasonWindowClosed  = "WindowClosed"
	reasonVerified      = "Verified"
	reasonNotVerified   = "NotVerified"
	reasonAllReported   = "AllReported"
	reasonMissing       = "MissingResults"
	reasonNoVerdict     = "NoVerdict"
)

// stepsOf are the conditions of the steps of a preflight, in their order, with what differs
// between conditions.
func stepsOf(p projected) []metav1.Condition {
	return []metav1.Condition{targetKnown(p), windowOpen(p), releaseVerified(p), checksReported(p)}
}

func targetKnown(p projected) metav1.Condition {
	step := metav1.Condition{Type: v1alpha1.ConditionTargetKnown, Status: metav1.ConditionTrue, Reason: reasonTargetKnown}
	if p.observed.Target.Image == "" {
		step.Status, step.Reason, step.Message = metav1.ConditionFalse, reasonTargetUnknown, p.observed.Unknown
	}
	return step
}

func windowOpen(p projected) metav1.Condition {
	step := metav1.Condition{Type: v1alpha1.ConditionWindowOpen, Status: metav1.ConditionTrue, Reason: reasonWindowOpen}
	switch {
	case p.observed.Now.Before(p.opens):
		step.Status, step.Reason = metav1.ConditionFalse, reasonTooEarly
		step.Message = "the window opens at " + words.Time(p.opens)
	case !p.closes.IsZero() && !p.observed.Now.Before(p.closes):
		step.Status, step.Reason = metav1.ConditionFalse, reasonWindowClosed
		step.Message = "the window closed at " + words.Time(p.closes)
	case !p.closes.IsZero():
		step.Message = "the window closes at " + words.Time(p.closes)
	}
	return step
}

func releaseVerified(p projected) metav1.Condition {
	if !p.valid() {
		return unreported(p, v1alpha1.ConditionReleaseVerified)
	}
	step := metav1.Condition{Type: v1alpha1.ConditionReleaseVerified, Status: metav1.ConditionTrue, Reason: reasonVerified}
	if !p.observed.Verdict.Target.Verified {
		step.Status, step.Reason = metav1.ConditionFalse, reasonNotVerified
		step.Message = "the signature of the release was not verified"
	}
	return step
}

func checksReported(p projected) metav1.Condition {
	if !p.valid() {
		return unreported(p, v1alpha1.ConditionChecksReported)
	}
	expected := p.observed.Verdict.Expected
	step := metav1.Condition{Type: v1alpha1.ConditionChecksReported, Status: metav1.ConditionTrue, Reason: reasonAllReported}
	if expected.Reported < expected.Checks {
		step.Status, step.Reason = metav1.ConditionFalse, reasonMissing
	}
	step.Message = fmt.Sprintf("%d of %s reported", expected.Reported, words.Count(expected.Checks, "check"))
	return step
}

// unreported is the condition of a step that only a verdict reports.
func unreported(p projected, step string) metav1.Condition {
	unknown := metav1.Condition{Type: step, Status: metav1.ConditionUnknown, Reason: reasonNoVerdict, Message: "no run has a valid verdict"}
	if p.observed.Running != nil {
		unknown.Reason, unknown.Message = string(v1alpha1.Checking), "a run is in progress"
	}
	return unknown
}
