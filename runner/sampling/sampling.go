// Package sampling answers: which state of the cluster does a run leave for the comparison after the update?
//
// [Run.Read] reads it when the checks have ended, and [Run.Keep] stores it beside the record, before the record has its
// end: no verdict permits the update without a baseline, unless none is wanted, or the report has a notice.
package sampling

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// Sampler reads the state of a cluster as sample.Take does, as of now by the clock of the cluster.
type Sampler func(ctx context.Context, from *snapshot.Cluster, of *hypershift.State, monitored *monitoring.Client,
	now time.Time) (baseline.State, error)

// Run is a run that may leave a baseline.
type Run struct {
	Scene    scene.Scene
	Progress *progress.Serial
	Sampler  Sampler
	Names    baselinestore.Names
}

// Sample is the state of the cluster that a run has read; the zero value is none.
type Sample struct {
	wanted bool
	state  baseline.State
	err    error
}

// Read reads the state of the cluster when the checks have finished: everything in the same snapshot that they have not
// read. Its time is the end of reading, so that an update which began meanwhile does not start from it. While an update
// is in progress, there is no baseline.
func (r Run) Read(ctx context.Context) Sample {
	if r.Names == baselinestore.None {
		return Sample{}
	}
	if history := r.Scene.Version.Status.History; len(history) > 0 && history[0].State != configv1.CompletedUpdate {
		r.Progress.Step("no baseline is stored, because an update is in progress")
		return Sample{}
	}
	r.Progress.Step("reading the state of the cluster before the update")
	ctx, cancel := context.WithTimeoutCause(ctx, hold.Timeout,
		fmt.Errorf("the state of the cluster could not be read within %s", hold.Timeout))
	defer cancel()
	controlPlane, _ := r.Scene.Settings.Estate.ControlPlane()
	state, err := r.Sampler(ctx, r.Scene.Snapshot, controlPlane.State(), r.Scene.Settings.Judgement.Monitoring, r.Scene.Cluster.Now())
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	state.Taken = r.Scene.Cluster.Now()
	return Sample{wanted: true, state: state, err: err}
}

// maxNotice bounds why no baseline is stored, in bytes.
const maxNotice = 512

// Keep stores a sample beside the record of the run, and returns the report with a notice where that is not possible.
func (r Run) Keep(ctx context.Context, taken Sample, decided report.Report) report.Report {
	if !taken.wanted {
		return decided
	}
	err := taken.err
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
		defer cancel()
		err = baselinestore.New(r.Scene.Cluster.Kubernetes).Put(ctx, decided.Run.ID, taken.state, r.Names)
	}
	if err == nil {
		decided.Run.Baseline = words.Time(taken.state.Taken)
		return decided
	}
	notice := "no baseline is stored, so the state after the update cannot be compared with the state before it: " + words.Line(err.Error(),
		maxNotice)
	r.Progress.Step(notice)
	decided.Notices = append(slices.Clip(decided.Notices), notice)
	return decided
}
