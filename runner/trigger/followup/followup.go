// Package followup answers: was the last update of this cluster good?
//
// A [Follower] evaluates an update from its end until there is a decision, at most for [judgement.Window], and stores a
// final judgement beside the record of the run that took the baseline. [Follower.Latest] returns the stored judgement
// about the last update, even after a restart, until another update begins. It does not evaluate updates without a
// baseline, writes nothing else, and blocks nothing.
package followup

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/judgement"
)

// Pauses are the times between two looks at a cluster.
type Pauses struct {
	// Settling is that while there is no decision. Decided is that after any other look.
	Settling, Decided time.Duration
}

// Standard are the pauses of the controller.
func Standard() Pauses { return Pauses{Settling: time.Minute, Decided: 10 * time.Minute} }

// Options configure a Follower. All are required.
type Options struct {
	Inspection inspection.Options
	Pauses     Pauses
	Logger     *slog.Logger
	// Changed is called after each judgement of another update, or whose decision or number of regressions differs.
	Changed func(afterupdate.Report)
}

// Needs are the permissions to evaluate an update and to store the judgement.
func Needs() access.Needs { return inspection.Needs().And(baselinestore.Needs()) }

// Follower evaluates the last update of a cluster.
type Follower struct {
	cluster *cluster.Cluster
	options Options
	// wake has room for one value: ClusterVersion has changed.
	wake chan struct{}

	mutex  sync.Mutex
	latest afterupdate.Report
	// of identifies the update of latest; empty before the first look.
	of string
}

// New returns the Follower of a cluster.
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

// Latest returns the judgement of the last update in the history of this ClusterVersion; the zero value if none is
// stored. A judgement that has not been read yet is Settling.
func (f *Follower) Latest(version *configv1.ClusterVersion) afterupdate.Report {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change, found := settling.ChangeOf(version.Status.History)
	if !found || f.of == identity(change) {
		return f.latest
	}
	return afterupdate.Report{
		Update:   afterupdate.Update{From: change.From.Version, To: change.To.Version, Image: change.To.Image},
		Decision: afterupdate.Settling, Message: "the stored judgement of the update has not been read yet",
	}
}

// identity identifies an update.
func identity(of settling.Change) string {
	return fmt.Sprint(of.To.Version, of.To.Image, words.Time(of.Started), words.Time(of.Completed), of.RolledBack)
}

// Start evaluates until ctx is done.
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

// look reads and evaluates the update once, and returns when to look again; 0 to wait until ClusterVersion changes.
func (f *Follower) look(ctx context.Context, inspected *inspection.Inspection) time.Duration {
	version, err := f.version(ctx)
	if err != nil {
		f.options.Logger.Warn("it is unknown whether an update must be evaluated", "error", err)
		return f.options.Pauses.Settling
	}
	change, found := settling.ChangeOf(version.Status.History)
	if !found {
		f.set("", afterupdate.Report{})
		return 0
	}
	of := identity(change)
	stored, exists := judgement.Last(ctx, f.cluster, version)
	if ctx.Err() != nil {
		return f.options.Pauses.Settling
	}
	due := change.Completed.IsZero() || f.cluster.Now().Sub(change.Completed) < judgement.Window
	if !due || stored.Decision == afterupdate.Good || stored.Decision == afterupdate.RolledBack {
		f.set(of, stored)
		return f.options.Pauses.Decided
	}
	judged, err := inspected.Look(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.options.Logger.Warn("the update could not be evaluated", "error", err)
			f.set(of, stored)
		}
		return f.options.Pauses.Settling
	}
	switch {
	case judged.Update.Run == "" || judged.Baseline == nil:
		f.set(of, stored)
		return f.options.Pauses.Decided
	case judged.Decision.Final():
		return f.keep(ctx, inspected, of, judged)
	case !exists || !stored.Decision.Final():
		f.set(of, judged)
	default:
		f.set(of, stored) // a new process has seen too little yet
	}
	if judged.Decision == afterupdate.Undecided {
		return f.options.Pauses.Decided
	}
	return f.options.Pauses.Settling
}

func (f *Follower) version(ctx context.Context) (*configv1.ClusterVersion, error) {
	return f.cluster.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
}

// keep stores a judgement that is final, and shows what is stored then.
func (f *Follower) keep(ctx context.Context, inspected *inspection.Inspection, of string, judged afterupdate.Report) time.Duration {
	if err := inspected.Record(ctx, judged); err != nil {
		if ctx.Err() == nil {
			f.options.Logger.Warn("the judgement of the update is not stored", "run", judged.Update.Run, "error", err)
		}
		if judged.Decision != afterupdate.Good { // what is not stored is not in favor of the update
			f.set(of, judged)
		}
		return f.options.Pauses.Settling
	}
	version, err := f.version(ctx)
	if err != nil {
		return f.options.Pauses.Settling
	}
	stored, _ := judgement.Last(ctx, f.cluster, version)
	if change, found := settling.ChangeOf(version.Status.History); !found || identity(change) != of {
		return f.options.Pauses.Settling // another update has begun
	}
	f.set(of, stored)
	return f.options.Pauses.Decided
}

func (f *Follower) set(of string, next afterupdate.Report) {
	f.mutex.Lock()
	last, same := f.latest, f.of == of
	f.latest, f.of = next, of
	f.mutex.Unlock()
	if same && last.Decision == next.Decision && last.Counts.Regressions == next.Counts.Regressions || last.Decision == "" &&
		next.Decision == "" {
		return
	}
	f.options.Changed(next)
}
