// Package versions answers: which versions do this program and the cluster have?
package versions

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
)

// Versions are the document of "version". What could not be read is empty.
type Versions struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Client is the version of this program.
	Client string `json:"client"`
	// Cluster is the release that ClusterVersion has as desired.
	Cluster string `json:"cluster,omitempty"`
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Kind is the kind in the JSON and YAML documents of the versions.
const Kind = "PreflightVersions"

// New is the document with the version of this program alone.
func New(client string) Versions {
	return Versions{APIVersion: report.APIVersion, Kind: Kind, Client: client}
}

// Document has one line for each version.
func (v Versions) Document(document.View) document.Document {
	table := document.Table{Title: "Versions"}
	table.Row("Client", v.Client)
	table.Row("Cluster", v.Cluster)
	table.Row("Kubernetes", v.Kubernetes)
	return document.Document{Title: "Versions of oc preflight and the cluster", Blocks: []document.Block{table}}
}

// versionTime bounds the requests for the versions of the cluster.
const versionTime = 5 * time.Second

// Options are the flags of "version".
type Options struct {
	// Alone is true to print only the version of this program.
	Alone bool
	// Output is the format of standard output.
	Output string
}

// NewCommand returns the command "version", which prints the versions of this program and of the cluster.
func NewCommand(client *cli.Client) *cobra.Command {
	flags := Options{Output: "text"}
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the cluster",
		Long: `Print the version of this program, and the versions of the cluster: of the release that ClusterVersion desires, and of Kubernetes. If the cluster cannot be read within five seconds, the cause is printed to standard error.

Exit codes: 0 the version of this program was printed, 1 the tool failed, 2 wrong usage.`,
		Example: `  oc preflight version

  # Without the cluster, for a script
  oc preflight version --client -o json | jq -r .client`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return printVersions(c.Context(), client, flags) })
		},
	}
	c.Flags().BoolVar(&flags.Alone, "client", false, "Print only the version of this program; no cluster is used.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "client")
	flagset.OutputFlag(c, &flags.Output, Versions{})
	return c
}

func printVersions(ctx context.Context, client *cli.Client, flags Options) error {
	if err := expression.Check(flags.Output, Versions{}); err != nil {
		return exitcode.BadUsage(err)
	}
	made := New(program.Version())
	if !flags.Alone {
		ctx, stop := context.WithTimeout(ctx, versionTime)
		defer stop()
		if err := readClusterVersions(ctx, client, &made); err != nil {
			fmt.Fprintf(client.Streams.ErrOut, "the versions of the cluster are unknown: %s\n", words.Line(err.Error(), terminal.MaxLine))
		}
	}
	return expression.Write(client.Streams.Out, flags.Output, made, terminal.Style(client.Streams.Out))
}

func readClusterVersions(ctx context.Context, client *cli.Client, made *Versions) error {
	reached, err := client.Connect()
	if err != nil {
		return err
	}
	found, err := reached.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return err
	}
	made.Cluster = found.Status.Desired.Version
	server, err := discovery.ToServerVersionInterfaceWithContext(reached.Kubernetes.Discovery()).ServerVersionWithContext(ctx)
	if err != nil {
		return err
	}
	made.Kubernetes = server.GitVersion
	return nil
}
