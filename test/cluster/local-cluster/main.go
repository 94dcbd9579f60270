// Local-cluster starts and stops a real Kubernetes on this machine that keeps
// running.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "local-cluster",
		Short:         "Keep a real Kubernetes with a node, a registry and the OpenShift resources on this machine",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	dir := root.PersistentFlags().String("dir", ".cluster", "directory of everything the cluster keeps on disk")
	root.AddCommand(
		&cobra.Command{
			Use: "up", Short: "Start the cluster, if it is not running", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), *dir, cmd.OutOrStdout()) },
		},
		&cobra.Command{
			Use: "down", Short: "End the cluster and remove all of it, also after a crash", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), *dir, cmd.OutOrStdout()) },
		},
	)
	return root
}

func up(ctx context.Context, dir string, out io.Writer) error {
	start := time.Now()
	running, err := cluster.Open(dir)
	if err != nil {
		fmt.Fprintln(out, "starting a cluster in", dir)
		running, err = cluster.Start(ctx, dir, cluster.Standing(), cluster.Progress(func(step string, took time.Duration) {
			fmt.Fprintf(out, "  %5.1fs  %s (took %.1fs)\n", time.Since(start).Seconds(), step, took.Seconds())
		}))
		if err == nil {
			err = openshift.Apply(ctx, running.Config, initial())
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, purpose, running.Kubeconfig, running.Registry)
	return nil
}

// purpose is what a user of the cluster has to know.
const purpose = `the cluster is running: a Kubernetes with one node, on which oc-preflight and checks can be tried. It has the
ClusterVersion of an OpenShift with one update, but no operator: nothing updates it.

  export KUBECONFIG=%s
  bin/oc-preflight targets
  registry: %s (no TLS)

Stop it with: make cluster-down
`

// initial is the ClusterVersion of the cluster, with an update whose release does not exist.
func initial() openshift.State {
	const repository = "quay.io/openshift-release-dev/ocp-release@sha256:"
	return openshift.State{
		Version: "4.18.12", Image: repository + strings.Repeat("18", 32), Channel: "stable-4.19", Topology: configv1.SingleReplicaTopologyMode,
		Available: map[string]string{"4.19.1": repository + strings.Repeat("19", 32)},
	}
}

func down(ctx context.Context, dir string, out io.Writer) error {
	err := cluster.Remove(ctx, dir)
	switch {
	case err == nil:
		fmt.Fprintln(out, "the cluster in", dir, "was removed")
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(out, "no cluster in", dir)
	default:
		return err
	}
	return cluster.RemoveDead(ctx)
}
