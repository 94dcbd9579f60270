// Package survey answers: what does each cluster of a fleet report?
//
// [Survey.Rows] reads all members in parallel. A member that fails, hangs or answers late becomes a row that says so,
// and delays no other member.
package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/trigger/completion"
)

// Evaluate reads one cluster. Its error is why there is no verdict.
type Evaluate func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error)

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
	// Grace is how long an interrupted evaluation may take after Timeout to delete the objects that it created.
	Grace time.Duration
	// Complete completes the row of a member that was asked, such as by the commands of a program; may be nil.
	Complete func(member roster.Member, row fleet.Row) fleet.Row
	// Store may be nil.
	Store Store
	// Progress receives each row once it is known, one at a time, with the index of its member: a row may have another
	// name than its member. May be nil.
	Progress func(done, all, member int, row fleet.Row)
}

// Rows returns the rows of the members, in their order. A member that was not read when ctx ended is Unreachable. The
// errors come from the store, and do not affect any row.
func (s Survey) Rows(ctx context.Context, members []roster.Member, judge Evaluate) ([]fleet.Row, error) {
	r := &round{how: s, judge: judge, rows: make([]fleet.Row, len(members)), archives: make(chan struct{}, archivesAtOnce())}
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
	r.alone = true
	for _, i := range r.crowded {
		r.ask(ctx, i, members[i])
	}
	return r.rows, errors.Join(r.failures...)
}

// archivesAtOnce bounds the archives that are read at one time: each takes a processor, and the
// memory for its content.
func archivesAtOnce() int { return min(4, runtime.GOMAXPROCS(0)) }

type round struct {
	how Survey

	judge    Evaluate
	archives chan struct{}

	mutex    sync.Mutex
	rows     []fleet.Row
	done     int
	failures []error
	// crowded are the members that found no room in memory beside the others, which are asked again alone.
	crowded []int
	alone   bool
}

func (r *round) ask(ctx context.Context, i int, member roster.Member) {
	row, fresh := r.row(ctx, member)
	row = fleet.Bounded(row)
	if !r.alone && len(row.Causes) > 0 && row.Causes[0].Name == fleet.CauseUnread && row.Causes[0].Reason == reasonNoRoom {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.crowded = append(r.crowded, i)
		return
	}
	var err error
	if fresh && r.how.Store != nil {
		err = r.how.Store.Keep(member, row)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		r.failures = append(r.failures, fmt.Errorf("the result of %s was not kept: %w", row.Cluster.Name, err))
	}
	r.rows[i] = row
	r.done++
	if r.how.Progress != nil {
		r.how.Progress(r.done, len(r.rows), i, row)
	}
}

// row is the row of a member; fresh is true where the member gave a verdict.
func (r *round) row(ctx context.Context, member roster.Member) (row fleet.Row, fresh bool) {
	if member.State != "" {
		return fleet.Row{Cluster: member.Cluster, State: member.State, Message: member.Message}, false
	}
	if r.how.Store != nil {
		if known, ok := r.how.Store.Known(member); ok {
			return known, false
		}
	}
	if member.Archived {
		r.archives <- struct{}{}
		defer func() { <-r.archives }()
	}
	if ctx.Err() != nil {
		return fleet.Unread(member.Cluster, "NotAsked", "it was not read: the command was interrupted", explained["NotAsked"].Remedy), false
	}
	return r.first(ctx, member)
}

// first is the answer by the first way to the member that gives one.
func (r *round) first(ctx context.Context, member roster.Member) (row fleet.Row, fresh bool) {
	asking, cancel := context.WithTimeout(ctx, r.how.Timeout)
	defer cancel()
	var failed fleet.Row
	for i, way := range member.Ways() {
		row, reached, err := r.answer(asking, way)
		if err == nil {
			return r.complete(way, row), true
		}
		if i == 0 {
			failed = r.complete(way, unread(asking, way.Cluster, reached, err))
		}
		if asking.Err() != nil {
			break
		}
	}
	return failed, false
}

func (r *round) complete(member roster.Member, row fleet.Row) fleet.Row {
	if r.how.Complete == nil {
		return row
	}
	return r.how.Complete(member, row)
}

type result struct {
	row fleet.Row
	err error
}

// answer is the answer of a member until asking ends. One that comes later does not count.
func (r *round) answer(asking context.Context, member roster.Member) (fleet.Row, roster.Connection, error) {
	opened, done := make(chan roster.Connection, 1), make(chan result, 1)
	go func() { // it is not awaited if it hangs
		reached, err := member.Open(asking)
		opened <- reached
		var row fleet.Row
		if err == nil {
			row, err = r.judge(asking, member, reached)
		}
		done <- result{row, err}
	}()
	var got result
	ended := true
	select {
	case got = <-done:
	case <-asking.Done():
		got, ended = r.await(done)
	}
	var reached roster.Connection
	select {
	case reached = <-opened:
	default:
	}
	if reached.Cluster != nil {
		got.err = cmp.Or(reached.Cluster.Exceeded(), got.err)
		if asking.Err() != nil && !r.alone && reached.Cluster.Waited() {
			got.err = &cluster.NoRoomError{Host: reached.Cluster.Config().Host}
		}
	}
	if _, crowded := errors.AsType[*cluster.NoRoomError](got.err); crowded || asking.Err() == nil {
		return got.row, reached, got.err
	}
	late := r.late(asking, reached)
	late.left = r.how.Grace > 0 && (!ended || got.row.Message != "")
	return fleet.Row{}, reached, late
}

// await gives an interrupted evaluation the time to delete the objects that it created; false if it takes longer.
func (r *round) await(done <-chan result) (result, bool) {
	grace := time.NewTimer(r.how.Grace)
	defer grace.Stop()
	select {
	case got := <-done:
		return got, true
	case <-grace.C:
		return result{}, false
	}
}

// Measured returns the row of a cluster with its last update and, if a version is given, the progress of the update to
// it: both with the judgement that is stored in the cluster. If something could not be read, it is Silent, with the
// cause.
func Measured(ctx context.Context, row fleet.Row, reached *cluster.Cluster, estate hosted.Estate, to string) fleet.Row {
	version, err := snapshot.Of(reached).ClusterVersion(ctx)
	if err != nil {
		if to != "" {
			row.Update = silent(fmt.Errorf("could not read ClusterVersion: %w", err))
		}
		return row
	}
	change, found := settling.ChangeOf(version.Status.History)
	var judged *fleet.Judgement
	if found {
		stored, exists := judgement.Last(ctx, reached, version)
		row.LastUpdate = lastUpdate(change, stored, exists)
		if exists && change.To.Version == to {
			judged = &fleet.Judgement{
				Status: string(judgement.Status(stored.Decision)), Since: stored.Samples.Last,
				Message: words.External(stored.Message),
			}
		}
	}
	if to != "" {
		row.Update = updateOf(ctx, reached, version, estate, to)
		row.Update.Judgement = judged
	}
	return row
}

// lastUpdate is the last update of a cluster with what is stored about it.
func lastUpdate(change settling.Change, stored afterupdate.Report, exists bool) *fleet.LastUpdate {
	made := &fleet.LastUpdate{From: change.From.Version, To: change.To.Version, Outcome: string(stored.Decision)}
	switch {
	case !exists:
		made.Outcome = judgement.NotJudged
	case stored.Decision == afterupdate.Undecided:
		made.Outcome, made.Message = fleet.OutcomeUnknown, words.External(stored.Message)
	}
	for _, each := range stored.Regressions {
		name := each.Object.Name
		if each.Object.Namespace != "" {
			name = each.Object.Namespace + "/" + name
		}
		made.Objects = append(made.Objects, each.Object.Kind+" "+name)
	}
	made.MoreObjects = max(0, stored.Counts.Regressions-len(stored.Regressions))
	return made
}

// updateOf is how far the update of a cluster to a version is.
func updateOf(ctx context.Context, reached *cluster.Cluster, version *configv1.ClusterVersion, estate hosted.Estate,
	to string,
) *fleet.Update {
	if version.Status.Desired.Version != to {
		return &fleet.Update{
			Stage:   string(wave.Outstanding),
			Message: "the cluster runs or installs " + words.External(version.Status.Desired.Version),
		}
	}
	controlPlane, _ := estate.ControlPlane()
	of := completion.Read(ctx, snapshot.Of(reached), controlPlane.State(), version, reached.Now())
	condition := completion.Of(of)
	made := &fleet.Update{Stage: string(wave.StageOf(string(condition.Status), condition.Reason)), Message: condition.Message}
	switch wave.Stage(made.Stage) {
	case wave.Updated:
		made.Since, made.Message = words.Time(completion.Since(of)), ""
	case wave.Updating:
		made.Since = started(version.Status.History)
	case wave.Outstanding, wave.Broken, wave.Silent:
	}
	return made
}

// started is when the newest update began; empty where it is unknown.
func started(history []configv1.UpdateHistory) string {
	if len(history) == 0 || history[0].StartedTime.IsZero() {
		return ""
	}
	return words.Time(history[0].StartedTime.Time)
}

func silent(cause error) *fleet.Update {
	return &fleet.Update{Stage: string(wave.Silent), Message: words.External(cause.Error())}
}
