package story

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
)

// atOnce is how many clusters start side by side.
const atOnce = 2

// StartFleet starts the clusters of the fleet, a registry, and a Prometheus as their monitoring. What it
// returns besides stops those that run, also after an error.
func StartFleet(ctx context.Context, directory string, step func(string)) (fleet Fleet, stop func(context.Context) error, err error) {
	fleet.Clusters = map[string]*cluster.Cluster{}
	var stops []func(context.Context) error
	stop = func(ctx context.Context) error {
		var errs []error
		for _, each := range stops {
			errs = append(errs, each(ctx))
		}
		return errors.Join(errs...)
	}
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	stops = append(stops, func(context.Context) error { images.Close(); return nil })
	fleet.Registry = strings.TrimPrefix(images.URL, "http://")
	files, err := os.MkdirTemp(directory, "prometheus-")
	if err != nil {
		return fleet, stop, err
	}
	monitoring, err := prometheus.Start(ctx, files)
	if err != nil {
		return fleet, stop, err
	}
	stops = append(stops, func(context.Context) error { monitoring.Stop(); return nil })
	front, err := url.Parse(monitoring.URL)
	if err != nil {
		return fleet, stop, err
	}
	querier := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(front))
	stops = append(stops, func(context.Context) error { querier.Close(); return nil })
	fleet.Monitoring = Monitoring{
		Host: strings.TrimPrefix(querier.URL, "https://"),
		CA:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: querier.Certificate().Raw}),
	}
	var mutex sync.Mutex
	group, bounded := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range FleetClusters() {
		group.Go(func() error {
			started, err := cluster.Start(bounded, filepath.Join(directory, name), cluster.KWOK(1))
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			step("  " + name + " is running")
			fleet.Clusters[name] = started
			stops = append(stops, started.Stop)
			return nil
		})
	}
	return fleet, stop, group.Wait()
}
