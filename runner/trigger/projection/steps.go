package projection

import (
	"fmt"
	"time"

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

// steps are the conditions of the steps of a preflight, in their order, with what differs
// between conditions.
func (p projected) steps() []metav1.Condition {
	return []metav1.Condition{p.targetKnown(), p.windowOpen(), p.releaseVerified(), p.checksReported()}
}

func (p projected) targetKnown() metav1.Condition {
	step := metav1.Condition{Type: v1alpha1.ConditionTargetKnown, Status: metav1.ConditionTrue, Reason: reasonTargetKnown}
	if p.Target.Image == "" {
		step.Status, step.Reason, step.Message = metav1.ConditionFalse, reasonTargetUnknown, p.Unknown
	}
	return step
}

func (p projected) windowOpen() metav1.Condition {
	step := metav1.Condition{Type: v1alpha1.ConditionWindowOpen, Status: metav1.ConditionTrue, Reason: reasonWindowOpen}
	switch {
	case p.Now.Before(p.opens):
		step.Status, step.Reason = metav1.ConditionFalse, reasonTooEarly
		step.Message = "the window opens at " + p.opens.UTC().Format(time.RFC3339)
	case !p.closes.IsZero() && !p.Now.Before(p.closes):
		step.Status, step.Reason = metav1.ConditionFalse, reasonWindowClosed
		step.Message = "the window closed at " + p.closes.UTC().Format(time.RFC3339)
	case !p.closes.IsZero():
		step.Message = "the window closes at " + p.closes.UTC().Format(time.RFC3339)
	}
	return step
}

func (p projected) releaseVerified() metav1.Condition {
	if !p.valid() {
		return p.unreported(v1alpha1.ConditionReleaseVerified)
	}
	step := metav1.Condition{Type: v1alpha1.ConditionReleaseVerified, Status: metav1.ConditionTrue, Reason: reasonVerified}
	if !p.Verdict.Target.Verified {
		step.Status, step.Reason = metav1.ConditionFalse, reasonNotVerified
		step.Message = "the signature of the release was not verified"
	}
	return step
}

func (p projected) checksReported() metav1.Condition {
	if !p.valid() {
		return p.unreported(v1alpha1.ConditionChecksReported)
	}
	expected := p.Verdict.Expected
	step := metav1.Condition{Type: v1alpha1.ConditionChecksReported, Status: metav1.ConditionTrue, Reason: reasonAllReported}
	if expected.Reported < expected.Checks {
		step.Status, step.Reason = metav1.ConditionFalse, reasonMissing
	}
	step.Message = fmt.Sprintf("%d of %s reported", expected.Reported, words.Count(expected.Checks, "check"))
	return step
}

// unreported is the condition of a step that only a verdict reports.
func (p projected) unreported(step string) metav1.Condition {
	unknown := metav1.Condition{Type: step, Status: metav1.ConditionUnknown, Reason: reasonNoVerdict, Message: "no run has a valid verdict"}
	if p.Running != nil {
		unknown.Reason, unknown.Message = string(v1alpha1.Checking), "a run is in progress"
	}
	return unknown
}
