package lease

import "time"

// leaseObserver measures for how long a Lease was watched without a renewal, by the
// monotonic clock of this machine. Time without a watch does not count: the holder
// could not renew the Lease either.
type leaseObserver struct {
	of version
	// watched is for how long that version was watched before since, the beginning of
	// the present watch; since is zero without a watch.
	watched time.Duration
	since   time.Time
}

func (o *leaseObserver) observe(of version, now time.Time) {
	if o.of == of {
		return
	}
	o.of = of
	o.restart(now)
}

// restart resets the measured time.
func (o *leaseObserver) restart(now time.Time) {
	o.watched = 0
	if !o.since.IsZero() {
		o.since = now
	}
}

func (o *leaseObserver) pause(now time.Time) {
	if !o.since.IsZero() {
		o.watched += now.Sub(o.since)
	}
	o.since = time.Time{}
}

func (o *leaseObserver) resume(now time.Time) {
	o.pause(now)
	o.since = now
}

// left is how long the version has to be watched further before a Lease of that
// duration expires; false without a watch.
func (o *leaseObserver) left(duration time.Duration, now time.Time) (time.Duration, bool) {
	if o.since.IsZero() {
		return 0, false
	}
	return duration - o.watched - now.Sub(o.since), true
}
