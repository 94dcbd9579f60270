// Package hostedruns answers: which preflights of hosted clusters run by themselves in their management cluster, and when?
//
// [Add] adds them to a manager. Each hosted cluster (HyperShift) has its own plan by package
// runplan, as if its HostedCluster were a ClusterVersion: the release that is requested, the
// requests of administrators, and the updates that are offered. Of the hosted clusters with a run
// that is due, the one whose last run is the oldest comes first; a hosted cluster has one run at
// a time. Verdicts are shown by UpdatePreflights with spec.hostedCluster, and are honored by package
// hostedguard.
//
// The verdicts are those of the runs that this process has made, or joined: the records are in the
// guests, whose administrators could write others, and are not read otherwise. Another leader makes them again, and leaves the policies
// as they are until it has tried each hosted cluster once, at most half an hour. A verdict counts for at most [MaxAge],
// since the guest is not observed after the run, and not after the release that runs, the condition
// ClusterVersionUpgradeable or the annotation that forces an update has changed.
package hostedruns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
)

const (
	// MaxClusters bounds Options.Clusters.
	MaxClusters = hostedguard.MaxClusters
	// MaxRuns bounds Options.Runs.
	MaxRuns = 10
	// MaxAge bounds the validity of a verdict after its run.
	MaxAge = 4 * time.Hour
	// Interval is the time between two lists of the hosted clusters.
	Interval = time.Minute
	// listTimeout bounds each list.
	listTimeout = 30 * time.Second
)

// Preflight makes the preflight of an update of a hosted cluster. Without a report it has an error. When
// ctx ends, so does the run.
type Preflight func(ctx context.Context, of *hypershift.HostedCluster, target runplan.Target) (report.Report, error)

// Options are what may be chosen. All fields are required.
type Options struct {
	// Clusters is how many hosted clusters have runs, the oldest first, 1 to MaxClusters. Others
	// are logged.
	Clusters int
	// Runs is how many runs are made side by side, 1 to MaxRuns.
	Runs int
	// Ahead is how many offered targets of each hosted cluster to run ahead, at most runplan.MaxAhead.
	Ahead     int
	Preflight Preflight
	// Selection is what the runs with a mode of the images cover, as in a runplan.Target.
	Selection func(image.Mode) string
	Guard     *hostedguard.Switch
	// Interval is the longest time between two lists of the hosted clusters.
	Interval time.Duration
	Logger   *slog.Logger
}

func (o Options) validate() error {
	switch {
	case o.Clusters < 1 || o.Clusters > MaxClusters:
		return fmt.Errorf("the number of hosted clusters is %d; it must be 1 to %d", o.Clusters, MaxClusters)
	case o.Runs < 1 || o.Runs > MaxRuns:
		return fmt.Errorf("the number of runs side by side is %d; it must be 1 to %d", o.Runs, MaxRuns)
	case o.Ahead < 0 || o.Ahead > runplan.MaxAhead:
		return fmt.Errorf("the number of targets ahead is %d; it must be 0 to %d", o.Ahead, runplan.MaxAhead)
	case o.Preflight == nil || o.Selection == nil || o.Guard == nil || o.Interval <= 0 || o.Logger == nil:
		return errors.New("a required option is missing")
	}
	return nil
}

// Add adds the runs to a manager of the management cluster. They are made while it leads.
func Add(m manager.Manager, management *cluster.Cluster, options Options) error {
	if err := options.validate(); err != nil {
		return err
	}
	return m.Add(&fleet{
		management: management, options: options, reader: m.GetAPIReader(), writer: updatepreflight.Writer{Client: m.GetClient()},
		members: map[v1alpha1.HostedCluster]*member{}, ended: make(chan struct{}, 1),
	})
}

// Needs are the permissions in the management cluster besides those of the controller, for hosted
// clusters in any namespace. The Secrets are those with the kubeconfigs of the guests, whose names the
// HostedClusters have.
func Needs() access.Needs {
	const namespace, name = "namespace", "name"
	anywhere := func(requests []access.Request) []access.Request {
		for i, request := range requests {
			if request.Namespace == namespace || request.Namespace == hypershift.ControlPlaneNamespace(namespace, name) {
				requests[i].Namespace = ""
			}
			if request.Name == name {
				requests[i].Name = ""
			}
		}
		return requests
	}
	reads := hosted.Reads(namespace, name)
	needs := access.Needs{Required: anywhere(reads.Required), Optional: anywhere(reads.Optional)}
	needs.Required = append(needs.Required,
		access.Request{Verb: "list", Group: hypershift.Group, Resource: "hostedclusters"}, access.Request{Verb: "get", Resource: "secrets"})
	return needs
}

// fleet are the hosted clusters of a management cluster.
type fleet struct {
	management *cluster.Cluster
	options    Options
	// reader and writer are for the UpdatePreflights.
	reader client.Reader
	writer updatepreflight.Writer
	// members are the hosted clusters that have runs. Only Start uses them.
	members map[v1alpha1.HostedCluster]*member
	// ended has room for one value: a run has ended.
	ended chan struct{}
	// guarded is true when the policies were applied once since started.
	guarded bool
	started time.Time
	// left is how many hosted clusters were left out at the last list.
	left int
}

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
		options := plannedrun.Options(ctx, options, target)
		options.Estate = estate
		return runner.Run(ctx, guest, runner.Target{Image: target.Image}, options)
	}
}

// Off removes the policies of a switch that is off, while the manager leads, where there are no runs.
// What cannot be removed is tried again once a minute.
func Off(off *hostedguard.Switch, logger *slog.Logger) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		for {
			_, err := off.Apply(ctx, nil)
			if err == nil || ctx.Err() != nil {
				return nil //nolint:nilerr // it was tried until the end
			}
			logger.Warn("the admission policies of hosted clusters could not be removed", "error", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(Interval):
			}
		}
	})
}
