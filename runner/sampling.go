package runner

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

// Sampler reads the present state of a cluster like sample.Take; now is by the clock of the cluster.
type Sampler func(ctx context.Context, from *snapshot.Cluster, of *hypershift.State, monitored *monitoring.Client,
	now time.Time) (baseline.State, error)

// sampling reads the state of the cluster for the comparison after the update when the checks have finished, and keeps it
// beside the record before the record has its end: no verdict permits the update without a baseline, unless none is
// wanted, or the report has a notice.
type sampling struct {
	scene    scene.Scene
	progress *progress.Serial
	sampler  Sampler
	names    baselinestore.Names
}

// sampled is the state of the cluster that a run has read; the zero value is none.
type sampled struct {
	wanted bool
	state  baseline.State
	err    error
}

// read reads the state of the cluster when the checks have finished: everything in the same snapshot that they have not
// read. Its time is the end of reading, so that an update which began meanwhile does not start from it. While an update
// is in progress, there is no baseline.
func (s sampling) read(ctx context.Context) sampled {
	if s.names == baselinestore.None {
		return sampled{}
	}
	if history := s.scene.Version.Status.History; len(history) > 0 && history[0].State != configv1.CompletedUpdate {
		s.progress.Step("no baseline is stored, because an update is in progress")
		return sampled{}
	}
	s.progress.Step("reading the state of the cluster before the update")
	ctx, cancel := context.WithTimeoutCause(ctx, hold.Timeout,
		fmt.Errorf("the state of the cluster could not be read within %s", hold.Timeout))
	defer cancel()
	controlPlane, _ := s.scene.Settings.Estate.ControlPlane()
	state, err := s.sampler(ctx, s.scene.Snapshot, controlPlane.State(), s.scene.Settings.Judgement.Monitoring, s.scene.Cluster.Now())
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	state.Taken = s.scene.Cluster.Now()
	return sampled{wanted: true, state: state, err: err}
}

// maxNotice bounds why no baseline is stored, in bytes.
const maxNotice = 512

// keep stores a sample beside the record of the run, and returns the report with a notice where that is not possible.
func (s sampling) keep(ctx context.Context, taken sampled, decided report.Report) report.Report {
	if !taken.wanted {
		return decided
	}
	err := taken.err
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Timeout)
		defer cancel()
		err = baselinestore.New(s.scene.Cluster.Kubernetes).Put(ctx, decided.Run.ID, taken.state, s.names)
	}
	if err == nil {
		decided.Run.Baseline = words.Time(taken.state.Taken)
		return decided
	}
	notice := "no baseline is stored, so the state after the update cannot be compared with the state before it: " + words.Line(err.Error(),
		maxNotice)
	s.progress.Step(notice)
	decided.Notices = append(slices.Clip(decided.Notices), notice)
	return decided
}
