package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/lease"
	"github.com/openshift/update-preflight/runner/progress"
)

// onCluster runs preflights on a cluster.
type onCluster struct {
	cluster    *cluster.Cluster
	options    runner.Options
	monitoring monitoring.Finder
}

// run implements preflights.
func (p onCluster) run(ctx context.Context, target Target) (report.Report, error) {
	options := p.options
	options.Hooks.Requester = target.Requester
	options.Judgement.Monitoring = monitoring.New(p.monitoring, monitoring.DefaultTimeout) // it reads everything once
	if object := target.Object; object.Name != "" {
		options.Selection.Images = cmp.Or(object.Images, options.Selection.Images)
		options.Judgement.Accept = slices.Concat(options.Judgement.Accept, acceptance.Named("UpdatePreflight "+object.Name, object.Accepted...))
	}
	options.Hooks.OnInterrupt = func(string) runner.Interruption {
		if errors.Is(context.Cause(ctx), errNotNeeded) {
			return runner.CleanUp
		}
		return runner.Detach // the next leader continues
	}
	return runner.Run(ctx, p.cluster, runner.Target{Image: target.Image}, options)
}

// cancel implements preflights.
func (p onCluster) cancel(ctx context.Context, id string) error {
	_, err := hold.Cancel(ctx, p.cluster, id, progress.New(p.options.Hooks.Observer, p.options.Hooks.Logger))
	if _, ended := errors.AsType[*lease.NotRunningError](err); ended {
		return nil
	}
	return err
}
