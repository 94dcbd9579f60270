package hostedruns

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/trigger/flight"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// OnGuests makes the runs with these options by package runner, in the guests, which are reached by
// the kubeconfigs that the HostedClusters name. The report on a guest that cannot be reached is
// Undecided, and has the findings about the management cluster.
func OnGuests(management *cluster.Cluster, options runner.Options) Preflight {
	return func(ctx context.Context, of *hypershift.HostedCluster, target runplan.Target) (report.Report, error) {
		connect := func(config *rest.Config) (*cluster.Cluster, error) {
			return cluster.Connect(config, "preflight-controller/"+options.Hooks.ToolVersion)
		}
		guest, estate, err := hosted.Reach(ctx, management, hosted.Selection{Namespace: of.Namespace, Name: of.Name}, connect)
		if err != nil {
			return report.Report{}, err
		}
		options := flight.Options(ctx, options, target)
		options.Estate = estate
		return runner.Run(ctx, guest, runner.Target{Image: target.Image}, options)
	}
}
