package command

import (
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
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

// options are those of the flags, for a cluster.
func (f judgeFlags) options(client *client, reached *cluster.Cluster) (runner.Options, error) {
	var accepted []acceptance.Acceptance
	for _, path := range f.acceptFiles {
		read, err := readAcceptances(path)
		if err != nil {
			return runner.Options{}, usageError(fmt.Errorf("--accept-file: %w", err))
		}
		accepted = append(accepted, read...)
	}
	located := monitoring.Cluster{Config: reached.Config(), Dynamic: reached.Dynamic}
	find := located.Find
	if f.prometheus != "" {
		at, err := located.At(f.prometheus)
		if err != nil {
			return runner.Options{}, usageError(fmt.Errorf("--prometheus: %w", err))
		}
		find = at
	}
	return runner.Options{
		Monitoring: monitoring.New(find, monitoring.DefaultTimeout),
		Accepted:   accepted, Accept: acceptance.Named("--accept", f.accept...),
		IgnoredAlerts: f.ignoredAlerts, IgnoredNamespaces: f.ignoredNamespaces,
		Logger: client.log,
		Dependencies: health.DependOn(http.DefaultClient, f.dependencies), ToolVersion: toolVersion(),
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
