package jobs

import (
	"maps"
	"slices"
)

// queue decides whose Job may be started: no more than limit Jobs are unfinished
// at one time, and no two of the same series. First come, first served; who
// waits for another of its series keeps nobody else waiting.
//
// It knows the checks by their place in the plan. It is pure, takes the same
// time however many wait, and is not safe for concurrent use.
type queue struct {
	limit int
	// series is what a check belongs to, by its place; "" is nothing.
	series []string
	// open are the checks whose Job is unfinished, or is being created. There
	// may be more than limit, where they were there before.
	open map[int]bool
	// busy counts the open ones of a series.
	busy map[string]int
	// line are those who wait for room. Before them come the first, whose series
	// has just become free.
	first, line waiters
	// behind are those who wait for another of their series.
	behind map[string]*waiters
	// spare are open ones of which nobody expects anything more.
	spare map[int]bool
}

func newQueue(limit int, series []string) *queue {
	return &queue{
		limit: limit, series: series, open: map[int]bool{}, busy: map[string]int{},
		behind: map[string]*waiters{}, spare: map[int]bool{},
	}
}

// join has a check wait for its turn.
func (q *queue) join(i int) {
	if !q.open[i] {
		q.line.add(i)
	}
}

// take opens a check, whether there is room or not: its Job is unfinished.
func (q *queue) take(i int) {
	if q.open[i] {
		return
	}
	q.open[i] = true
	if series := q.series[i]; series != "" {
		q.busy[series]++
	}
}

// free closes a check: its Job is finished, or gone.
func (q *queue) free(i int) {
	if !q.open[i] {
		return
	}
	delete(q.open, i)
	delete(q.spare, i)
	series := q.series[i]
	if series == "" {
		return
	}
	q.busy[series]--
	if behind := q.behind[series]; q.busy[series] == 0 && behind != nil {
		if next, ok := behind.next(); ok {
			q.first.add(next)
		}
	}
}

// start are those who may be started now. They are open then.
func (q *queue) start() []int {
	var started []int
	for len(q.open) < q.limit {
		i, ok := q.first.next()
		if !ok {
			i, ok = q.line.next()
		}
		if !ok {
			break
		}
		if series := q.series[i]; series != "" && q.busy[series] > 0 {
			q.hold(series, i)
			continue
		}
		q.take(i)
		started = append(started, i)
	}
	return started
}

// hold has a check wait for another of its series.
func (q *queue) hold(series string, i int) {
	if q.behind[series] == nil {
		q.behind[series] = &waiters{}
	}
	q.behind[series].add(i)
}

// dispensable says that nobody expects anything more of a check.
func (q *queue) dispensable(i int) {
	if q.open[i] {
		q.spare[i] = true
	}
}

// pressed is true for an open check whose place others wait for.
func (q *queue) pressed(i int) bool {
	if behind := q.behind[q.series[i]]; behind != nil && len(*behind) > 0 {
		return q.open[i]
	}
	return q.open[i] && len(q.open) >= q.limit && len(q.first)+len(q.line) > 0
}

// dismiss are the dispensable ones whose place others wait for, each once.
func (q *queue) dismiss() []int {
	var dismissed []int
	for _, i := range slices.Sorted(maps.Keys(q.spare)) {
		if q.pressed(i) {
			delete(q.spare, i)
			dismissed = append(dismissed, i)
		}
	}
	return dismissed
}

// waiters are places of the plan, first come, first served.
type waiters []int

func (w *waiters) add(i int) { *w = append(*w, i) }

func (w *waiters) next() (int, bool) {
	if len(*w) == 0 {
		return 0, false
	}
	i := (*w)[0]
	*w = (*w)[1:]
	return i, true
}
