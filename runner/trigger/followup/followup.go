// Package followup answers: was the last update of this cluster good?
//
// A [Follower] judges an update when the cluster-version operator has completed it, until there is a decision, and
// [Follower.Latest] is the judgement. It stores what is final beside the record of the run that took the baseline. It
// judges no update without a baseline, writes nothing else, and holds nothing open.
package followup

import (
	"context"
	"log/slog"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// Pauses are the times between two looks at a cluster.
type Pauses struct {
	// Settling is that while there is no decision. Decided is that after Regressed, which may end, and after Undecided.
	Settling, Decided time.Duration
}

// Standard are the pauses of the controller.
func Standard() Pauses { return Pauses{Settling: time.Minute, Decided: 10 * time.Minute} }

// maxAge is how long after its end an update is judged: later changes are those of others.
const maxAge = 24 * time.Hour

// Options are what a Follower needs. All are required.
type Options struct {
	Inspection inspection.Options
	Pauses     Pauses
	Logger     *slog.Logger
	// Changed is called after each judgement whose decision or regressions differ.
	Changed func(afterupdate.Report)
}

// Needs are the permissions to judge an update and to store the judgement.
func Needs() access.Needs { return inspection.Needs().And(baselinestore.Needs()) }

// Follower judges the last update of a cluster.
type Follower struct {
	cluster *cluster.Cluster
	options Options
	// wake has room for one value: ClusterVersion has changed.
	wake chan struct{}

	mutex  sync.Mutex
	latest afterupdate.Report
}

// New makes the Follower of a cluster.
func New(c *cluster.Cluster, options Options) *Follower {
	return &Follower{cluster: c, options: options, wake: make(chan struct{}, 1)}
}

// Wake has the cluster read now.
func (f *Follower) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Latest is the judgement of the last update, if that is over.
func (f *Follower) Latest() afterupdate.Report {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.latest
}

// Start judges until ctx is done.
func (f *Follower) Start(ctx context.Context) error {
	inspected := inspection.New(f.cluster, f.options.Inspection)
	for {
		pause := f.look(ctx, inspected)
		var timer <-chan time.Time
		if pause > 0 {
			timer = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-timer:
		}
	}
}

// look judges the update once, and returns when to look again; 0 for when ClusterVersion changes.
func (f *Follower) look(ctx context.Context, inspected *inspection.Inspection) time.Duration {
	due, err := f.due(ctx)
	if err != nil {
		f.options.Logger.Warn("it is unknown whether an update is to be judged", "error", err)
		return f.options.Pauses.Settling
	}
	if !due {
		f.set(afterupdate.Report{})
		return 0
	}
	if known := f.Latest(); known.Decision == afterupdate.Good && f.isOf(ctx, known) {
		return 0
	}
	judged, err := inspected.Look(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.options.Logger.Warn("the update could not be judged", "error", err)
		}
		return f.options.Pauses.Settling
	}
	if judged.Update.Run == "" || judged.Baseline == nil {
		f.set(afterupdate.Report{})
		return f.options.Pauses.Decided
	}
	return f.keep(ctx, inspected, judged)
}

// due reports whether an update has ended lately, or is in progress.
func (f *Follower) due(ctx context.Context) (bool, error) {
	version, err := f.version(ctx)
	if err != nil {
		return false, err
	}
	change, found := settling.ChangeOf(version.Status.History)
	return found && (change.Completed.IsZero() || f.cluster.Now().Sub(change.Completed) < maxAge), nil
}

func (f *Follower) version(ctx context.Context) (*configv1.ClusterVersion, error) {
	return f.cluster.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
}

// isOf reports whether a judgement is of the last update.
func (f *Follower) isOf(ctx context.Context, judged afterupdate.Report) bool {
	version, err := f.version(ctx)
	if err != nil || len(version.Status.History) == 0 || version.Status.History[0].CompletionTime == nil {
		return false
	}
	return version.Status.History[0].CompletionTime.UTC().Format(time.RFC3339) == judged.Update.CompletionTime
}

// keep makes a judgement the latest one. A Good one that was stored before stays: what is bad a day later is
// no consequence of the update.
func (f *Follower) keep(ctx context.Context, inspected *inspection.Inspection, judged afterupdate.Report) time.Duration {
	if stored, ok := f.stored(ctx, judged); ok {
		f.set(stored)
		return 0
	}
	if judged.Decision.Final() {
		if err := inspected.Record(ctx, judged); err != nil && ctx.Err() == nil {
			f.options.Logger.Warn("the judgement of the update is not stored", "run", judged.Update.Run, "error", err)
		}
	}
	f.set(judged)
	switch judged.Decision {
	case afterupdate.Good, afterupdate.RolledBack:
		return 0
	case afterupdate.Regressed, afterupdate.Undecided:
		return f.options.Pauses.Decided
	case afterupdate.Settling, afterupdate.Unfinished:
	}
	return f.options.Pauses.Settling
}

// stored is the final judgement that another process stored of the same update, if it is Good.
func (f *Follower) stored(ctx context.Context, judged afterupdate.Report) (afterupdate.Report, bool) {
	found, ok, err := baselinestore.New(f.cluster.Kubernetes).Judgement(ctx, judged.Update.Run)
	if err != nil || !ok || found.Report.Decision != afterupdate.Good || found.Report.Update.CompletionTime != judged.Update.CompletionTime {
		return afterupdate.Report{}, false
	}
	return found.Report, true
}

func (f *Follower) set(next afterupdate.Report) {
	f.mutex.Lock()
	last := f.latest
	f.latest = next
	f.mutex.Unlock()
	if last.Decision == next.Decision && last.Counts.Regressions == next.Counts.Regressions {
		return
	}
	f.options.Changed(next)
}
