package projection

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// Outlook is whether the verdict is there when the managed-upgrade-operator starts the
// update.
type Outlook struct {
	// At is when the update starts.
	At    time.Time
	State schedule.Outlook
	// Invalid is why no update is scheduled that can be checked before, without the other
	// fields; nil otherwise.
	Invalid *schedule.Invalid
}

// condition is ScheduledUpdate, without the fields that all conditions have.
func (o Outlook) condition() metav1.Condition {
	status, text := metav1.ConditionUnknown, ""
	if o.Invalid != nil {
		return metav1.Condition{
			Type: v1alpha1.ConditionScheduledUpdate, Status: status, Reason: string(o.Invalid.Reason),
			Message: "UpgradeConfig " + schedule.Name + " schedules no update that can be checked before: " + words.Line(o.Invalid.Error(), maxMessage),
		}
	}
	switch o.State {
	case schedule.Ready:
		status, text = metav1.ConditionTrue, "its preflight is Ready"
	case schedule.Blocked, schedule.Undecided:
		status, text = metav1.ConditionFalse, "its preflight is "+string(o.State)
	case schedule.NotInTime:
		status, text = metav1.ConditionFalse, "its preflight will not be ready in time"
	case schedule.Pending:
		text = "its preflight runs two hours and thirty minutes before"
	case schedule.Checking:
		text = "its preflight is in progress, or about to start"
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionScheduledUpdate, Status: status, Reason: string(o.State),
		Message: "the managed-upgrade-operator starts this update at " + words.Time(o.At) + ": " + text,
	}
}
