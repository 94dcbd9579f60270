package afterupdate

import (
	"maps"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/settling"
)

// Course is what the states of a cluster have shown since the update: how the last one compares with the baseline, and since when
// each problem has been seen without a break. It keeps no state, which has megabytes. The zero value has seen nothing.
type Course struct {
	number     int
	first      time.Time
	last       time.Time
	unread     map[baseline.Kind]string
	progress   settling.Progress
	comparison regression.Comparison
	since      map[problem]time.Time
	steady     bool
	goodSince  time.Time
	names      map[baseline.Key]baseline.Key
}

// problem identifies a problem of an object.
type problem struct {
	key    baseline.Key
	reason string
}

// Sample is one look at a cluster after an update.
type Sample struct {
	State    baseline.State
	Progress settling.Progress
	// Names are the keys that a redacted state has replaced, by the others; nil for a state that is not redacted.
	Names map[baseline.Key]baseline.Key
}

// And is the course with one more sample, compared with the baseline; nil for none. One that is not later than the
// last one, such as after the clock was set back, begins the course anew.
func (c Course) And(before *baseline.State, sample Sample) Course {
	if c.number > 0 && !sample.State.Taken.After(c.last) {
		c = Course{}
	}
	next := Course{
		number: c.number + 1, first: c.first, last: sample.State.Taken, unread: sample.State.Unread, progress: sample.Progress, names: sample.Names,
		comparison: regression.Compare(before, sample.State), since: map[problem]time.Time{}, goodSince: c.goodSince,
	}
	if next.first.IsZero() {
		next.first = sample.State.Taken
	}
	good := next.follow(c.since)
	next.steady = c.number > 0 && sameProblems(c.since, next.since)
	switch {
	case !good:
		next.goodSince = time.Time{}
	case next.goodSince.IsZero():
		next.goodSince = sample.State.Taken
	}
	return next
}

// follow notes since when each problem has been seen, given what was seen before, and reports whether none speaks against
// the update.
func (c *Course) follow(before map[problem]time.Time) (good bool) {
	good = true
	for _, each := range c.comparison.Found {
		at := problem{each.Key, each.Problem.Reason}
		seen, again := before[at]
		if !again {
			seen = c.last
		}
		if own := each.Problem.Since; !own.IsZero() && own.Before(seen) {
			seen = own
		}
		c.since[at] = seen
		good = good && each.Class != regression.Worse && each.Class != regression.Unattributed
	}
	for at, seen := range before { // what was not read now is no break
		if _, again := c.since[at]; !again && c.unread[at.key.Kind] != "" {
			c.since[at] = seen
		}
	}
	return good
}

func sameProblems(a, b map[problem]time.Time) bool {
	return maps.EqualFunc(a, b, func(time.Time, time.Time) bool { return true })
}

// Number is how many samples the course has.
func (c Course) Number() int { return c.number }
