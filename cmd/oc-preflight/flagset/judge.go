// Package flagset answers: what may be chosen on the command line?
//
// Each type has the flags of one subject: Add defines them, and other methods read what they
// select. The options of a command have the types that it uses as fields.
package flagset

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/signature/localfile"
	"github.com/openshift/update-preflight/signature/outbound"
)

// Accepted accept risks.
type Accepted struct {
	Accept, acceptFiles []string
	// Member is the cluster of a fleet that is judged; nil for a single cluster.
	Member *Member
}

// Member names a cluster of a fleet, for acceptances that are limited to some clusters.
type Member struct {
	Name   string
	Labels map[string]string
}

// Add adds --accept and --accept-file to the command.
func (f *Accepted) Add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.Accept, "accept", nil, "Names of findings to accept. Gates and the signature cannot be accepted.")
	c.Flags().StringArrayVar(&f.acceptFiles, "accept-file", nil, "File with accepted risks: each with a reason, an owner and optionally expiry, versions and clusters; \"accept --help\" shows the format. May be repeated.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Values: option.Findings}, "accept")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswerByContent}, "accept-file")
}

// Read returns the acceptances of the files; for a member of a fleet, only the ones that include it.
func (f *Accepted) Read(ctx context.Context) ([]acceptance.Acceptance, error) {
	accepted, err := f.ReadAll(ctx)
	if err != nil {
		return nil, err
	}
	if f.Member != nil {
		return acceptance.For(accepted, f.Member.Name, f.Member.Labels), nil
	}
	if err := acceptance.CheckSingle(accepted); err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--accept-file: %w", err))
	}
	return accepted, nil
}

// ReadAll returns all acceptances of the files.
func (f *Accepted) ReadAll(ctx context.Context) ([]acceptance.Acceptance, error) {
	var accepted []acceptance.Acceptance
	for _, path := range f.acceptFiles {
		read, err := readAcceptances(ctx, path)
		if err != nil {
			return nil, exitcode.BadUsage(fmt.Errorf("--accept-file: %w", err))
		}
		accepted = append(accepted, read...)
	}
	return accepted, nil
}

// Judge are the flags that change how findings are judged.
type Judge struct {
	Accepted

	Prometheus                       string
	ignoredAlerts, ignoredNamespaces []string
	dependencies                     []string
	since                            string
}

// Add adds the flags of a judgement to the command, --accept and --accept-file included.
func (f *Judge) Add(c *cobra.Command) {
	f.AddForFleet(c)
	c.Flags().StringVar(&f.Prometheus, "prometheus", "", "URL of a Prometheus or Thanos querier: it has the metrics and alerts of the cluster. Default: the monitoring of the cluster.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Again: option.Reaching}, "prometheus")
}

// AddForFleet adds the flags that may be the same for many clusters.
func (f *Judge) AddForFleet(c *cobra.Command) {
	f.Accepted.Add(c)
	c.Flags().StringSliceVar(&f.ignoredAlerts, "ignore-alert", nil, "Names of alerts to report as warnings.")
	c.Flags().StringSliceVar(&f.ignoredNamespaces, "ignore-namespace", nil, "Namespaces whose alerts to report as warnings.")
	c.Flags().StringVar(&f.since, "since", "", "When the clients of removed APIs were fixed: time, like 2026-11-22T14:20:00Z, or duration before now, like 3h. Request counts are hourly. Hours that ended before this time only cause warnings.")
	c.Flags().StringArrayVar(&f.dependencies, "dependency", nil, "URL that must respond to this machine: it is outside of the cluster. May be repeated.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer}, "ignore-alert", "since")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "ignore-namespace", "dependency")
}

// Options reads the files and values of the flags, and returns the options of a judgement of the cluster.
func (f Judge) Options(ctx context.Context, client *cli.Client, reached *cluster.Cluster) (runner.Options, error) {
	accepted, err := f.Read(ctx)
	if err != nil {
		return runner.Options{}, err
	}
	find, err := monitoring.Querier{Config: reached.Config(), Dynamic: reached.Dynamic}.Locate(f.Prometheus)
	if err != nil {
		return runner.Options{}, exitcode.BadUsage(fmt.Errorf("--prometheus: %w", err))
	}
	fixed, err := f.fixed()
	if err != nil {
		return runner.Options{}, exitcode.BadUsage(fmt.Errorf("--since: %w", err))
	}
	return runner.Options{
		Judgement: scene.Judgement{Fixed: fixed, Monitoring: monitoring.New(find, monitoring.DefaultTimeout), Accepted: accepted, Accept: acceptance.Named("--accept", f.Accept...), IgnoredAlerts: f.ignoredAlerts, IgnoredNamespaces: f.ignoredNamespaces, Dependencies: dependency.New(outbound.Client(), f.dependencies)},
		Hooks:     runner.Hooks{Logger: client.Log, ToolVersion: program.Version()},
		Origin:    f.origin(),
	}, nil
}

// Check rejects a value of --prometheus that is no URL: it needs no cluster.
func (f Judge) Check() error {
	if _, err := (monitoring.Querier{}).Locate(f.Prometheus); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	return nil
}

// origin identifies the monitoring and the dependencies.
func (f Judge) origin() runner.Origin {
	made := MonitoringOrigin(f.Prometheus)
	made.Dependencies = runner.Identity(f.dependencies...)
	return made
}

// MonitoringOrigin identifies a monitoring by the value of --prometheus; empty for the monitoring of the cluster.
func MonitoringOrigin(prometheus string) runner.Origin {
	if prometheus == "" {
		return runner.Origin{}
	}
	return runner.Origin{Monitoring: runner.Identity(prometheus)}
}

// fixed is the time of --since; without the flag nothing is stated.
func (f Judge) fixed() (removedapi.FixTime, error) {
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
