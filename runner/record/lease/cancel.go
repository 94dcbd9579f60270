package lease

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
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

var (
	// ErrAbandoned means that the run has no holder: its Lease was released, or was not renewed.
	ErrAbandoned = errors.New("the run has no holder")
	// ErrCanceled means that the end of the run was requested.
	ErrCanceled = errors.New("the run was canceled")
)

// BusyError means that another process holds the run in progress of the release.
type BusyError struct {
	ID, Holder string
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s of the same release is in progress, held by %q", e.ID, e.Holder)
}

// HeldError is the error of a run that a process holds.
type HeldError struct {
	// Run is its ID, Holder the identity of the process: its user, machine and process ID.
	Run, Holder string
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s is in progress: %s holds it", e.Run, e.Holder)
}

// NotRunningError means that the run has ended.
type NotRunningError struct {
	ID    string
	Phase record.Phase
}

// Error implements error.
func (e *NotRunningError) Error() string {
	return fmt.Sprintf("run %s has ended in phase %s", e.ID, e.Phase)
}

// Remedy returns the next step, with its commands.
func (e *BusyError) Remedy() (sentence string, commands []finding.Action) {
	return "Follow the run", []finding.Action{finding.Read("oc preflight attach %s", e.ID)}
}

// Remedy returns the next step, with its commands.
func (e *NotRunningError) Remedy() (sentence string, commands []finding.Action) {
	return "Read its report", []finding.Action{finding.Read("oc preflight status %s", e.ID)}
}
