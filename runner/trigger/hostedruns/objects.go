package hostedruns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// objects are the UpdatePreflights of hosted clusters.
type objects struct {
	reader client.Reader
	writer client.Client
	// clusters, ahead and selection are as in Options.
	clusters, ahead int
	selection       func(image.Mode) string
}

// requests are the UpdatePreflights of hosted clusters that are not being deleted, by the hosted
// cluster. There are none where the API server does not serve them.
func (o *objects) requests(ctx context.Context) (map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all v1alpha1.UpdatePreflightList
	err := o.reader.List(ctx, &all)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not list the UpdatePreflights: %w", err)
	}
	requested := map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight{}
	for _, object := range all.Items {
		if of := object.Spec.HostedCluster; of != nil && object.DeletionTimestamp.IsZero() {
			requested[*of] = append(requested[*of], object)
		}
	}
	return requested, nil
}

// show makes the objects of these members those of their targets, and writes the statuses that differ, at most
// MaxWrites. It returns when a status changes without an event; zero for never. Nothing is
// shown where the objects could not be read.
func (o *objects) show(ctx context.Context, requested map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight, members map[v1alpha1.HostedCluster]*member, now time.Time) (time.Time, error) {
	if requested == nil {
		return time.Time{}, nil
	}
	var next runplan.Plan
	var failed []error
	writes := 0
	for of, m := range members {
		created, err := o.change(ctx, runplan.Reconciled(requested[of], m.targets(o.ahead), m.version))
		failed = append(failed, err)
		state := m.state(now, o.ahead)
		for _, subject := range append(runplan.Subjects(created, m.version, o.selection, now), m.subjects...) {
			status := projection.Status(subject.Object, m.observation(subject, state))
			next.Wait(projection.Next(subject.Object, status, now))
			if equality.Semantic.DeepEqual(status, subject.Object.Status) {
				continue
			}
			if writes++; writes > runplan.MaxWrites {
				return now, errors.Join(failed...)
			}
			failed = append(failed, o.write(ctx, subject.Object, status))
		}
	}
	for of, objects := range requested {
		if members[of] == nil {
			failed = append(failed, o.leaveOut(ctx, objects, now))
		}
	}
	return next.Next, errors.Join(failed...)
}

// change makes the changes, and returns what it has created.
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
		failed = append(failed, client.IgnoreNotFound(o.writer.Patch(ctx, object, client.RawPatch("application/merge-patch+json", patch))))
	}
	for i := range changes.Delete {
		failed = append(failed, o.remove(ctx, &changes.Delete[i]))
	}
	return created, errors.Join(failed...)
}

func (o *objects) remove(ctx context.Context, object *v1alpha1.UpdatePreflight) error {
	err := o.writer.Delete(ctx, object, client.Preconditions{UID: &object.UID})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("could not delete UpdatePreflight %q: %w", object.Name, err)
	}
	return nil
}

// leaveOut deletes the own objects of a hosted cluster that has no preflights, or no longer
// exists. Those of administrators state it.
func (o *objects) leaveOut(ctx context.Context, objects []v1alpha1.UpdatePreflight, now time.Time) error {
	var failed []error
	for i := range objects[:min(len(objects), runplan.MaxWrites)] {
		object := &objects[i]
		if object.Owned() {
			failed = append(failed, o.remove(ctx, object))
			continue
		}
		unknown := fmt.Sprintf("the management cluster has no HostedCluster %s/%s, or more hosted clusters than the %d that have preflights",
			object.Spec.HostedCluster.Namespace, object.Spec.HostedCluster.Name, o.clusters)
		if status := projection.Status(object, projection.Observation{Now: now, Unknown: unknown}); !equality.Semantic.DeepEqual(status, object.Status) {
			failed = append(failed, o.write(ctx, object, status))
		}
	}
	return errors.Join(failed...)
}

// write writes a status. A conflict, and an object that is gone, are left for the next time.
func (o *objects) write(ctx context.Context, object *v1alpha1.UpdatePreflight, status v1alpha1.UpdatePreflightStatus) error {
	changed := object.DeepCopy()
	changed.Status = status
	err := o.writer.Status().Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("could not write the status of UpdatePreflight %q: %w", object.Name, err)
	}
	return nil
}

// observation is what the status of a subject depends on.
func (m *member) observation(subject runplan.Subject, state runplan.State) projection.Observation {
	o := projection.Observation{Now: state.Now, Target: subject.Target.Release, Unknown: subject.Unknown, Waiting: subject.Waiting}
	if subject.Unknown != "" {
		return o
	}
	of := subject.Target.Covered()
	if m.flight != nil && m.flight.run.Covered() == of {
		o.Running = &projection.Run{}
	}
	if last, found := m.verdicts[of]; found {
		o.Verdict = &last
	}
	if ended := state.Ended(subject.Target); len(ended) > 0 {
		o.Failure = ended[0].Failure
	}
	return o
}
