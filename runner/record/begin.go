package record

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/label"
)

// errMoved means that a run has begun, ended or changed hands while it was
// looked at.
var errMoved = errors.New("the run in progress changes all the time")

// Begin makes the run of an intent. Where one of the same release is in progress
// and nobody holds it, that is taken over instead, with its own ID: it was given
// up, its Lease is gone, or Follow of this Store has returned ErrAbandoned for
// it. Begin itself waits for no Lease.
//
// The error is a *BusyError when somebody holds the run in progress, or has not
// been seen not to; a *SelectionError when it looks at something else, which
// cannot be told before its head is there; a *FormatError when another version
// of the tool made it.
func (s *Store) Begin(ctx context.Context, intent Intent, holder string) (*Held, error) {
	if err := intent.validate(holder); err != nil {
		return nil, err
	}
	content, err := newHead(intent)
	if err != nil {
		return nil, err
	}
	for range conflicts {
		var held *Held
		if held, err = s.begin(ctx, content, holder); !errors.Is(err, errMoved) {
			return held, err
		}
	}
	return nil, fmt.Errorf("could not begin a run: %w", err)
}

func (s *Store) begin(ctx context.Context, content head, holder string) (*Held, error) {
	intent := content.record.Intent
	claim := s.newClaim(intent, holder)
	lost, err := s.unfinished(ctx, intent)
	if err != nil {
		return nil, err
	}
	if lost != "" {
		claim.id = lost
	}
	err = claim.create(ctx)
	if apierrors.IsAlreadyExists(err) {
		err = s.takeOver(ctx, claim, intent)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, errMoved
	case err != nil:
		return nil, fmt.Errorf("could not hold the run: %w", err)
	}
	held, err := s.open(ctx, claim, content)
	if err != nil {
		return nil, errors.Join(err, held.abandon(ctx))
	}
	return held, nil
}

// unfinished is the ID of the newest run of the release whose head says that it
// is in progress; empty when there is none. Usually its Lease is there as well.
func (s *Store) unfinished(ctx context.Context, intent Intent) (string, error) {
	heads, err := s.listHeads(ctx, labels.Set{label.Release: label.ReleaseValue(intent.Target.Digest()), labelPhase: string(Running)}.String())
	if err != nil {
		return "", fmt.Errorf("could not look for a run in progress: %w", err)
	}
	var newest *corev1.ConfigMap
	for i := range heads {
		if isID(heads[i].Labels[labelRecord]) && (newest == nil || newest.CreationTimestamp.Before(&heads[i].CreationTimestamp)) {
			newest = &heads[i]
		}
	}
	if newest == nil {
		return "", nil
	}
	id := newest.Labels[labelRecord]
	switch going, err := goesOn(newest, intent); {
	case err != nil:
		return "", err
	case !going:
		return "", nil
	}
	return id, nil
}

// goesOn is true unless the head says that its run has ended. The error says why
// the intent cannot go on with it. What cannot be read is lost, and no obstacle.
func goesOn(object *corev1.ConfigMap, intent Intent) (bool, error) {
	found, err := parse(object)
	var unknown *FormatError
	switch {
	case errors.As(err, &unknown):
		return true, unknown
	case err == nil && found.record.Phase.final():
		return false, nil
	case err == nil:
		return true, found.record.same(intent)
	}
	return true, nil
}

// takeOver takes the Lease that is there, if nobody holds it.
func (s *Store) takeOver(ctx context.Context, claim *claim, intent Intent) error {
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return claim.leases.Get(ctx, leaseName(claim.digest), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return errMoved
	case err != nil:
		return err
	}
	id := lease.Annotations[labelRecord]
	if !isID(id) {
		return claim.take(ctx, lease) // it says nothing
	}
	object, err := s.get(ctx, headName(id))
	if err != nil {
		return err
	}
	going := true
	if object != nil {
		if going, err = goesOn(object, intent); err != nil {
			return err
		}
	}
	if !going { // its holder was killed, or is about to delete the Lease
		claim.id = intent.ID
		return claim.take(ctx, lease)
	}
	if holder := holderOf(lease); holder != "" && !s.sawDead(lease) {
		return &BusyError{ID: id, Holder: holder}
	}
	claim.id = id
	return claim.take(ctx, lease)
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (s *Store) sawDead(lease *coordinationv1.Lease) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.dead[lease.Name] == versionOf(lease)
}

func (s *Store) noteDead(lease *coordinationv1.Lease) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.dead[lease.Name] = versionOf(lease)
}

// open makes the head of a run that begins, or takes note of what is in the one
// that is there.
func (s *Store) open(ctx context.Context, claim *claim, content head) (*Held, error) {
	begun := claim.id != content.record.ID
	content.record.ID = claim.id
	held := &Held{
		store: s, claim: claim, resumed: begun, news: make(chan struct{}, 1),
		book: &book{maps: s.maps(), get: s.get, ours: claim.ours, nonce: claim.nonce, turn: newTurn(), content: content},
	}
	if !begun {
		// Nobody else knows the ID, unless the intent is that of a run in progress.
		made, err := held.book.create(ctx)
		if made || err != nil {
			held.record = held.book.content.record
			return held, err
		}
	}
	results, err := held.book.resume(ctx)
	if err != nil {
		return held, err
	}
	held.resumed = true
	held.record = held.book.content.record
	held.record.Results = results
	return held, nil
}

// abandon gives up a Lease whose run could not be opened.
func (h *Held) abandon(ctx context.Context) error {
	if h.resumed {
		return h.claim.release(ctx)
	}
	return h.claim.remove(ctx)
}

// DeleteStaleLease deletes the Lease of a run that has ended, where its holder was killed
// when nothing but that was left to do. Begin takes such a Lease over; this is for
// whoever has no run to begin, because this one says it all.
func (s *Store) DeleteStaleLease(ctx context.Context, run Record) error {
	if !run.Phase.final() {
		return fmt.Errorf("run %s has not ended", run.ID)
	}
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return s.leases().Get(ctx, leaseName(run.Target.Digest()), metav1.GetOptions{})
	})
	if err == nil && lease.Annotations[labelRecord] == run.ID {
		err = retry.Do(ctx, func(ctx context.Context) error {
			return s.leases().Delete(ctx, lease.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
			})
		})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a new run may have it by now
		return nil
	}
	return fmt.Errorf("could not delete the lease that run %s has left: %w", run.ID, err)
}
