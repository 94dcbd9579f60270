package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

const (
	annotationDigest = label.Release
	annotationCancel = "preflight.openshift.io/cancel"
)

// claim is the hold of this process on the Lease of a release.
type claim struct {
	leases   coordinationv1client.LeaseInterface
	duration time.Duration
	id       string
	digest   string
	holder   string
	// nonce identifies this claim among others, also of the same holder.
	nonce string
	// lock serializes changes of the Lease.
	lock     *semaphore.Weighted
	lease    *coordinationv1.Lease
	released bool
}

func (r *Runs) newClaim(intent record.Intent, holder string) *claim {
	return &claim{
		leases: r.records.Leases(), duration: r.duration, id: intent.ID, digest: intent.Target.Digest(), holder: holder,
		nonce: uuid.NewString(), lock: semaphore.NewWeighted(1),
	}
}

// desired is the renewed Lease, based on base. Its times are informative only.
func (c *claim) desired(base *coordinationv1.Lease) *coordinationv1.Lease {
	lease := base.DeepCopy()
	lease.Namespace, lease.Name = record.Namespace, recordstore.LeaseName(c.digest)
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	maps.Copy(lease.Labels, map[string]string{record.Label: c.id, label.Release: label.ReleaseValue(c.digest)})
	maps.Copy(lease.Annotations, map[string]string{record.Label: c.id, annotationDigest: c.digest, recordformat.AnnotationClaim: c.nonce})
	now, seconds := metav1.NowMicro(), int32(c.duration.Seconds())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &c.holder, &seconds, &now
	if lease.Spec.AcquireTime == nil || base.Annotations[recordformat.AnnotationClaim] != c.nonce {
		lease.Spec.AcquireTime = &now
	}
	return lease
}

// create creates the Lease. The error is AlreadyExists if it exists and does not belong to this claim.
func (c *claim) create(ctx context.Context) error {
	return retry.Do(ctx, func(ctx context.Context) error {
		err := c.update(c.leases.Create(ctx, c.desired(&coordinationv1.Lease{}), metav1.CreateOptions{}))
		if apierrors.IsAlreadyExists(err) && c.reload(ctx) == nil && c.lease != nil {
			return nil // the response to a former attempt was lost
		}
		return err
	})
}

// acquire takes the Lease over in the state in which it was found. The error is Conflict if it has changed since.
func (c *claim) acquire(ctx context.Context, found *coordinationv1.Lease) error {
	next := c.desired(found)
	if found.Annotations[record.Label] != c.id {
		delete(next.Annotations, annotationCancel) // the cancellation was of another run
	}
	transitions := int32(1)
	if found.Spec.LeaseTransitions != nil {
		transitions += *found.Spec.LeaseTransitions
	}
	next.Spec.LeaseTransitions = &transitions
	return retry.Do(ctx, func(ctx context.Context) error {
		err := c.update(c.leases.Update(ctx, next, metav1.UpdateOptions{}))
		if apierrors.IsConflict(err) && c.reload(ctx) == nil && c.lease != nil {
			return nil // the response to a former attempt was lost
		}
		return err
	})
}

// reload reads the Lease: ErrTakenOver if it belongs to another claim. The lease is nil if it was deleted.
func (c *claim) reload(ctx context.Context) error {
	found, err := c.leases.Get(ctx, recordstore.LeaseName(c.digest), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.lease = nil
		return nil
	case err != nil:
		return err
	case found.Annotations[recordformat.AnnotationClaim] != c.nonce:
		return recordstore.ErrTakenOver
	}
	c.lease = found
	return nil
}

func (c *claim) owned(ctx context.Context) error {
	if err := c.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.lock.Release(1)
	return retry.Do(ctx, c.reload)
}

// renew renews the Lease, and creates it again if another client has deleted it.
func (c *claim) renew(ctx context.Context) error {
	return c.change(ctx, func(ctx context.Context) error {
		if c.lease == nil {
			return c.update(c.leases.Create(ctx, c.desired(&coordinationv1.Lease{}), metav1.CreateOptions{}))
		}
		return c.update(c.leases.Update(ctx, c.desired(c.lease), metav1.UpdateOptions{}))
	})
}

func (c *claim) update(response *coordinationv1.Lease, err error) error {
	if err == nil {
		c.lease = response
	}
	return err
}

func (c *claim) release(ctx context.Context) error {
	return c.change(ctx, func(ctx context.Context) error {
		if c.lease == nil {
			return nil
		}
		unheld := c.desired(c.lease)
		unheld.Spec.HolderIdentity = new(string)
		_, err := c.leases.Update(ctx, unheld, metav1.UpdateOptions{})
		c.released = err == nil
		return err
	})
}

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
		c.released = err == nil
		return err
	})
}

// change changes the Lease, with retries while another client changes but does not acquire it.
func (c *claim) change(ctx context.Context, edit func(context.Context) error) error {
	if err := c.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.lock.Release(1)
	if c.released {
		return nil
	}
	err := retry.Do(ctx, func(ctx context.Context) error {
		for range recordstore.Conflicts {
			err := edit(ctx)
			if !recordstore.Contested(err) {
				return err
			}
			if err := c.reload(ctx); err != nil {
				return err
			}
		}
		return retry.Mark(errors.New("another client repeatedly changed it"))
	})
	if err != nil && !errors.Is(err, recordstore.ErrTakenOver) {
		return fmt.Errorf("could not change the lease of run %s: %w", c.id, err)
	}
	return err
}

func (c *claim) canceled(ctx context.Context) (bool, error) {
	if err := c.lock.Acquire(ctx, 1); err != nil {
		return false, err
	}
	defer c.lock.Release(1)
	return c.lease != nil && c.lease.Annotations[annotationCancel] == "true", nil
}
