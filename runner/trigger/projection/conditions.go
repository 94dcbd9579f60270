package projection

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
)

// The reasons of the conditions, besides the phases and the reasons of the steps.
const (
	reasonNotStarted = "NotStarted"
	reasonWaiting    = "Waiting"
	// RunFailed is the reason where the last run could not be made.
	RunFailed = "RunFailed"
)

// The reasons of the condition Updated are in package v1alpha1, which has types only.
var _ = catalog.Reasons("A condition of an UpdatePreflight has this reason.", `
AllReported | Every check has a result.
MissingResults | A check has no result. | Read the findings of the run. | oc preflight status
NotStarted | No run has started yet.
NotVerified | The signature of the release is not verified. | Read the finding ReleaseSignature of the run. | oc preflight status
NoVerdict | No run has a valid verdict on the update. | Wait for the next run, or read why there is no verdict. | oc get updatepreflights
OperatorUnhealthy | A ClusterOperator has been unhealthy for too long after the update. | Check the ClusterOperator in the message.
PoolDegraded | A MachineConfigPool is degraded after the update. | Check the pool in the message.
PoolsUpdating | Nodes are being updated.
RunFailed | The last run failed; the message contains the error. | Fix the error in the message.
Settling | A ClusterOperator was unhealthy recently.
TargetKnown | The cluster knows the target.
TargetUnknown | No update leads to the target. | Correct spec.target, or the channel of ClusterVersion.
TooEarly | The window has not opened yet.
UpdateFailing | The cluster-version operator reports a failure. | Read the condition Failing of ClusterVersion. | oc describe
	clusterversion
Updated | The cluster runs the release.
Updating | The cluster-version operator is updating the cluster.
Verified | The signature of the release is verified.
Waiting | The run waits for another run, or for its window.
WindowClosed | The window has closed. | Change the window in the spec.
WindowOpen | The window is open.`)

// conditions are the conditions of a status whose phase and verdict are set. They keep the times of
// the previous ones that have the same status; a previous one of another type is removed.
func (p projected) conditions(status v1alpha1.UpdatePreflightStatus) []metav1.Condition {
	reason, message := p.words(status)
	present := append([]metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: ready(status), Reason: reason, Message: message},
		{
			Type: v1alpha1.ConditionReconciling, Status: truth(status.Phase, v1alpha1.New, v1alpha1.Pending, v1alpha1.Checking), Reason: reason,
			Message: message,
		},
		{
			Type: v1alpha1.ConditionStalled, Status: truth(status.Phase, v1alpha1.Blocked, v1alpha1.Undecided, v1alpha1.Expired), Reason: reason,
			Message: message,
		},
	}, stepsOf(p)...)
	if p.observed.Outlook != nil {
		present = append(present, p.observed.Outlook.condition())
	}
	if p.observed.Updated != nil {
		present = append(present, *p.observed.Updated)
	}
	if p.observed.After != nil {
		present = append(present, afterUpdate(*p.observed.After))
	}
	var conditions []metav1.Condition
	for _, condition := range present {
		condition.Message = words.Line(condition.Message, maxMessage)
		condition.ObservedGeneration = p.object.Generation
		condition.LastTransitionTime = metav1.Time{Time: p.observed.Now.Truncate(time.Second)}
		previous := meta.FindStatusCondition(p.object.Status.Conditions, condition.Type)
		if condition.Type == v1alpha1.ConditionAfterUpdate && p.judgedAt() != nil {
			condition.LastTransitionTime = *p.judgedAt() // also after it was not known for a while
		} else if previous != nil && previous.Status == condition.Status {
			condition.LastTransitionTime = previous.LastTransitionTime
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

// ready is the status of the condition Ready: before the time of the request, no verdict
// counts.
func ready(status v1alpha1.UpdatePreflightStatus) metav1.ConditionStatus {
	switch status.Decision {
	case "":
		return metav1.ConditionUnknown
	case string(verdict.Ready):
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func truth(phase v1alpha1.Phase, phases ...v1alpha1.Phase) metav1.ConditionStatus {
	if slices.Contains(phases, phase) {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// words are the reason and the message of a status.
func (p projected) words(status v1alpha1.UpdatePreflightStatus) (reason, message string) {
	reason, message = string(status.Phase), ""
	switch status.Phase {
	case v1alpha1.New:
		reason, message = reasonTargetUnknown, p.observed.Unknown
	case v1alpha1.Pending:
		reason, message = p.pending()
	case v1alpha1.Checking:
		message = "a run is in progress"
		if status.Decision != "" {
			message += "; the last verdict is " + status.Decision
		}
	case v1alpha1.Ready, v1alpha1.Blocked, v1alpha1.Undecided:
		message = VerdictMessage(status)
		if remarks := p.observed.Verdict.Standing.Remarks; len(remarks) > 0 {
			message += " (" + words.Clauses(remarks, maxCauses) + ")"
		}
		if hosted := p.object.Spec.HostedCluster; hosted != nil {
			message += fmt.Sprintf(" (of hosted cluster %s/%s: with the kubeconfig of its guest)", hosted.Namespace, hosted.Name)
		}
	case v1alpha1.Expired:
		message = p.ended
		switch {
		case message != "" && p.observed.Failure != "":
			reason, message = RunFailed, message+"; "+p.failed()
		case message == "":
			reason, message = reasonNoVerdict, "the window has closed, and no run has a verdict"
		}
	}
	return reason, message
}

func (p projected) pending() (reason, message string) {
	switch {
	case p.observed.Now.Before(p.opens):
		return reasonTooEarly, "the preflight does not start before " + words.Time(p.opens)
	case p.observed.Waiting != "":
		return reasonWaiting, p.observed.Waiting
	case p.observed.Failure != "":
		return RunFailed, p.failed()
	case p.ended != "":
		return reasonNotStarted, p.ended + "; another run follows"
	}
	return reasonNotStarted, "no run has a verdict yet"
}

func (p projected) failed() string {
	return "the last run failed, and another one follows: " + p.observed.Failure
}

// VerdictMessage describes the verdict of a status that has one.
func VerdictMessage(status v1alpha1.UpdatePreflightStatus) string {
	command := "See: oc preflight status " + status.Run
	switch status.Decision {
	case string(verdict.Blocked):
		return fmt.Sprintf("%s. %s", listed("blocked by", status.Blocking, status.BlockingOmitted), command)
	case string(verdict.Undecided):
		return fmt.Sprintf("%s. %s", listed("inconclusive:", status.Undecided, status.UndecidedOmitted), command)
	}
	if len(status.Accepted) > 0 {
		return listed("no finding blocks; accepted:", status.Accepted, status.AcceptedOmitted)
	}
	return "no finding blocks"
}

func listed(what string, names []string, omitted int32) string {
	if len(names) == 0 {
		return what + " missing results" // fewer checks reported than were expected
	}
	return what + " " + words.ListOf(names[:min(len(names), maxCauses)], len(names)+int(omitted))
}

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

// afterUpdate is the condition of a judgement, without its times.
func afterUpdate(judged afterupdate.Report) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionAfterUpdate, Status: judgement.Status(judged.Decision), Reason: string(judged.Decision),
		Message: judged.Message,
	}
}

// judgedAt is the last sample of a judgement that is stored; nil for none. A gate counts the soak from it, whether it reads
// the hub or the cluster.
func (p projected) judgedAt() *metav1.Time {
	at, err := time.Parse(time.RFC3339, p.observed.After.Samples.Last)
	if err != nil || !p.observed.After.Decision.Final() {
		return nil
	}
	return &metav1.Time{Time: at}
}

// judgement is the part of a status about a judgement; nil for none.
func (p projected) judgement() *v1alpha1.AfterUpdate {
	if p.observed.After == nil {
		return nil
	}
	judged := *p.observed.After
	var names []string
	for _, each := range judged.Regressions {
		names = append(names, each.Name)
	}
	made := &v1alpha1.AfterUpdate{Run: words.Cut(judged.Update.Run, maxID), Decision: string(judged.Decision)}
	made.Regressions, made.RegressionsOmitted = bounded(names)
	return made
}

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// Outlook is whether the verdict is there when the managed-upgrade-operator starts the
// update.
type Outlook struct {
	// At is when the update starts.
	At    time.Time
	State schedule.Outlook
	// Invalid is why no update is scheduled that can be checked in advance, without the other fields; nil otherwise.
	Invalid *schedule.Invalid
}

// condition is ScheduledUpdate, without the fields that all conditions have.
func (o Outlook) condition() metav1.Condition {
	status, text := metav1.ConditionUnknown, ""
	if o.Invalid != nil {
		return metav1.Condition{
			Type: v1alpha1.ConditionScheduledUpdate, Status: status, Reason: string(o.Invalid.Reason),
			Message: "UpgradeConfig " + schedule.Name + " schedules no update that can be checked in advance: " + words.Line(o.Invalid.Error(),
				maxMessage),
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
