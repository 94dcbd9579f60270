package command

import (
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/runner"
)

// judgeFlags say how to judge what the built-in checks find.
type judgeFlags struct {
	accept, acceptFiles              []string
	prometheus                       string
	ignoredAlerts, ignoredNamespaces []string
	dependencies                     []string
}

func (f *judgeFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.accept, "accept", nil, "Names of findings to accept. Gates and the signature cannot be accepted.")
	c.Flags().StringArrayVar(&f.acceptFiles, "accept-file", nil, "File with risks that are accepted, each with reason, owner, and where wanted with expiry, versions and clusters: see the help of accept. May be given more than once.")
	c.Flags().StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus or a Thanos querier with the cluster's metrics and alerts. Default: the cluster's own.")
	c.Flags().StringSliceVar(&f.ignoredAlerts, "ignore-alert", nil, "Names of alerts that only warn.")
	c.Flags().StringSliceVar(&f.ignoredNamespaces, "ignore-namespace", nil, "Namespaces whose alerts only warn.")
	c.Flags().StringArrayVar(&f.dependencies, "dependency", nil, "URL outside of the cluster that has to answer, asked from here. May be given more than once.")
}

// config is what the flags say, with clients for the cluster.
func (f judgeFlags) config(client *client) (runner.Config, error) {
	var accepted []acceptance.Acceptance
	for _, path := range f.acceptFiles {
		read, err := readAcceptances(path)
		if err != nil {
			return runner.Config{}, usageError(fmt.Errorf("--accept-file: %w", err))
		}
		accepted = append(accepted, read...)
	}
	reached, err := client.connect()
	if err != nil {
		return runner.Config{}, err
	}
	located := monitoring.Cluster{Config: reached.Config(), Dynamic: reached.Dynamic}
	find := located.Find
	if f.prometheus != "" {
		if find, err = located.At(f.prometheus); err != nil {
			return runner.Config{}, usageError(fmt.Errorf("--prometheus: %w", err))
		}
	}
	return runner.Config{
		Cluster: reached,
		Monitoring: monitoring.New(find, monitoring.DefaultTimeout),
		Accepted:   accepted, Accept: f.accept,
		IgnoredAlerts: f.ignoredAlerts, IgnoredNamespaces: f.ignoredNamespaces,
		Dependencies: health.DependOn(http.DefaultClient, f.dependencies), Now: reached.Now, ToolVersion: toolVersion(),
	}, nil
}

func readAcceptances(path string) ([]acceptance.Acceptance, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return acceptance.Read(path, file)
}
