package record

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// writeInterval is the least time between two writes of results.
	writeInterval = time.Second
	// renewals is how often a Lease is renewed in its duration, with room for one
	// that is late.
	renewals = 3
)

var errGivenUp = errors.New("this process has given up the run")

// Held is a run that this process holds. Its methods may be called at the same
// time.
type Held struct {
	store   *Store
	claim   *claim
	book    *book
	record  Record
	resumed bool

	// news has a value when there is something to write.
	news chan struct{}

	mutex sync.Mutex
	// end is why the run is not to go on here; nil while it is. over is true when
	// nothing more may be written.
	end  error
	over bool
	// tell ends the contexts of Hold.
	tell []context.CancelCauseFunc
}

// Record is the record as it was when the run was begun or taken over, with the
// results that were in.
func (h *Held) Record() Record { return h.record }

// Resumed is true when the run had been begun before: there may be Jobs of it.
func (h *Held) Resumed() bool { return h.resumed }

// Now is the time by the clock of the cluster, to about a second, whatever the
// clock of this machine says.
func (h *Held) Now() time.Time {
	return h.book.clock.now()
}

// Hold renews the Lease, and writes what is Put, in the background: until the
// returned function is called, which waits for that to end, so also while ctx is
// done and the run is being ended. The returned context ends with ctx, or with
// the cause ErrTakenOver or ErrCanceled. A run that was canceled is held on
// until it is finished. An API server that is down is waited for: the run is
// lost only to another holder.
func (h *Held) Hold(ctx context.Context) (context.Context, context.CancelFunc) {
	holding, end := context.WithCancelCause(ctx)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.mutex.Lock()
	h.tell = append(h.tell, end)
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

// renewing renews the Lease until ctx is done or the run is over.
func (h *Held) renewing(ctx context.Context) {
	ticker := time.NewTicker(h.claim.duration / renewals)
	defer ticker.Stop()
	for {
		if h.canceled(ctx) {
			h.stop(ErrCanceled)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// An error that is not a takeover is met again, or not, at the next tick.
		if errors.Is(h.claim.renew(ctx), ErrTakenOver) {
			h.stop(ErrTakenOver)
		}
		if h.gone() != nil {
			return
		}
	}
}

func (h *Held) canceled(ctx context.Context) bool {
	canceled, err := h.claim.canceled(ctx)
	return err == nil && canceled
}

// writing writes results until ctx is done or the run is over.
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
		case <-h.news:
		}
		if h.gone() != nil {
			return
		}
		if err := h.judge(h.book.write(ctx)); err != nil {
			h.wake() // try again, at the next turn
		}
		pause.Reset(writeInterval)
	}
}

// stop ends the contexts of Hold. A run that was canceled is still held.
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
	for _, end := range h.tell {
		end(h.end)
	}
}

// Put records a result. It never blocks: results are written in the background,
// at once when there have been none for a second and otherwise with those that
// come until it is over. The last one of a check counts.
func (h *Held) Put(result Result) {
	h.book.queue.add(result)
	h.wake()
}

func (h *Held) wake() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// Flush writes the results that are in. Whoever deletes what they were read from
// calls it before: a result that is not written yet dies with this process. The
// error is ErrTakenOver when somebody else holds the run.
func (h *Held) Flush(ctx context.Context) error {
	if err := h.gone(); err != nil {
		return err
	}
	return h.judge(h.book.flush(ctx))
}

// judge ends the hold when somebody else has the run.
func (h *Held) judge(err error) error {
	if errors.Is(err, ErrTakenOver) {
		h.stop(ErrTakenOver)
	}
	return err
}

// Ending is what is recorded when a run ends.
type Ending struct {
	// Phase is one of the final phases.
	Phase Phase
	// Decision is that of the verdict, a valid label value; empty when there is none.
	Decision string
	// Report is JSON of at most 64 MiB; nil when there is none.
	Report []byte
	// Fingerprint is the state of the cluster that the verdict is about.
	Fingerprint map[string]string
}

// pack encodes the report for the record.
func (e Ending) pack() ([]byte, error) {
	if !e.Phase.final() {
		return nil, fmt.Errorf("a run does not end in phase %q", e.Phase)
	}
	return packReport(e.Report, e.Fingerprint)
}

// Finish ends the run: it writes the report, then that the run has ended, then
// deletes the Lease, and deletes all but the newest 20 runs that have ended. A
// process that is killed before the end is written leaves a run in progress. The
// error is ErrTakenOver when another process holds the run.
func (h *Held) Finish(ctx context.Context, ending Ending) error {
	packed, err := ending.pack()
	if err != nil {
		return err
	}
	if err := h.gone(); err != nil {
		return err
	}
	if err := h.judge(h.book.finish(ctx, ending.Phase, ending.Decision, packed)); err != nil {
		return err
	}
	h.stop(errGivenUp)
	if err := h.claim.remove(ctx); err != nil && !errors.Is(err, ErrTakenOver) {
		return err
	}
	h.store.prune(ctx)
	return nil
}

// Detach writes what is in and gives the run up, for whoever wants to go on with
// it: the next Begin takes it over at once.
func (h *Held) Detach(ctx context.Context) error {
	if err := h.gone(); err != nil {
		return err
	}
	written := h.judge(h.book.leave(ctx))
	h.stop(errGivenUp)
	return errors.Join(written, h.claim.release(ctx))
}

// gone is why this process does not hold the run any more.
func (h *Held) gone() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.over {
		return h.end
	}
	return nil
}
