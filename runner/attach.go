package runner

import (
	"context"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/selection"
)

// Attach waits for a recorded run that is in progress, and continues it when the
// process that held it is gone, with its release and its selection. Of options, what
// selects checks is taken from the run. What the record only identifies, such as keyrings, must be
// that of the run; anything else is an *input.Error. A run that has ended is an error, a
// *lease.NotRunningError, and so is one whose record is not authentic, a
// *record.UnauthenticError; id may be a prefix of an ID.
//
// The risks of a later update of a path are not recorded: they are read again from the
// graph of source. Where that graph lacks the update, its risks are Unknown.
func Attach(ctx context.Context, cluster *cluster.Cluster, id string, source graphsource.Request, options Options) (report.Report, error) {
	run, err := recordstore.New(cluster.Kubernetes).Get(ctx, id)
	if err != nil {
		return report.Report{}, err
	}
	if run.Phase != record.Running {
		return report.Report{}, &lease.NotRunningError{ID: run.ID, Phase: run.Phase}
	}
	if err := run.Verified(); err != nil {
		return report.Report{}, err // what it covers may have been edited
	}
	covered, err := selection.Recorded(run)
	if err != nil {
		return report.Report{}, err
	}
	if options.Selection, err = covered.Selection(run); err != nil {
		return report.Report{}, err
	}
	if options.Judgement, err = covered.Judging(options.Settings(), run); err != nil {
		return report.Report{}, err
	}
	if err := covered.ConfirmOrigin(options.covers(departure.Present(), ""), run); err != nil {
		return report.Report{}, err
	}
	if len(covered.Path) > 0 {
		return attachToLater(ctx, cluster, laterRun{releases: covered.Path, target: run.Target, source: source, graph: covered.Graph}, options)
	}
	return Run(ctx, cluster, Target{Image: run.Target.Image}, options)
}

// PathOf are the versions that the path of a recorded run of a later update goes through,
// that of the cluster first and the target last. It is nil for any other run, and for a
// record that is not authentic.
func PathOf(run record.Record) []string {
	covered, err := selection.Recorded(run)
	if err != nil || len(covered.Path) == 0 || len(covered.Path) > maxHops || run.Verified() != nil {
		return nil
	}
	var versions []string
	for _, each := range covered.Path {
		versions = append(versions, each.Version)
	}
	return append(versions, run.Target.Version)
}
