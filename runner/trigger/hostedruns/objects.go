package hostedruns

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
)

// requests are the UpdatePreflights of hosted clusters that are not being deleted, by the hosted
// cluster. There are none where the API server does not serve them.
func (f *fleet) requests(ctx context.Context) (map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all v1alpha1.UpdatePreflightList
	err := f.reader.List(ctx, &all)
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

// show makes the objects of the members those of their targets, and writes the statuses that differ, at most
// MaxWrites. It returns when a status changes without an event; zero for never. Nothing is
// shown where the objects could not be read.
func (f *fleet) show(ctx context.Context, requested map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight, now time.Time) (time.Time, error) {
	if requested == nil {
		return time.Time{}, nil
	}
	pass := f.writer.Begin()
	for of, m := range f.members {
		pass.Reconcile(ctx, updatepreflight.Cluster{
			Objects: requested[of], Subjects: m.subjects, Targets: m.targets(f.options.Ahead), State: m.state(now, f.options.Ahead),
			Verdicts: m.verdicts, Selection: f.options.Selection,
		})
	}
	for of, objects := range requested {
		if f.members[of] == nil {
			f.leaveOut(ctx, pass, objects, now)
		}
	}
	return pass.End()
}

// leaveOut deletes the own objects of a hosted cluster that has no preflights, or no longer
// exists. Those of administrators state it.
func (f *fleet) leaveOut(ctx context.Context, pass *updatepreflight.Pass, objects []v1alpha1.UpdatePreflight, now time.Time) {
	for i := range objects[:min(len(objects), runplan.MaxWrites)] {
		object := &objects[i]
		if object.Owned() {
			pass.Delete(ctx, object)
			continue
		}
		unknown := fmt.Sprintf("the management cluster has no HostedCluster %s/%s, or more hosted clusters than the %d that have preflights",
			object.Spec.HostedCluster.Namespace, object.Spec.HostedCluster.Name, f.options.Clusters)
		pass.State(ctx, object, projection.Observation{Now: now, Unknown: unknown})
	}
}
