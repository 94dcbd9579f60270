package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
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
	// writeInterval is the minimum time between two writes of results.
	writeInterval = time.Second
	// renewals is how often a Lease is renewed within its duration, so that one late renewal does not lose it.
	renewals = 3
)

var errReleased = errors.New("this process has released the run")

// Held is a run that this process holds. Its methods may be called concurrently.
type Held struct {
	records *recordstore.Store
	claim   *claim
	writer  *recordstore.Writer
	record  record.Record
	resumed bool

	// pending has a value when results are queued.
	pending chan struct{}

	mutex sync.Mutex
	// end is why this process has to stop the run; nil before. over is true when it may write nothing more.
	end     error
	over    bool
	cancels []context.CancelCauseFunc
}

// Record returns the record at the time when the run was begun or taken over, with its results.
func (h *Held) Record() record.Record { return h.record }

// Resumed is true when the run was begun by another process: its Jobs may exist.
func (h *Held) Resumed() bool { return h.resumed }

// Now returns the time by the clock of the API server, to about a second.
func (h *Held) Now() time.Time {
	return h.writer.Clock.Now()
}

// Hold renews the Lease and writes the results of Put in the background, until the
// returned function is called, which waits for their end; also after ctx is done, while
// the run is being ended. The returned context is canceled with ctx, or with the cause
// ErrTakenOver or ErrCanceled. A canceled run is held until it is finished. Errors of
// the API server are retried: the run is lost only to another holder.
func (h *Held) Hold(ctx context.Context) (context.Context, context.CancelFunc) {
	holding, end := context.WithCancelCause(ctx)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.mutex.Lock()
	h.cancels = append(h.cancels, end)
	if h.end != nil {
		end(h.end)
	}
	h.mutex.Unlock()
	var loops sync.WaitGroup
	loops.Go(func() { h.renewing(working) })
	loops.Go(func() { h.writing(working) })
	return holding, func() {
		stop()
		loops.Wait()
		end(nil)
	}
}

// renewing renews the Lease until ctx is done or the run is released.
func (h *Held) renewing(ctx context.Context) {
	ticker := time.NewTicker(h.claim.duration / renewals)
	defer ticker.Stop()
	for {
		if canceled, err := h.claim.canceled(ctx); err == nil && canceled {
			h.stop(ErrCanceled)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// Other errors are retried at the next tick.
		if errors.Is(h.claim.renew(ctx), recordstore.ErrTakenOver) {
			h.stop(recordstore.ErrTakenOver)
		}
		if h.lost() != nil {
			return
		}
	}
}

// writing writes results until ctx is done or the run is released.
func (h *Held) writing(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-h.pending:
		}
		if h.lost() != nil {
			return
		}
		if err := h.checkOwner(h.writer.Write(ctx)); err != nil {
			h.notify() // retried after the interval
		}
		pause.Reset(writeInterval)
	}
}

// stop cancels the contexts of Hold. A canceled run is still held.
func (h *Held) stop(cause error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	switch {
	case h.over:
		return
	case !errors.Is(cause, ErrCanceled):
		h.end, h.over = cause, true
	case h.end == nil:
		h.end = cause
	}
	for _, end := range h.cancels {
		end(h.end)
	}
}

// Put records a result. It never blocks: results are written in the background, at
// most once per second. The last result of a check counts.
func (h *Held) Put(result record.Result) {
	h.writer.Queue.Add(result)
	h.notify()
}

func (h *Held) notify() {
	select {
	case h.pending <- struct{}{}:
	default:
	}
}

// Flush writes the queued results. It must be called before the Jobs are deleted from
// which they were read, since queued results are lost with this process. The error is
// ErrTakenOver when another process holds the run.
func (h *Held) Flush(ctx context.Context) error {
	if err := h.lost(); err != nil {
		return err
	}
	return h.checkOwner(h.writer.Flush(ctx))
}

// checkOwner ends the hold if another process holds the run.
func (h *Held) checkOwner(err error) error {
	if errors.Is(err, recordstore.ErrTakenOver) {
		h.stop(recordstore.ErrTakenOver)
	}
	return err
}

// Finish ends the run: it writes the report, then the final phase, ends the verdicts of the
// earlier runs of the same update if this one is complete, deletes the Lease, and deletes all
// but the newest 20 runs with a verdict and the newest 10 that ended without one. A process that is killed before the
// final phase is written leaves a run
// in progress. The error is ErrTakenOver when
// another process holds the run.
func (h *Held) Finish(ctx context.Context, ending record.Ending) error {
	packed, err := recordformat.PackEnding(ending)
	if err != nil {
		return err
	}
	if err := h.lost(); err != nil {
		return err
	}
	if err := h.checkOwner(h.writer.Finish(ctx, ending, packed)); err != nil {
		return err
	}
	// Afterwards, so that there is a verdict at any time.
	earlier, ended := h.records.EndEarlier(ctx, h.record, ending, h.Now())
	h.stop(errReleased)
	if err := h.claim.remove(ctx); err != nil && !errors.Is(err, recordstore.ErrTakenOver) {
		return errors.Join(ended, err)
	}
	h.records.Prune(ctx, earlier, h.record.From, ending.Phase)
	return ended
}

// Detach writes the queued results and releases the run: the next Begin takes it over at once.
func (h *Held) Detach(ctx context.Context) error {
	if err := h.lost(); err != nil {
		return err
	}
	written := h.checkOwner(h.writer.Close(ctx))
	h.stop(errReleased)
	return errors.Join(written, h.claim.release(ctx))
}

// lost is why this process no longer holds the run; nil while it does.
func (h *Held) lost() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.over {
		return h.end
	}
	return nil
}

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
