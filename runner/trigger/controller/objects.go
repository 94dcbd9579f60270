package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/reporting"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// definition is the name of the CustomResourceDefinition of UpdatePreflights.
const definition = ownsignal.Definition

// objects are the UpdatePreflights. Only Reconcile uses them, which is not called
// concurrently.
type objects struct {
	cache    cache.Cache
	writer   client.Client
	recorder events.EventRecorder
	logger   *slog.Logger
	// watch has each event of a source reconcile.
	watch func(source.Source) error
	// watched is true while the objects are watched, and missing while it is known that
	// the CustomResourceDefinition does not exist.
	watched, missing bool
	// last are the objects of the last list.
	last []v1alpha1.UpdatePreflight
	// reporter adds what the hub of a fleet reads.
	reporter *reporting.Reporter
}

// list returns the objects that are not being deleted, or those of the last list with an
// error. It returns none where the CustomResourceDefinition does not exist: its creation
// reconciles.
func (o *objects) list(ctx context.Context) ([]v1alpha1.UpdatePreflight, error) {
	defined := definitions()
	err := o.cache.Get(ctx, client.ObjectKey{Name: definition}, defined)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !defined.DeletionTimestamp.IsZero():
		return nil, o.unwatch(ctx)
	case err != nil:
		return o.last, fmt.Errorf("could not read CustomResourceDefinition %q: %w", definition, err)
	}
	if err := o.read(ctx); err != nil {
		return o.last, err
	}
	return o.last, o.startWatch()
}

// read sets last.
func (o *objects) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all v1alpha1.UpdatePreflightList
	if err := o.cache.List(ctx, &all); err != nil {
		return fmt.Errorf("could not list the UpdatePreflights: %w", err)
	}
	o.last = slices.DeleteFunc(all.Items, func(object v1alpha1.UpdatePreflight) bool {
		return !object.DeletionTimestamp.IsZero() || object.Spec.HostedCluster != nil // those are package hostedruns's
	})
	if len(o.last) > runplan.MaxObjects {
		o.logger.Warn("there are too many UpdatePreflights: the newest have no status", "number", len(o.last), "limit", runplan.MaxObjects)
	}
	return nil
}

// startWatch has each change of a spec or a label reconcile.
func (o *objects) startWatch() error {
	if o.watched {
		return nil
	}
	changed := predicate.Or(
		predicate.TypedGenerationChangedPredicate[*v1alpha1.UpdatePreflight]{}, predicate.TypedLabelChangedPredicate[*v1alpha1.UpdatePreflight]{})
	if err := o.watch(source.Kind(o.cache, &v1alpha1.UpdatePreflight{}, plan[*v1alpha1.UpdatePreflight](), changed)); err != nil {
		return fmt.Errorf("could not watch the UpdatePreflights: %w", err)
	}
	o.watched, o.missing = true, false
	o.logger.Info("watching the UpdatePreflights")
	return nil
}

// unwatch ends the watch of objects that no longer exist.
func (o *objects) unwatch(ctx context.Context) error {
	if !o.missing {
		o.logger.Warn("CustomResourceDefinition does not exist: the controller runs without UpdatePreflights until it is created", "name", definition)
	}
	o.missing = true
	if !o.watched {
		return nil
	}
	o.watched, o.last = false, nil
	return o.cache.RemoveInformer(ctx, &v1alpha1.UpdatePreflight{})
}

// change makes the controller's own objects those of its targets, and returns those that
// it has created.
func (o *objects) change(ctx context.Context, changes runplan.Changes) (created []v1alpha1.UpdatePreflight, err error) {
	var failed []error
	for i := range changes.Create {
		object := &changes.Create[i]
		switch err := o.writer.Create(ctx, object); {
		case err == nil:
			created = append(created, *object)
		case !apierrors.IsAlreadyExists(err):
			failed = append(failed, fmt.Errorf("could not create UpdatePreflight %q: %w", object.Name, err))
		}
	}
	for i := range changes.Relabel {
		object := &changes.Relabel[i]
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelRequester, object.Labels[v1alpha1.LabelRequester])
		if err := o.writer.Patch(ctx, object, client.RawPatch("application/merge-patch+json", patch)); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("could not label UpdatePreflight %q: %w", object.Name, err))
		}
	}
	for i := range changes.Delete {
		object := &changes.Delete[i]
		if err := o.writer.Delete(ctx, object, client.Preconditions{UID: &object.UID}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			failed = append(failed, fmt.Errorf("could not delete UpdatePreflight %q: %w", object.Name, err))
		}
	}
	return created, errors.Join(failed...)
}

// project writes the status of each subject that differs, at most MaxWrites, and an event for
// each change of its decision. It returns the time at which a status changes without an event,
// or another one is to be written; zero for never.
func (o *objects) project(ctx context.Context, subjects []runplan.Subject, state runplan.State, decided runplan.Verdicts, timeout time.Duration) (time.Time, error) {
	var next runplan.Plan
	var failed []error
	writes := 0
	o.reporter.Begin()
	for _, subject := range subjects {
		observed := observation(subject, state, decided, timeout)
		if !subject.Object.Owned() {
			next.Wait(o.reporter.Add(ctx, &observed, subject, state))
		}
		status := projection.Status(subject.Object, observed)
		next.Wait(projection.Next(subject.Object, status, state.Now))
		if equality.Semantic.DeepEqual(status, subject.Object.Status) {
			continue
		}
		if writes++; writes > runplan.MaxWrites {
			next.Wait(state.Now)
			break
		}
		changed := subject.Object.DeepCopy()
		changed.Status = status
		// A patch of a state that is not the present one would keep fields of another.
		err := o.writer.Status().Patch(ctx, changed, client.MergeFromWithOptions(subject.Object, client.MergeFromWithOptimisticLock{}))
		switch {
		case apierrors.IsConflict(err):
			next.Wait(state.Now.Add(time.Second))
		case err == nil:
			o.announce(subject.Object, status)
		case !apierrors.IsNotFound(err):
			failed = append(failed, fmt.Errorf("could not write the status of UpdatePreflight %q: %w", changed.Name, err))
		}
	}
	return next.Next, errors.Join(failed...)
}

// observation is what the status of a subject depends on.
func observation(subject runplan.Subject, state runplan.State, decided runplan.Verdicts, timeout time.Duration) projection.Observation {
	o := projection.Observation{Now: state.Now, Target: subject.Target.Release, Unknown: subject.Unknown, Waiting: subject.Waiting}
	if subject.Unknown != "" {
		return o
	}
	o.Outlook = state.Outlook(subject.Target, timeout)
	of := subject.Target.Covered()
	for _, run := range state.Runs {
		if run.InProgress() && run.Covered() == of && (o.Running == nil || o.Running.ID == "") {
			o.Running = &projection.Run{ID: run.ID}
		}
	}
	if last, found := decided[of]; found {
		o.Verdict = &last
	}
	if ended := state.Ended(subject.Target); len(ended) > 0 {
		o.Failure = ended[0].Failure
	}
	return o
}

// announce records an event for a status with another decision than before, and for a run
// that failed.
func (o *objects) announce(before *v1alpha1.UpdatePreflight, status v1alpha1.UpdatePreflightStatus) {
	present := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	previous := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	failed := present.Reason == projection.RunFailed && (previous == nil || previous.Message != present.Message)
	if before.Status.Decision == status.Decision && !failed {
		return
	}
	var text string
	kind, reason := corev1.EventTypeWarning, status.Decision
	switch {
	case failed:
		reason, text = present.Reason, present.Message
	case status.Decision == "":
		reason, text = "VerdictEnded", "the verdict has ended; "+present.Message
	case status.Decision == string(v1alpha1.Ready):
		kind, text = corev1.EventTypeNormal, projection.VerdictMessage(status)
	default:
		text = projection.VerdictMessage(status)
	}
	o.recorder.Eventf(about(before), nil, kind, reason, "Preflight", "%s: %s", targetOf(status, before), words.Line(text, maxEvent))
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
	named := &v1alpha1.UpdatePreflight{ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion}}
	named.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
	return named
}
