package runner

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/lease"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/recordstore"
	"github.com/openshift/update-preflight/runner/site"
)

// Attach waits for a recorded run that is in progress, and continues it when the
// process that held it is gone, with its release and its selection. Of options, what
// selects checks is that of the run. A run that has ended is an error, a
// *record.NotRunningError, and so is one whose record is not authentic, a
// *record.UnauthenticError; id may be a prefix of an ID.
//
// The risks of a later update of a path are not recorded: they are read again from the
// graph of source, of which only the fields about graphs count. Where that graph lacks the
// update, its risks are Unknown.
func Attach(ctx context.Context, cluster *cluster.Cluster, id string, source PlanRequest, options Options) (report.Report, error) {
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
	covered, err := selectionOf(run)
	if err != nil {
		return report.Report{}, err
	}
	options.Only, options.Skip, options.NoJobs, options.Images = covered.Only, covered.Skip, covered.NoJobs, image.Mode(covered.Images)
	if options.Site, err = site.Restore(covered.Site, run.Attachment); err != nil {
		return report.Report{}, fmt.Errorf("the record of run %s does not have the checks of the site: %w", run.ID, err)
	}
	options.IgnoredAlerts, options.IgnoredNamespaces = covered.IgnoredAlerts, covered.IgnoredNamespaces
	if options.Fixed, err = gate.ParseFixTime(covered.Fixed); err != nil && covered.Fixed != "" {
		return report.Report{}, fmt.Errorf("the record of run %s has a time of the fix that cannot be parsed: %w", run.ID, err)
	}
	if len(covered.Path) > 0 {
		return attachToHop(ctx, cluster, pathRecord{releases: covered.Path, target: run.Target, source: source}, options)
	}
	return Run(ctx, cluster, Target{Image: run.Target.Image}, options)
}

// selectionOf returns the selection of a recorded run.
func selectionOf(run record.Record) (selection, error) {
	var covered selection
	if err := json.Unmarshal([]byte(run.Selection), &covered); err != nil {
		return selection{}, fmt.Errorf("the record of run %s does not have its selection: %w", run.ID, err)
	}
	return covered, nil
}

// PathOf are the versions that the path of a recorded run of a later update goes through,
// that of the cluster first and the target last. It is nil for any other run, and for a
// record that is not authentic.
func PathOf(run record.Record) []string {
	covered, err := selectionOf(run)
	if err != nil || len(covered.Path) == 0 || len(covered.Path) > maxHops || run.Verified() != nil {
		return nil
	}
	var versions []string
	for _, each := range covered.Path {
		versions = append(versions, each.Version)
	}
	return append(versions, run.Target.Version)
}
