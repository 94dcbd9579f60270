package preflight

import (
	"context"
	"io"
	"time"
)

// maxGrace is the maximum time that a check may take to return after its
// context is done.
const maxGrace = 500 * time.Millisecond

// Evaluate runs this one check for the update and returns its finding, as [Main]
// does, without using flags, the environment, signals, files or the exit code of
// the process. It is for tests and for programs with a main function of their
// own.
//
// It returns at most half a second after ctx is done; a check that continues is
// abandoned. A panic becomes a finding. After is ignored. A declaration that
// [Main] rejects is reported as Unknown with the reason InvalidCheck. The lines
// of [T.Logf] are written to log, which may be nil.
func (c Check) Evaluate(ctx context.Context, update Update, log io.Writer) Finding {
	c.After = nil
	if err := validate([]Check{c}); err != nil {
		return Finding{Name: c.Name, Outcome: Unknown, Reason: reasonInvalidCheck, Message: err.Error(), URL: c.URL}
	}
	if log == nil {
		log = io.Discard
	}
	return runner{update: update, log: log, grace: maxGrace}.run(ctx, c, nil)
}

// runner runs checks, one after another.
type runner struct {
	update Update
	log    io.Writer
	// grace is how long a check may continue after its context is done, to report
	// what it knows.
	grace time.Duration
}

// run runs one check, unless the findings of its prerequisites prevent it. It
// returns at most grace after ctx is done; a check that continues is abandoned.
func (r runner) run(ctx context.Context, c Check, earlier []Finding) Finding {
	recorder := &recorder{name: c.Name, evidence: map[string]string{}}
	if ctx.Err() != nil {
		return recorder.finding(c, unstartedEnding(ctx, c))
	}
	if how := prerequisiteEnding(c, earlier); how.reason != "" {
		return recorder.finding(c, how)
	}

	ctx, cancel := withTimeout(ctx, c.Timeout)
	defer cancel()
	ended := make(chan ending, 1)
	recorder.root = &T{recorder: recorder, update: r.update, log: r.log, ctx: ctx}
	go call(c, recorder.root, ended)
	select {
	case how := <-ended:
		return recorder.finding(c, how)
	case <-ctx.Done():
	}

	grace := time.NewTimer(r.grace)
	defer grace.Stop()
	select {
	case how := <-ended:
		return recorder.finding(c, how)
	case <-grace.C:
		return recorder.finding(c, lateEnding(ctx, c, nil))
	}
}

// withTimeout returns a context that ends after timeout; 0 means no timeout.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errCheckTimeout)
}

// call calls the Run function of the check. It always sends how the call ended.
func call(c Check, t *T, ended chan<- ending) {
	var how ending
	defer func() { ended <- how }()
	attempt(&how, func() ending {
		defer t.runCleanups()
		err := c.Run(t.ctx, t)
		switch {
		// After its time is up, the requests of a check are cut short, so that even
		// nil is not a pass.
		case t.ctx.Err() != nil:
			return lateEnding(t.ctx, c, err)
		case err != nil:
			return ending{reason: reasonError, text: err.Error()}
		}
		return ending{}
	})
}
