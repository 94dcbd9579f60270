// Demo shows a preflight on a real cluster that is Blocked, the remedies that its
// report names, the preflight that is Ready after them, and the plan to a later release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/openshift/update-preflight/test/story"
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
	if err := show(ctx, t); err != nil {
		return err
	}
	if keep != "" {
		wait(ctx, t)
	}
	return nil
}

// wait returns at an interrupt. Prometheus ends with this process, but the cluster does not.
func wait(ctx context.Context, t *terminal.Terminal) {
	fmt.Printf(`
The cluster and its Prometheus are running. In another terminal:
  export KUBECONFIG=%[1]s
  bin/oc-preflight run --to-latest --prometheus %[2]s
Ctrl-C stops Prometheus. To stop the cluster then:
  go run ./test/cluster/local-cluster down --dir %[3]s
`, t.Cluster.Kubeconfig, t.Monitoring.URL, t.Cluster.Dir)
	<-ctx.Done()
}

// show runs the commands of the story.
func show(ctx context.Context, t *terminal.Terminal) error {
	preflight := []string{"oc-preflight", "run", "--to-latest", "--prometheus", t.Monitoring.URL}
	t.Title("Is it safe to update to the newest available release?")
	page := filepath.Join(t.Root, "bin", "report.html")
	if err := t.Run(ctx, terminal.Blocked, append(preflight, "--report", "html="+page)...); err != nil {
		return err
	}
	t.Step("the same report as a page: " + page)
	if err := t.Follow(ctx); err != nil {
		return err
	}
	t.Title("Is it safe after the remedies?")
	if err := t.Run(ctx, terminal.Ready, preflight...); err != nil {
		return err
	}
	t.Title("Which updates lead to " + story.Later + ", and how long do they take?")
	plan := []string{"oc-preflight", "plan", "--to", story.Later, "--graph", story.GraphFile(t.Directory), "--prometheus", t.Monitoring.URL}
	if err := t.Run(ctx, terminal.Ready, plan...); err != nil {
		return err
	}
	fmt.Println()
	t.Step("done: Blocked with causes and remedies, then Ready, then the plan of later updates")
	return nil
}
