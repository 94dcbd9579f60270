package preflight

import "context"

// Run asks a part of the question, as the one for each node, and reports
// whether the part was answered, and with no Fail. The check goes on in any
// case: an error or a panic of one part makes the finding Unknown, or leaves it
// Fail, and does not keep the others from being asked.
//
// All parts give one finding together. What a part says comes with its name
// before it, in messages, in the log and in keys of evidence; a reason that it
// sets counts for what it says. Skipf skips the part: where another part passed
// the check does too. Once ctx is done no part is started. Parts may have parts,
// and may be run from several goroutines; wait for those before returning.
func (t *T) Run(name string, part func(ctx context.Context, t *T) error) (ok bool) {
	if t.ctx.Err() != nil {
		return false
	}
	p := &T{
		account: t.account, update: t.update, log: t.log, ctx: t.ctx,
		parent: t, path: t.under("/", name),
	}
	var how ending
	// Deferred, since runtime.Goexit would go past it, and by that pass.
	defer func() { ok = p.conclude(how) }()
	attempt(&how, func() ending {
		defer p.cleanUp()
		err := part(p.ctx, p)
		if err == nil || p.ctx.Err() != nil && err.Error() == p.ctx.Err().Error() {
			return ending{} // That the time was up is said of the check.
		}
		return ending{reason: reasonError, text: err.Error()}
	})
	return ok
}

// Cleanup has f called when the check, or the part, has ended, be it by an
// error, a panic, or its time. The last f is called first. What f says through
// t counts, and a panic in it is one of the check. f is not called when the
// process is killed, or does not wait for a check that ignores its context; so
// it is for closing and removing what is local, and never has to undo a change
// of the cluster.
func (t *T) Cleanup(f func()) {
	t.account.mu.Lock()
	defer t.account.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// conclude adds to the account how the part ended.
func (t *T) conclude(how ending) (ok bool) {
	t.account.change(func() {
		if how.reason != "" {
			t.account.add(statement{outcome: Unknown, text: t.under(": ", how.text), reason: how.reason, by: t})
		}
		if how.stack != "" {
			t.account.evidence[t.under("/", "stack")] = how.stack
		}
		if t.worst == "" {
			t.account.passed = true
		}
		ok = t.ctx.Err() == nil && (t.worst == "" || severity(t.worst) < severity(Unknown))
	})
	return ok
}

// cleanUp calls what Cleanup was given, the last first, each whatever became
// of the others.
func (t *T) cleanUp() {
	f := t.lastCleanup()
	if f == nil {
		return
	}
	defer t.cleanUp()
	f()
}

func (t *T) lastCleanup() func() {
	t.account.mu.Lock()
	defer t.account.mu.Unlock()
	last := len(t.cleanups) - 1
	if last < 0 {
		return nil
	}
	f := t.cleanups[last]
	t.cleanups = t.cleanups[:last]
	return f
}
