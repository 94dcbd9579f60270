package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/label"
)

const (
	annotationDigest = label.Release
	annotationCancel = "preflight.openshift.io/cancel"
	// conflicts bounds how often a change is made anew because somebody else
	// changed the same object, before that waits a little.
	conflicts = 5
)

// leaseName is the name of the Lease of the one run of a release in progress.
func leaseName(digest string) string { return "preflight-" + label.ReleaseValue(digest) }

// claim is the hold of this process on the one run of a release.
type claim struct {
	leases   coordinationv1client.LeaseInterface
	duration time.Duration
	id       string
	digest   string
	holder   string
	// nonce tells this claim from all others, also of the same holder.
	nonce string
	// turn is for what changes the Lease, one at a time.
	turn turn
	// lease is as it was last seen.
	lease *coordinationv1.Lease
	// over is set when the claim was given up.
	over bool
}

func (s *Store) newClaim(intent Intent, holder string) *claim {
	return &claim{
		leases: s.leases(), duration: s.duration, id: intent.ID, digest: intent.Target.Digest(), holder: holder,
		nonce: uuid.NewString(), turn: newTurn(),
	}
}

// turn lets in one at a time, and nobody longer than they want to wait.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) pass() { <-t }

// desired is the Lease, renewed now, as a newer state of base. Nobody but people
// reads its times.
func (c *claim) desired(base *coordinationv1.Lease) *coordinationv1.Lease {
	lease := base.DeepCopy()
	lease.Namespace, lease.Name = Namespace, leaseName(c.digest)
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	maps.Copy(lease.Labels, map[string]string{labelRecord: c.id, label.Release: label.ReleaseValue(c.digest)})
	maps.Copy(lease.Annotations, map[string]string{labelRecord: c.id, annotationDigest: c.digest, annotationClaim: c.nonce})
	now, seconds := metav1.NowMicro(), int32(c.duration.Seconds())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &c.holder, &seconds, &now
	if lease.Spec.AcquireTime == nil || base.Annotations[annotationClaim] != c.nonce {
		lease.Spec.AcquireTime = &now
	}
	return lease
}

// create makes the Lease. The error is AlreadyExists when there is one, unless
// that is this claim's.
func (c *claim) create(ctx context.Context) error {
	return retry.Do(ctx, func(ctx context.Context) error {
		err := c.know(c.leases.Create(ctx, c.desired(&coordinationv1.Lease{}), metav1.CreateOptions{}))
		if apierrors.IsAlreadyExists(err) && c.reload(ctx) == nil && c.lease != nil {
			return nil // the answer to a former try was lost
		}
		return err
	})
}

// take takes over the Lease in the state it was found in. The error is Conflict
// when it is in another by now.
func (c *claim) take(ctx context.Context, found *coordinationv1.Lease) error {
	next := c.desired(found)
	if found.Annotations[labelRecord] != c.id {
		delete(next.Annotations, annotationCancel) // that was about another run
	}
	transitions := int32(1)
	if found.Spec.LeaseTransitions != nil {
		transitions += *found.Spec.LeaseTransitions
	}
	next.Spec.LeaseTransitions = &transitions
	return retry.Do(ctx, func(ctx context.Context) error {
		err := c.know(c.leases.Update(ctx, next, metav1.UpdateOptions{}))
		if apierrors.IsConflict(err) && c.reload(ctx) == nil && c.lease != nil {
			return nil // the answer to a former try was lost
		}
		return err
	})
}

// reload reads the Lease: ErrTakenOver when it is somebody else's. One that is
// gone is nobody's, and lease is nil then.
func (c *claim) reload(ctx context.Context) error {
	found, err := c.leases.Get(ctx, leaseName(c.digest), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.lease = nil
		return nil
	case err != nil:
		return err
	case found.Annotations[annotationClaim] != c.nonce:
		return ErrTakenOver
	}
	c.lease = found
	return nil
}

// ours is nil unless somebody else has the Lease.
func (c *claim) ours(ctx context.Context) error {
	if err := c.turn.take(ctx); err != nil {
		return err
	}
	defer c.turn.pass()
	return retry.Do(ctx, c.reload)
}

// renew renews the Lease, and makes it again where somebody has deleted it.
func (c *claim) renew(ctx context.Context) error {
	return c.change(ctx, func(ctx context.Context) error {
		if c.lease == nil {
			return c.know(c.leases.Create(ctx, c.desired(&coordinationv1.Lease{}), metav1.CreateOptions{}))
		}
		return c.know(c.leases.Update(ctx, c.desired(c.lease), metav1.UpdateOptions{}))
	})
}

// know takes note of what a request was answered.
func (c *claim) know(answer *coordinationv1.Lease, err error) error {
	if err == nil {
		c.lease = answer
	}
	return err
}

// release leaves the Lease to whoever wants it.
func (c *claim) release(ctx context.Context) error {
	return c.change(ctx, func(ctx context.Context) error {
		if c.lease == nil {
			return nil
		}
		free := c.desired(c.lease)
		free.Spec.HolderIdentity = new(string)
		_, err := c.leases.Update(ctx, free, metav1.UpdateOptions{})
		c.over = err == nil
		return err
	})
}

// remove deletes the Lease.
func (c *claim) remove(ctx context.Context) error {
	return c.change(ctx, func(ctx context.Context) error {
		if c.lease == nil {
			return nil
		}
		err := c.leases.Delete(ctx, c.lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &c.lease.UID, ResourceVersion: &c.lease.ResourceVersion},
		})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		c.over = err == nil
		return err
	})
}

// change makes a change of the Lease, anew where somebody else has changed it
// meanwhile but not taken it.
func (c *claim) change(ctx context.Context, edit func(context.Context) error) error {
	if err := c.turn.take(ctx); err != nil {
		return err
	}
	defer c.turn.pass()
	if c.over {
		return nil
	}
	err := retry.Do(ctx, func(ctx context.Context) error {
		for range conflicts {
			err := edit(ctx)
			if !contested(err) {
				return err
			}
			if err := c.reload(ctx); err != nil {
				return err
			}
		}
		return retry.Mark(errors.New("somebody else changes it all the time"))
	})
	if err != nil && !errors.Is(err, ErrTakenOver) {
		return fmt.Errorf("could not change the lease of run %s: %w", c.id, err)
	}
	return err
}

// canceled is true when somebody asked for the end of the run.
func (c *claim) canceled(ctx context.Context) (bool, error) {
	if err := c.turn.take(ctx); err != nil {
		return false, err
	}
	defer c.turn.pass()
	return c.lease != nil && c.lease.Annotations[annotationCancel] == "true", nil
}
