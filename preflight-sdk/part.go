package preflight

import "context"

// Run runs a part of the check, such as the part for one node. It reports
// whether the part was conclusive and did not fail. The check continues in any
// case: an error or a panic of one part makes the finding Unknown, or leaves it
// Fail, and does not prevent the other parts from running.
//
// All parts together produce one finding. What a part reports is prefixed with
// its name in messages, in the log and in keys of evidence. A reason that it
// sets applies to what it reports. Skipf skips only the part: if another part
// passes, the check passes. Once ctx is done no part is started. Parts may have
// parts, and may run in several goroutines; wait for these before returning.
func (t *T) Run(name string, part func(ctx context.Context, t *T) error) (ok bool) {
	if t.ctx.Err() != nil {
		return false
	}
	p := &T{
		recorder: t.recorder, update: t.update, log: t.log, ctx: t.ctx,
		parent: t, path: t.qualified("/", name),
	}
	var how ending
	// Deferred because runtime.Goexit would skip it, and the part would pass.
	defer func() { ok = p.conclude(how) }()
	attempt(&how, func() ending {
		defer p.runCleanups()
		err := part(p.ctx, p)
		if err == nil || p.ctx.Err() != nil && err.Error() == p.ctx.Err().Error() {
			return ending{} // The ending of the check states that its time was up.
		}
		return ending{reason: reasonError, text: err.Error()}
	})
	return ok
}

// Cleanup registers f to be called when the check or the part ends, including by
// an error, a panic or a timeout. Functions are called in reverse order. What f
// reports through t counts, and a panic in f is a panic of the check.
//
// f is not called when the process is killed, and the program does not wait for
// a check that ignores its context. Use it to close and remove local resources
// only, never to revert a change of the cluster.
func (t *T) Cleanup(f func()) {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// conclude records how the part ended.
func (t *T) conclude(how ending) (ok bool) {
	t.recorder.record(func() {
		if how.reason != "" {
			t.recorder.add(statement{outcome: Unknown, text: t.qualified(": ", how.text), reason: how.reason, source: t})
		}
		if how.stack != "" {
			t.recorder.evidence[t.qualified("/", "stack")] = how.stack
		}
		if t.worst == "" {
			t.recorder.passed = true
		}
		ok = t.ctx.Err() == nil && (t.worst == "" || severity(t.worst) < severity(Unknown))
	})
	return ok
}

// runCleanups calls the registered functions in reverse order. A panic in one of
// them does not prevent the others from being called.
func (t *T) runCleanups() {
	f := t.popCleanup()
	if f == nil {
		return
	}
	defer t.runCleanups()
	f()
}

func (t *T) popCleanup() func() {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	last := len(t.cleanups) - 1
	if last < 0 {
		return nil
	}
	f := t.cleanups[last]
	t.cleanups = t.cleanups[:last]
	return f
}
