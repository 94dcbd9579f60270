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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/test/cluster"
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
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the cluster is running\n\n  export KUBECONFIG=%s\n  registry: %s (no TLS)\n\nStop it with: make cluster-down\n", running.Kubeconfig, running.Registry)
	return nil
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
