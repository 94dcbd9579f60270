// Hosted-demo shows a preflight of a hosted cluster (HyperShift): its management cluster and its guest
// are two local clusters. It is Blocked from both sides, and Ready after the remedies of its report.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/script"
	"github.com/openshift/update-preflight/test/story/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	directory, err := os.MkdirTemp("", "preflight-hosted-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	t, err := terminal.New(os.Stdout, directory)
	if err != nil {
		return err
	}
	t.Step("starting two Kubernetes clusters: a management cluster with simulated nodes, and the guest")
	guest, stop, err := start(ctx, t)
	defer func() { err = errors.Join(err, stop(ctx)) }()
	if err != nil {
		return err
	}
	if err := story.PrepareHosted(ctx, guest, t.Cluster, directory, t.Step); err != nil {
		return err
	}
	return script.Hosted(ctx, t, guest)
}

// controlPlaneNodes are the simulated nodes of the management cluster.
const controlPlaneNodes = 3

// start starts the clusters and the monitoring of the guest. What it returns stops those that run.
func start(ctx context.Context, t *terminal.Terminal) (guest *cluster.Cluster, stop func(context.Context) error, err error) {
	var monitoring *prometheus.Prometheus
	group, bounded := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		t.Cluster, err = cluster.Start(bounded, filepath.Join(t.Directory, "management"), cluster.ControlPlaneOnly(),
			cluster.KWOK(controlPlaneNodes))
		return err
	})
	group.Go(func() (err error) {
		guest, err = cluster.Start(bounded, filepath.Join(t.Directory, "guest"),
			cluster.Progress(func(step string, _ time.Duration) { t.Step("  " + step) }))
		return err
	})
	group.Go(func() (err error) {
		files, err := os.MkdirTemp(t.Directory, "prometheus-")
		if err == nil {
			monitoring, err = prometheus.Start(bounded, files)
		}
		return err
	})
	err = group.Wait()
	if monitoring != nil {
		t.Monitoring = monitoring.URL
	}
	return guest, func(ctx context.Context) error {
		if monitoring != nil {
			monitoring.Stop()
		}
		var errs []error
		for _, each := range []*cluster.Cluster{guest, t.Cluster} {
			if each != nil {
				errs = append(errs, each.Stop(ctx))
			}
		}
		return errors.Join(errs...)
	}, err
}
