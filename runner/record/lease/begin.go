package lease

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// Begin creates the run of an intent. If a run of the same release is in progress
// without a holder, that run is taken over instead, with its own ID: its Lease was
// released or deleted, or Follow of this Store has returned ErrAbandoned for it.
// Begin does not wait for a Lease to expire.
//
// The error is a *BusyError when another process holds the run in progress, or may
// hold it; a *SelectionError when that run has another selection, which is known
// once its header exists; a *FormatError when it was recorded by an incompatible
// version of the tool.
func (r *Runs) Begin(ctx context.Context, intent record.Intent, holder string) (*Held, error) {
	if err := intent.Validate(holder); err != nil {
		return nil, err
	}
	content, err := recordformat.NewHeader(intent)
	if err != nil {
		return nil, err
	}
	for range recordstore.Conflicts {
		var held *Held
		if held, err = r.begin(ctx, content, holder); !errors.Is(err, recordstore.ErrMoved) {
			return held, err
		}
	}
	return nil, fmt.Errorf("could not begin a run: %w", err)
}

func (r *Runs) begin(ctx context.Context, content recordformat.Header, holder string) (*Held, error) {
	intent := content.Record.Intent
	claim := r.newClaim(intent, holder)
	lost, err := r.unfinished(ctx, intent)
	if err != nil {
		return nil, err
	}
	if lost != "" {
		claim.id = lost
	}
	err = claim.create(ctx)
	if apierrors.IsAlreadyExists(err) {
		err = r.takeOver(ctx, claim, intent)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, recordstore.ErrMoved
	case err != nil:
		return nil, fmt.Errorf("could not hold the run: %w", err)
	}
	held, err := r.open(ctx, claim, content)
	if err != nil {
		return nil, errors.Join(err, held.abandon(ctx))
	}
	return held, nil
}

// unfinished is the ID of the newest run of the release that is in progress by its
// header; empty if there is none. Usually its Lease exists as well.
func (r *Runs) unfinished(ctx context.Context, intent record.Intent) (string, error) {
	headers, err := r.records.Headers(ctx, labels.Set{label.Release: label.ReleaseValue(intent.Target.Digest()), record.LabelPhase: string(record.Running)}.String())
	if err != nil {
		return "", fmt.Errorf("could not list the runs in progress: %w", err)
	}
	var newest *corev1.ConfigMap
	for i := range headers {
		if record.IsID(headers[i].Labels[record.Label]) && (newest == nil || newest.CreationTimestamp.Before(&headers[i].CreationTimestamp)) {
			newest = &headers[i]
		}
	}
	if newest == nil {
		return "", nil
	}
	id := newest.Labels[record.Label]
	switch active, err := inProgress(newest, intent); {
	case err != nil:
		return "", err
	case !active:
		return "", nil
	}
	return id, nil
}

// inProgress is false if the run has ended by its header. The error is why the intent
// cannot continue the run. An unreadable header counts as in progress.
func inProgress(object *corev1.ConfigMap, intent record.Intent) (bool, error) {
	found, err := recordformat.Parse(object)
	var unknown *record.FormatError
	switch {
	case errors.As(err, &unknown):
		return true, unknown
	case err == nil && found.Record.Phase.Final():
		return false, nil
	case err == nil:
		return true, found.Record.Same(intent)
	}
	return true, nil
}

// takeOver acquires the existing Lease if it has no holder.
func (r *Runs) takeOver(ctx context.Context, claim *claim, intent record.Intent) error {
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return claim.leases.Get(ctx, recordstore.LeaseName(claim.digest), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return recordstore.ErrMoved
	case err != nil:
		return err
	}
	id := lease.Annotations[record.Label]
	if !record.IsID(id) {
		return claim.acquire(ctx, lease) // a Lease without a run
	}
	object, err := r.records.Object(ctx, recordformat.HeaderName(id))
	if err != nil {
		return err
	}
	active := true
	if object != nil {
		if active, err = inProgress(object, intent); err != nil {
			return err
		}
	}
	if !active { // its holder was killed, or is about to delete the Lease
		claim.id = intent.ID
		return claim.acquire(ctx, lease)
	}
	if holder := recordstore.HolderOf(lease); holder != "" && !r.expired.has(lease) {
		return &BusyError{ID: id, Holder: holder}
	}
	claim.id = id
	return claim.acquire(ctx, lease)
}

func (r *Runs) open(ctx context.Context, claim *claim, content recordformat.Header) (*Held, error) {
	begun := claim.id != content.Record.ID
	content.Record.ID = claim.id
	held := &Held{records: r.records, claim: claim, resumed: begun, pending: make(chan struct{}, 1)}
	var err error
	if held.writer, err = recordstore.NewWriter(ctx, r.records, content, claim.owned, claim.nonce); err != nil {
		return held, err
	}
	if !begun {
		// The ID is new, unless a run in progress has the intent.
		created, err := held.writer.Create(ctx)
		if created || err != nil {
			held.record = held.writer.Record()
			return held, err
		}
	}
	results, err := held.writer.Resume(ctx)
	if err != nil {
		return held, err
	}
	held.resumed = true
	held.record = held.writer.Record()
	held.record.Results = results
	return held, nil
}

// abandon releases a Lease whose run could not be opened.
func (h *Held) abandon(ctx context.Context) error {
	if h.resumed {
		return h.claim.release(ctx)
	}
	return h.claim.remove(ctx)
}

// DeleteStaleLease deletes the Lease of a run that has ended, if its holder was killed
// before it deleted the Lease. Begin acquires such a Lease; DeleteStaleLease is for
// callers that begin no run.
func (r *Runs) DeleteStaleLease(ctx context.Context, run record.Record) error {
	if !run.Phase.Final() {
		return fmt.Errorf("run %s has not ended", run.ID)
	}
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return r.records.Leases().Get(ctx, recordstore.LeaseName(run.Target.Digest()), metav1.GetOptions{})
	})
	if err == nil && lease.Annotations[record.Label] == run.ID {
		err = retry.Do(ctx, func(ctx context.Context) error {
			return r.records.Leases().Delete(ctx, lease.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
			})
		})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a new run may have acquired it
		return nil
	}
	return fmt.Errorf("could not delete the stale lease of run %s: %w", run.ID, err)
}
