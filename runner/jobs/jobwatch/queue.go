package jobwatch

import (
	"maps"
	"slices"
)

// queue decides which Jobs may be created: at most limit Jobs are unfinished at
// one time, and at most one of a series. The order is first in, first out; a check
// that waits for another of its series does not delay the others.
//
// Checks are identified by their index in the plan. The queue is pure, its
// operations do not depend on the number of waiting checks, and it is not safe
// for concurrent use.
type queue struct {
	limit int
	// series is the series of each check, by index; "" is none.
	series []string
	// open are the checks whose Job is unfinished or is being created. More than
	// limit may be open if their Jobs existed before.
	open map[int]bool
	// busy counts the open checks of a series.
	busy map[string]int
	// waiting are the checks that wait for capacity; next, whose series has just become free, precede them.
	next, waiting fifo
	// blocked are the checks that wait for another of their series.
	blocked map[string]*fifo
	// expendable are open checks with findings, whose Job may be deleted.
	expendable map[int]bool
}

func newQueue(limit int, series []string) *queue {
	return &queue{
		limit: limit, series: series, open: map[int]bool{}, busy: map[string]int{},
		blocked: map[string]*fifo{}, expendable: map[int]bool{},
	}
}

func (q *queue) join(i int) {
	if !q.open[i] {
		q.waiting.add(i)
	}
}

// take opens a check regardless of the limit: its Job exists and is unfinished.
func (q *queue) take(i int) {
	if q.open[i] {
		return
	}
	q.open[i] = true
	if series := q.series[i]; series != "" {
		q.busy[series]++
	}
}

// free closes a check: its Job is finished or deleted.
func (q *queue) free(i int) {
	if !q.open[i] {
		return
	}
	delete(q.open, i)
	delete(q.expendable, i)
	series := q.series[i]
	if series == "" {
		return
	}
	q.busy[series]--
	if blocked := q.blocked[series]; q.busy[series] == 0 && blocked != nil {
		if next, ok := blocked.take(); ok {
			q.next.add(next)
		}
	}
}

func (q *queue) start() []int {
	var started []int
	for len(q.open) < q.limit {
		i, ok := q.next.take()
		if !ok {
			i, ok = q.waiting.take()
		}
		if !ok {
			break
		}
		if series := q.series[i]; series != "" && q.busy[series] > 0 {
			q.block(series, i)
			continue
		}
		q.take(i)
		started = append(started, i)
	}
	return started
}

func (q *queue) block(series string, i int) {
	if q.blocked[series] == nil {
		q.blocked[series] = &fifo{}
	}
	q.blocked[series].add(i)
}

// release marks the Job of an open check as one that may be deleted.
func (q *queue) release(i int) {
	if q.open[i] {
		q.expendable[i] = true
	}
}

// contended is true for an open check whose capacity others wait for.
func (q *queue) contended(i int) bool {
	if blocked := q.blocked[q.series[i]]; blocked != nil && len(*blocked) > 0 {
		return q.open[i]
	}
	return q.open[i] && len(q.open) >= q.limit && len(q.next)+len(q.waiting) > 0
}

// evict returns the expendable checks whose capacity others wait for, each once.
func (q *queue) evict() []int {
	var evicted []int
	for _, i := range slices.Sorted(maps.Keys(q.expendable)) {
		if q.contended(i) {
			delete(q.expendable, i)
			evicted = append(evicted, i)
		}
	}
	return evicted
}

// fifo is a queue of indexes, first in, first out.
type fifo []int

func (f *fifo) add(i int) { *f = append(*f, i) }

func (f *fifo) take() (int, bool) {
	if len(*f) == 0 {
		return 0, false
	}
	i := (*f)[0]
	*f = (*f)[1:]
	return i, true
}
