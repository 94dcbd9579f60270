package command

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/signature/localfile"
)

// acceptedFlags accept risks.
type acceptedFlags struct {
	accept, acceptFiles []string
}

func (f *acceptedFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.accept, "accept", nil, "Names of findings to accept. Gates and the signature cannot be accepted.")
	c.Flags().StringArrayVar(&f.acceptFiles, "accept-file", nil, "File with accepted risks, each with a reason, an owner and optionally expiry, versions and clusters; \"accept --help\" shows the format. May be repeated.")
}

// read are the acceptances of the files.
func (f *acceptedFlags) read(ctx context.Context) ([]acceptance.Acceptance, error) {
	var accepted []acceptance.Acceptance
	for _, path := range f.acceptFiles {
		read, err := readAcceptances(ctx, path)
		if err != nil {
			return nil, usageError(fmt.Errorf("--accept-file: %w", err))
		}
		accepted = append(accepted, read...)
	}
	return accepted, nil
}

// judgeFlags are the flags that change how findings are judged.
type judgeFlags struct {
	acceptedFlags

	prometheus                       string
	ignoredAlerts, ignoredNamespaces []string
	dependencies                     []string
	since                            string
}

func (f *judgeFlags) add(c *cobra.Command) {
	f.acceptedFlags.add(c)
	c.Flags().StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus or Thanos querier with the metrics and alerts of the cluster. Default: the monitoring of the cluster.")
	c.Flags().StringSliceVar(&f.ignoredAlerts, "ignore-alert", nil, "Names of alerts to report as warnings.")
	c.Flags().StringSliceVar(&f.ignoredNamespaces, "ignore-namespace", nil, "Namespaces whose alerts to report as warnings.")
	c.Flags().StringVar(&f.since, "since", "", "Time, like 2026-11-22T14:20:00Z, or duration before now, like 3h, at which the clients of removed APIs were fixed. Requests are counted by the hour: those of hours that ended by then are warnings.")
	c.Flags().StringArrayVar(&f.dependencies, "dependency", nil, "URL outside of the cluster that must respond to this machine. May be repeated.")
}

// options are those of the flags, for a cluster.
func (f judgeFlags) options(ctx context.Context, client *client, reached *cluster.Cluster) (runner.Options, error) {
	accepted, err := f.read(ctx)
	if err != nil {
		return runner.Options{}, err
	}
	find, err := monitoring.Cluster{Config: reached.Config(), Dynamic: reached.Dynamic}.Locate(f.prometheus)
	if err != nil {
		return runner.Options{}, usageError(fmt.Errorf("--prometheus: %w", err))
	}
	fixed, err := f.fixed()
	if err != nil {
		return runner.Options{}, usageError(fmt.Errorf("--since: %w", err))
	}
	return runner.Options{
		Fixed:      fixed,
		Monitoring: monitoring.New(find, monitoring.DefaultTimeout),
		Accepted:   accepted, Accept: acceptance.Named("--accept", f.accept...),
		IgnoredAlerts: f.ignoredAlerts, IgnoredNamespaces: f.ignoredNamespaces,
		Logger:       client.log,
		Dependencies: dependency.New(http.DefaultClient, f.dependencies), ToolVersion: program.Version(),
	}, nil
}

// fixed is the time of --since; without the flag nothing is stated.
func (f judgeFlags) fixed() (removedapi.FixTime, error) {
	if f.since == "" {
		return removedapi.FixTime{}, nil
	}
	return removedapi.ParseFixTime(f.since)
}

func readAcceptances(ctx context.Context, path string) ([]acceptance.Acceptance, error) {
	file, err := localfile.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return acceptance.Read(path, file)
}
