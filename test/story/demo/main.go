// Demo shows a preflight on a real cluster that is Blocked, the remedies that its
// report names, the preflight that is Ready after them, the plan to a later release, and that the update was good.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift/update-preflight/test/story/script"
	"github.com/openshift/update-preflight/test/story/terminal"
)

func main() {
	keep := flag.String("keep", "", "keep the cluster running in this directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep string) (err error) {
	t, err := terminal.Open(ctx, os.Stdout, keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()
	if err := script.Preflight(ctx, t); err != nil {
		return err
	}
	if keep != "" {
		wait(ctx, t)
	}
	return nil
}

// wait returns at an interrupt. The monitoring ends with this process, but the cluster does not.
func wait(ctx context.Context, t *terminal.Terminal) {
	fmt.Printf(`
The cluster and its monitoring are running. In another terminal:
  export KUBECONFIG=%[1]s
  bin/oc-preflight after --prometheus %[2]s
Ctrl-C stops the monitoring. To stop the cluster then:
  go run ./test/cluster/local-cluster down --dir %[3]s
`, t.Cluster.Kubeconfig, t.Monitoring, t.Cluster.Dir)
	<-ctx.Done()
}
