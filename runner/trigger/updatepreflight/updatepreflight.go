// Package updatepreflight answers: which UpdatePreflights does a cluster have, and what do they contain?
//
// [Writer] writes them, in passes: [Pass.Reconcile] makes the controller's own match its targets, and writes the state
// of each preflight into its status.
package updatepreflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/sigstore/sigstore/pkg/signature"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/completion"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// Cluster is a cluster as its UpdatePreflights depend on it.
type Cluster struct {
	Objects []v1alpha1.UpdatePreflight
	// Subjects are the objects with the releases that they select, and Targets those that have an object of the controller.
	Subjects []runplan.Subject
	Targets  []runplan.Target
	State    runplan.State
	Verdicts runplan.Verdicts
	// Selection returns the coverage of runs with a mode of the images, and Timeout bounds a run.
	Selection func(image.Mode) string
	Timeout   time.Duration
}

// Writer writes UpdatePreflights.
type Writer struct {
	Client client.Client
	// Reporter adds the data for the hub of a fleet; nil adds nothing.
	Reporter *Reporter
	// Recorder records an event for each status with another decision; nil for none.
	Recorder events.EventRecorder
}

// Pass is the writing of at most MaxWrites statuses.
type Pass struct {
	writer Writer
	writes int
	next   runplan.Plan
	failed []error
}

// Begin begins a pass.
func (w Writer) Begin() *Pass {
	w.Reporter.begin()
	return &Pass{writer: w}
}

// End is when a status changes without an event, or another status must be written; zero for never.
func (p *Pass) End() (time.Time, error) { return p.next.Next, errors.Join(p.failed...) }

// Reconcile makes the controller's own objects match its targets, and writes the status of each subject that differs.
func (p *Pass) Reconcile(ctx context.Context, of Cluster) {
	if p.full() {
		return
	}
	changes := runplan.Reconciled(of.Objects, of.Targets, of.State.ClusterVersion)
	created := p.change(ctx, changes)
	if changes.More {
		p.next.Wait(of.State.Now)
	}
	// Hundreds of other objects must not delay the first status of these.
	for _, subject := range append(runplan.Subjects(created, of.State.ClusterVersion, of.Selection, of.State.Now), of.Subjects...) {
		observed := of.observation(subject)
		p.next.Wait(p.writer.Reporter.Add(ctx, &observed, subject, of.State))
		if p.State(ctx, subject.Object, observed); p.full() {
			return
		}
	}
}

// full reports whether no more is written.
func (p *Pass) full() bool { return p.writes > runplan.MaxWrites }

// State writes the status of an object, if it differs.
func (p *Pass) State(ctx context.Context, object *v1alpha1.UpdatePreflight, observed projection.Observation) {
	status := projection.Status(object, observed)
	p.next.Wait(projection.Next(object, status, observed.Now))
	if equality.Semantic.DeepEqual(status, object.Status) {
		return
	}
	if p.writes++; p.full() {
		p.next.Wait(observed.Now)
		return
	}
	changed := object.DeepCopy()
	changed.Status = status
	// A patch of a state that is not the present one would keep fields of another.
	err := p.writer.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		p.next.Wait(observed.Now.Add(time.Second))
	case err == nil:
		p.writer.announce(object, status)
	case !apierrors.IsNotFound(err):
		p.failed = append(p.failed, fmt.Errorf("could not write the status of UpdatePreflight %q: %w", object.Name, err))
	}
}

// change makes changes, and returns the objects that it has created.
func (p *Pass) change(ctx context.Context, changes runplan.Changes) (created []v1alpha1.UpdatePreflight) {
	for i := range changes.Create {
		object := &changes.Create[i]
		switch err := p.writer.Client.Create(ctx, object); {
		case err == nil:
			created = append(created, *object)
		case !apierrors.IsAlreadyExists(err):
			p.failed = append(p.failed, fmt.Errorf("could not create UpdatePreflight %q: %w", object.Name, err))
		}
	}
	for i := range changes.Relabel {
		object := &changes.Relabel[i]
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelRequester, object.Labels[v1alpha1.LabelRequester])
		if err := p.writer.Client.Patch(ctx, object, client.RawPatch("application/merge-patch+json", patch)); client.IgnoreNotFound(err) != nil {
			p.failed = append(p.failed, fmt.Errorf("could not label UpdatePreflight %q: %w", object.Name, err))
		}
	}
	for i := range changes.Delete {
		p.Delete(ctx, &changes.Delete[i])
	}
	return created
}

// Delete deletes an object. One that was replaced meanwhile stays.
func (p *Pass) Delete(ctx context.Context, object *v1alpha1.UpdatePreflight) {
	err := p.writer.Client.Delete(ctx, object, client.Preconditions{UID: &object.UID})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		p.failed = append(p.failed, fmt.Errorf("could not delete UpdatePreflight %q: %w", object.Name, err))
	}
}

// observation is the input for the status of a subject.
func (c Cluster) observation(subject runplan.Subject) projection.Observation {
	o := projection.Observation{Now: c.State.Now, Target: subject.Target.Release, Unknown: subject.Unknown, Waiting: subject.Waiting}
	if subject.Unknown != "" {
		return o
	}
	o.Outlook = c.State.Outlook(subject.Target, c.Timeout)
	of := subject.Target.Covered()
	for _, run := range c.State.Runs {
		if run.InProgress() && run.Covered() == of && (o.Running == nil || o.Running.ID == "") {
			o.Running = &projection.Run{ID: run.ID}
		}
	}
	if last, found := c.Verdicts[of]; found {
		o.Verdict = &last
	}
	if ended := c.State.Ended(subject.Target); len(ended) > 0 {
		o.Failure = ended[0].Failure
	}
	return o
}

// announce records an event for a status with another decision than before, and for a run
// that failed.
func (w Writer) announce(before *v1alpha1.UpdatePreflight, status v1alpha1.UpdatePreflightStatus) {
	present := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	previous := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	failed := present.Reason == projection.RunFailed && (previous == nil || previous.Message != present.Message)
	if w.Recorder == nil || before.Status.Decision == status.Decision && !failed {
		return
	}
	var text string
	kind, reason := corev1.EventTypeWarning, status.Decision
	switch {
	case failed:
		reason, text = present.Reason, present.Message
	case status.Decision == "":
		reason, text = "VerdictEnded", "the verdict is no longer valid; "+present.Message
	case status.Decision == string(v1alpha1.Ready):
		kind, text = corev1.EventTypeNormal, projection.VerdictMessage(status)
	default:
		text = projection.VerdictMessage(status)
	}
	w.Recorder.Eventf(about(before), nil, kind, reason, "Preflight", "%s: %s", targetOf(status, before), words.Line(text, maxEvent))
}

// maxEvent bounds the text of an event, in bytes: the API server accepts 1024.
const maxEvent = 800

// targetOf names the target of a status, or of its object where it has none.
func targetOf(status v1alpha1.UpdatePreflightStatus, object *v1alpha1.UpdatePreflight) string {
	target := cmp.Or(object.Spec.Target.Version, object.Spec.Target.Image, "the newest available update")
	if status.Target != nil {
		target = cmp.Or(status.Target.Version, status.Target.Image)
	}
	return words.Line(target, maxTarget)
}

// maxTarget bounds the name of a target in an event, in bytes.
const maxTarget = 200

// about is the object with its kind, which cached objects lack.
func about(object *v1alpha1.UpdatePreflight) *v1alpha1.UpdatePreflight {
	named := &v1alpha1.UpdatePreflight{ObjectMeta: metav1.ObjectMeta{
		Name: object.Name, UID: object.UID,
		ResourceVersion: object.ResourceVersion,
	}}
	named.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
	return named
}

// The times until the state of an update is read again.
const updatePause, updatedPause = time.Minute, 5 * time.Minute

// maxSigned bounds the signed verdicts that are kept.
const maxSigned = 2 * runplan.MaxRequests

// Reporter adds the data about a requested preflight that the hub of a fleet reads besides its verdict: the signed
// verdict, and whether the update to its target is complete. Its methods must not be called concurrently.
type Reporter struct {
	cluster *cluster.Cluster
	// key signs; nil signs nothing.
	key    signature.Signer
	logger *slog.Logger
	// signed are the verdicts that were signed, by run: a signature differs each time.
	signed map[string]string
	// present is the cluster as it was read for the observations of a pass.
	present *snapshot.Cluster
	// after returns the judgement of the last update; nil for a cluster whose updates are not evaluated.
	after func(*configv1.ClusterVersion) afterupdate.Report
}

// NewReporter returns the Reporter of one cluster. Without a key, it signs nothing. after returns the judgement of the
// last update; nil for a cluster whose updates are not evaluated.
func NewReporter(reached *cluster.Cluster, key signature.Signer, logger *slog.Logger,
	after func(*configv1.ClusterVersion) afterupdate.Report,
) *Reporter {
	return &Reporter{cluster: reached, key: key, logger: logger, signed: map[string]string{}, after: after}
}

// begin has what is read for the next observations read anew. Nil reads nothing.
func (r *Reporter) begin() {
	if r != nil {
		r.present = snapshot.Of(r.cluster)
	}
}

// Add extends the observation of a subject that an administrator requests. It returns when to call it again; zero for
// the next event. Nil adds nothing.
func (r *Reporter) Add(ctx context.Context, o *projection.Observation, subject runplan.Subject, state runplan.State) time.Time {
	if r == nil || subject.Object.Owned() {
		return time.Time{}
	}
	if o.Verdict != nil {
		o.Attestation = r.sign(*o.Verdict)
	}
	if !subject.Accepted {
		return time.Time{}
	}
	r.addAfter(o, subject, state)
	updated := completion.Of(completion.Read(ctx, r.present, nil, state.ClusterVersion, state.Now))
	o.Updated = &updated
	if updated.Status == metav1.ConditionTrue {
		return state.Now.Add(updatedPause)
	}
	return state.Now.Add(updatePause)
}

// addAfter adds the judgement of the last update, if that update went to the target.
func (r *Reporter) addAfter(o *projection.Observation, subject runplan.Subject, state runplan.State) {
	if r.after == nil || state.ClusterVersion == nil {
		return
	}
	judged := r.after(state.ClusterVersion)
	if of := (update.Release{Version: judged.Update.To, Image: judged.Update.Image}); of.Digest() != "" &&
		of.Digest() == subject.Target.Digest() {
		o.After = &judged
	}
}

// sign is the envelope of the signed verdict of a report; empty where it is not signed.
func (r *Reporter) sign(decided report.Report) string {
	id := decided.Run.ID
	if r.key == nil || id == "" {
		return ""
	}
	if text, known := r.signed[id]; known {
		return text
	}
	if len(r.signed) >= maxSigned {
		clear(r.signed)
	}
	text := ""
	stated, err := attestation.Of(decided)
	if err == nil {
		var envelope []byte
		if envelope, err = attestation.Sign(stated, r.key); err == nil {
			text = string(envelope)
		}
	}
	if err != nil {
		r.logger.Warn("the verdict is not signed", "run", id, "error", err)
	}
	r.signed[id] = text
	return text
}
