package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/hostedruns"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
)

// hostedFlags are about the hosted clusters (HyperShift) of a management cluster.
type hostedFlags struct {
	clusters, runs int
	admission      string
}

func (h *hostedFlags) add(set *pflag.FlagSet) {
	set.IntVar(&h.clusters, "hosted-clusters", 0, fmt.Sprintf("How many hosted clusters (HyperShift) of this management cluster to check as well, at most %d. Default: none.", hostedruns.MaxClusters))
	set.IntVar(&h.runs, "hosted-runs", 2, fmt.Sprintf("How many of the hosted clusters to check side by side, at most %d.", hostedruns.MaxRuns))
	set.StringVar(&h.admission, "hosted-admission", "", fmt.Sprintf("What the API server does with the change of the release of a hosted cluster or NodePool whose verdict is not Ready: %s or %s. Default: nothing.", guard.Warn, guard.Deny))
}

func (h hostedFlags) validate() error {
	mode := guard.Mode(h.admission)
	switch {
	case h.clusters < 0 || h.clusters > hostedruns.MaxClusters:
		return fmt.Errorf("--hosted-clusters is %d; it must be 0 to %d", h.clusters, hostedruns.MaxClusters)
	case h.runs < 1 || h.runs > hostedruns.MaxRuns:
		return fmt.Errorf("--hosted-runs is %d; it must be 1 to %d", h.runs, hostedruns.MaxRuns)
	case mode != "" && mode != guard.Warn && mode != guard.Deny:
		return fmt.Errorf("--hosted-admission is %q; it must be %s or %s", h.admission, guard.Warn, guard.Deny)
	case mode != "" && h.clusters == 0:
		return fmt.Errorf("--hosted-admission needs --hosted-clusters: without verdicts, each update would be refused")
	}
	return nil
}

// needs are the permissions for the hosted clusters, or to remove the policies where there are none.
func (h hostedFlags) needs() access.Needs {
	needs := hostedguard.Needs(guard.Mode(h.admission))
	if h.clusters > 0 {
		needs = needs.And(hostedruns.Needs())
	}
	return needs
}

// addTo adds the runs to the manager, or the removal of the policies where there are none.
func (h hostedFlags) addTo(m manager.Manager, management *cluster.Cluster, options controller.Options, logger *slog.Logger) error {
	switched, err := hostedguard.New(management.Dynamic, guard.Mode(h.admission), management.Now)
	if err != nil {
		return err
	}
	if h.clusters == 0 {
		return m.Add(hostedruns.Off(switched, logger))
	}
	return hostedruns.Add(m, management, hostedruns.Options{
		Clusters: h.clusters, Runs: h.runs, Ahead: options.Ahead, Guard: switched, Interval: hostedruns.Interval, Logger: logger,
		Preflight: hostedruns.OnGuests(management, options.Run), Selection: plannedrun.Selection(options.Run),
	})
}
