package record

import "time"

// vigil tells when a Lease has gone unrenewed for its duration, by the time that
// passed while a renewal would have been seen. It goes by the monotonic clock of
// this machine and not by anybody's idea of the time of day. While the API server
// cannot be watched, its time stands still: the holder could not renew either.
type vigil struct {
	of version
	// watched is how long that version has been watched, until since; since is zero
	// while nothing can be seen.
	watched time.Duration
	since   time.Time
}

// see takes note of a version of the Lease.
func (v *vigil) see(of version, now time.Time) {
	if v.of == of {
		return
	}
	v.of = of
	v.restart(now)
}

// restart forgets how long the version has been watched.
func (v *vigil) restart(now time.Time) {
	v.watched = 0
	if !v.since.IsZero() {
		v.since = now
	}
}

// lose is when nothing can be seen any more.
func (v *vigil) lose(now time.Time) {
	if !v.since.IsZero() {
		v.watched += now.Sub(v.since)
	}
	v.since = time.Time{}
}

// regain is when renewals would be seen again.
func (v *vigil) regain(now time.Time) {
	v.lose(now)
	v.since = now
}

// left is how long the version has still to be watched before a Lease of that
// duration is dead; false while nothing can be seen.
func (v *vigil) left(duration time.Duration, now time.Time) (time.Duration, bool) {
	if v.since.IsZero() {
		return 0, false
	}
	return duration - v.watched - now.Sub(v.since), true
}
