package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/hostedruns"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/published"
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

// uninstall removes the signals, the ClusterOperator, what is published for CVO and the objects for the console, and writes
// a line to out for each object that it has deleted, also when others could not be.
func uninstall(ctx context.Context, reached *cluster.Cluster, out io.Writer) error {
	if err := guard.UninstallNeeds().And(hostedguard.UninstallNeeds()).And(published.RemoveNeeds()).And(console.UninstallNeeds()).Check(ctx, reached.Kubernetes.AuthorizationV1()); err != nil {
		return err
	}
	deleted, err := guard.Uninstall(ctx, reached.Dynamic)
	hosted, hostedErr := hostedguard.Uninstall(ctx, reached.Dynamic)
	removed, removeErr := published.Remove(ctx, reached.Kubernetes)
	shown, shownErr := console.Uninstall(ctx, reached.Dynamic)
	deleted, err = slices.Concat(hosted, deleted, removed, shown), errors.Join(hostedErr, err, removeErr, shownErr)
	for _, object := range deleted {
		_, writeErr := fmt.Fprintf(out, "deleted %s %s\n", object.Kind, path.Join(object.Namespace, object.Name))
		err = errors.Join(err, writeErr)
	}
	return err
}
