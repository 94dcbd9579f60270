package lease

import (
	"context"
	"errors"
	"sync"
	"time"

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
// but the newest 20 runs with a verdict and the newest 10 that ended without one. A process that is killed before the final phase is written leaves a run
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
