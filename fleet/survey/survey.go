// Package survey answers: what do the clusters of a fleet answer, each in its own time?
//
// [Survey.Rows] asks all members side by side. A member that fails, hangs or answers late is a
// row that states so, and delays no other one.
package survey

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/fleet"
	"github.com/openshift/update-preflight/fleet/roster"
)

// Judge asks one cluster. Its error is why there is no verdict.
type Judge func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error)

// Store has the rows of earlier surveys.
type Store interface {
	// Known is the row of a member that need not be asked again.
	Known(member roster.Member) (fleet.Row, bool)
	// Keep keeps the row of a member that was asked.
	Keep(member roster.Member, row fleet.Row) error
}

// Survey is how members are asked.
type Survey struct {
	// Parallel is the number of members that are asked at one time; at least 1.
	Parallel int
	// Timeout is the time of one member, after which its answer does not count.
	Timeout time.Duration
	// Grace is the time after Timeout in which a judge that was interrupted may delete what it
	// created.
	Grace time.Duration
	// Store may be nil.
	Store Store
	// Progress receives each row as it becomes known, one at a time; may be nil.
	Progress func(done, all int, row fleet.Row)
}

// Rows are the rows of the members, in their order. A member that was not asked when ctx ended is
// Unreachable. The errors are those of the store, which change no row.
func (s Survey) Rows(ctx context.Context, members []roster.Member, judge Judge) ([]fleet.Row, error) {
	r := &round{Survey: s, judge: judge, rows: make([]fleet.Row, len(members)), archives: make(chan struct{}, archivesAtOnce())}
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(max(1, s.Parallel), len(members)) {
		workers.Go(func() {
			for i := range next {
				r.ask(ctx, i, members[i])
			}
		})
	}
	for _, archived := range []bool{false, true} { // clusters wait, archives compute
		for i := range members {
			if members[i].Archived == archived {
				next <- i
			}
		}
	}
	close(next)
	workers.Wait()
	return r.rows, errors.Join(r.failures...)
}

// archivesAtOnce bounds the archives that are read at one time: each takes a processor, and the
// memory for its content.
func archivesAtOnce() int { return min(4, runtime.GOMAXPROCS(0)) }

// round is one survey.
type round struct {
	Survey

	judge    Judge
	archives chan struct{}

	mutex    sync.Mutex
	rows     []fleet.Row
	done     int
	failures []error
}

// ask makes the row of a member.
func (r *round) ask(ctx context.Context, i int, member roster.Member) {
	row, fresh := r.row(ctx, member)
	row = fleet.Bounded(row)
	var err error
	if fresh && r.Store != nil {
		err = r.Store.Keep(member, row)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		r.failures = append(r.failures, fmt.Errorf("the result of %s was not kept: %w", row.Cluster.Name, err))
	}
	r.rows[i] = row
	r.done++
	if r.Progress != nil {
		r.Progress(r.done, len(r.rows), row)
	}
}

// row is the row of a member; fresh is true where the member gave a verdict.
func (r *round) row(ctx context.Context, member roster.Member) (row fleet.Row, fresh bool) {
	if member.State != "" {
		return fleet.Row{Cluster: member.Cluster, State: member.State, Message: member.Message}, false
	}
	if r.Store != nil {
		if known, ok := r.Store.Known(member); ok {
			return known, false
		}
	}
	if member.Archived {
		r.archives <- struct{}{}
		defer func() { <-r.archives }()
	}
	if ctx.Err() != nil {
		return unreachable(member.Cluster, errors.New("it was not asked: the survey was interrupted")), false
	}
	row, err := r.answer(ctx, member)
	if err != nil {
		return unreachable(member.Cluster, err), false
	}
	return row, true
}

// answer is the answer of a member in its time.
func (r *round) answer(ctx context.Context, member roster.Member) (fleet.Row, error) {
	type result struct {
		row fleet.Row
		err error
	}
	asking, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	done := make(chan result, 1)
	go func() { // it is not awaited if it hangs
		reached, err := member.Open(asking)
		var row fleet.Row
		if err == nil {
			row, err = r.judge(asking, member, reached)
		}
		done <- result{row, err}
	}()
	select {
	case got := <-done:
		return got.row, r.explain(asking, got.err)
	case <-asking.Done():
	}
	grace := time.NewTimer(r.Grace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
	return fleet.Row{}, r.explain(asking, context.Cause(asking))
}

// explain adds the time limit to an error that is due to it.
func (r *round) explain(asking context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(asking), context.DeadlineExceeded) {
		return fmt.Errorf("it did not answer within %s", r.Timeout)
	}
	return err
}

func unreachable(of fleet.Cluster, cause error) fleet.Row {
	return fleet.Row{Cluster: of, State: fleet.Unreachable, Message: words.External(cause.Error())}
}
