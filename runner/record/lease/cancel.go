package lease

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// Cancel requests the end of a run from its holder, or from the next one if it has
// none; id is as for Get. The error is a *NotRunningError when the run has ended.
func (r *Runs) Cancel(ctx context.Context, id string) error {
	intent, err := r.running(ctx, id)
	if err != nil {
		return err
	}
	err = retry.Do(ctx, func(ctx context.Context) error {
		err := r.mark(ctx, intent)
		for i := 0; i < recordstore.Conflicts && apierrors.IsConflict(err); i++ {
			err = r.mark(ctx, intent)
		}
		return err
	})
	if !apierrors.IsNotFound(err) {
		return wrapCancel(intent, err)
	}
	// Without a Lease the run has just ended, or its Lease was deleted.
	if _, err := r.running(ctx, intent.ID); err != nil {
		return err
	}
	unheld := r.newClaim(intent, "").desired(&coordinationv1.Lease{})
	unheld.Annotations[annotationCancel] = "true"
	return wrapCancel(intent, retry.Do(ctx, func(ctx context.Context) error {
		_, err := r.records.Leases().Create(ctx, unheld, metav1.CreateOptions{})
		return err
	}))
}

func (r *Runs) running(ctx context.Context, id string) (record.Intent, error) {
	object, err := r.records.Find(ctx, id)
	if err != nil {
		return record.Intent{}, err
	}
	found, err := recordformat.Parse(object)
	switch {
	case err != nil:
		return record.Intent{}, fmt.Errorf("could not read the record of run %s: %w", object.Labels[record.Label], err)
	case found.Record.Phase.Final():
		return record.Intent{}, &NotRunningError{ID: found.Record.ID, Phase: found.Record.Phase}
	}
	return found.Record.Intent, nil
}

func (r *Runs) mark(ctx context.Context, intent record.Intent) error {
	lease, err := r.records.Leases().Get(ctx, recordstore.LeaseName(intent.Target.Digest()), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if other := lease.Annotations[record.Label]; other != intent.ID {
		return fmt.Errorf("another run of the same release is in progress: %q", other)
	}
	lease.Annotations[annotationCancel] = "true"
	_, err = r.records.Leases().Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func wrapCancel(intent record.Intent, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("could not cancel run %s: %w", intent.ID, err)
}
