package suite

import (
	"fmt"
	"time"
)

// progress estimates when the packages that are planned have ended.
type progress struct {
	began time.Time
	// expected is the whole duration if no result is cached, when all is sum.
	expected, sum time.Duration
	history       *History
	// planned are the packages all of whose tests run, and number counts the others, too.
	planned map[string]bool
	number  int
	// all and done are the sums of the durations that are known from earlier runs; those of cached results
	// are in neither.
	all, done time.Duration
	ended     int
	now       time.Time
}

// Plan announces the packages of the lanes, and returns how long they take if no result is cached,
// with what the estimate is from.
func (r *Runner) Plan(history *History, cores int, lanes ...Lane) (took time.Duration, from string) {
	var paths []string
	p := progress{began: time.Now(), history: history, planned: map[string]bool{}}
	for i := range lanes {
		for lane := &lanes[i]; lane != nil; lane = lane.Next {
			p.number += len(lane.Packages)
			if !lane.partial() {
				paths = append(paths, lane.Packages...)
			}
		}
	}
	for _, path := range paths {
		p.planned[path] = true
		p.all += history.cost(path).Took
	}
	p.sum = p.all
	p.expected, from = history.Expected(paths, cores)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.progress = p
	return p.expected, from
}

// ran is the end of the tests of a package. Those of which only some tests ran are not planned.
func (p *progress) ran(path string, now time.Time) {
	p.now = now
	p.ended++
	if p.planned[path] {
		p.done += p.history.cost(path).Took
	}
}

// skipped is the end of a package whose result was cached.
func (p *progress) skipped(path string, now time.Time) {
	p.now = now
	p.ended++
	if p.planned[path] {
		p.all -= p.history.cost(path).Took
	}
}

// reliable is the share of the packages after which their speed says more than earlier runs.
const reliable = 0.2

// left estimates the time until the last package has ended.
func (p *progress) left() time.Duration {
	if p.all <= 0 {
		return 0
	}
	share, elapsed := float64(p.done)/float64(p.all), p.now.Sub(p.began)
	if share < reliable {
		ran := float64(p.all) / float64(p.sum)
		return max(0, time.Duration(ran*float64(p.expected))-elapsed)
	}
	return time.Duration(float64(elapsed) * (1 - share) / share)
}

// String implements fmt.Stringer. It is empty if nothing is planned.
func (p progress) String() string {
	switch {
	case p.number == 0:
		return ""
	case p.ended >= p.number:
		return fmt.Sprintf("  [%d/%d]", p.ended, p.number)
	default:
		return fmt.Sprintf("  [%d/%d, about %s left]", p.ended, p.number, Minutes(p.left()))
	}
}

// Minutes is a duration for people, who need no more than the minute.
func Minutes(d time.Duration) string {
	if d < time.Minute {
		return "a minute"
	}
	return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
}
