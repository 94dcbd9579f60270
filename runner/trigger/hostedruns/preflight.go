package hostedruns

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
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
		options := options
		options.Estate, options.Hooks.Requester = estate, target.Requester
		options.Hooks.OnInterrupt = func(string) runner.Interruption {
			if errors.Is(context.Cause(ctx), errNotNeeded) {
				return runner.CleanUp
			}
			return runner.Detach // the next leader continues
		}
		if object := target.Object; object.Name != "" {
			options.Selection.Images = object.Images
			options.Judgement.Accept = slices.Concat(options.Judgement.Accept, acceptance.Named("UpdatePreflight "+object.Name, object.Accepted...))
		}
		return runner.Run(ctx, guest, runner.Target{Image: target.Image}, options)
	}
}

// Selection is the selection of the runs with these options, for a mode of the images: empty for that
// of the options.
func Selection(options runner.Options) func(image.Mode) string {
	return func(images image.Mode) string {
		other := options
		other.Selection.Images = images
		if coverage := other.Coverage(); coverage != options.Coverage() {
			return coverage
		}
		return ""
	}
}
