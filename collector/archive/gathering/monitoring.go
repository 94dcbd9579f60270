package gathering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/snapshot"
)

const (
	// parallelQueries bounds the concurrent queries.
	parallelQueries = 8
	// maxQueries bounds the queries, and maxResult one result, in bytes: that of a condition is one sample.
	maxQueries, maxResult = 1000, 64 << 10
	alertsFile            = "monitoring/alerts.json"
)

// readMetrics gathers the metrics of the API server that stand for the counts of requests where
// the cluster has none.
func (g *gatherer) readMetrics(ctx context.Context) error {
	counts := inventory.Resource{Group: apiserverv1.GroupName, Name: "apirequestcounts"}
	wanted := false
	for _, unserved := range g.out.index.Unserved {
		wanted = wanted || unserved == counts.String()
	}
	if !wanted {
		return nil
	}
	g.step("reading the metrics of the API server")
	metrics, err := g.cluster.Kubernetes.Discovery().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err == nil {
		var kept []byte
		kept, err = apiuse.KeepMetrics(metrics)
		err = errors.Join(err, metrics.Close())
		g.out.index.Metrics = "# those of deprecated APIs\n" + string(kept)
	}
	if err != nil {
		g.out.index.Metrics = ""
		g.miss(reading{resource: inventory.Resource{Name: "/metrics"}}, err)
	}
	return ctx.Err()
}

func (g *gatherer) readMonitoring(ctx context.Context, queries []string) error {
	if g.request.Monitoring == nil {
		return nil
	}
	g.step("reading the alerts")
	alerts, err := g.request.Monitoring.AlertsData(ctx)
	if err != nil {
		if failed, ok := errors.AsType[*monitoring.Error](err); !ok || failed.Reason != monitoring.ReasonNoMonitoring {
			g.miss(reading{resource: inventory.Resource{Name: "alerts"}}, err)
		}
		return ctx.Err()
	}
	g.alerts = alerts
	if err := g.out.learn(alerts); err != nil {
		return err
	}
	if len(queries) == 0 {
		return nil
	}
	g.step(fmt.Sprintf("executing the queries of risks (%d)", len(queries)))
	return g.execute(ctx, queries[:min(len(queries), maxQueries)])
}

// execute executes the queries. One without a result is missing.
func (g *gatherer) execute(ctx context.Context, queries []string) error {
	g.out.index.Queries = map[string]json.RawMessage{}
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelQueries)
	for _, query := range queries {
		group.Go(func() error {
			data, err := g.request.Monitoring.QueryData(ctx, query)
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil && len(data) > maxResult {
				err = fmt.Errorf("its result has more than %d bytes", maxResult)
			}
			if err == nil {
				err = g.out.learn(data)
			}
			if err != nil {
				g.miss(reading{resource: inventory.Resource{Name: "queries"}, name: query}, err)
				return ctx.Err()
			}
			g.out.index.Queries[query] = data
			return nil
		})
	}
	return group.Wait()
}

// identify reads the ID of the cluster, and the queries that decide on its risks. Only OpenShift has them.
func (g *gatherer) identify(ctx context.Context) (id string, queries []string, err error) {
	version, err := g.cluster.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		version = &configv1.ClusterVersion{}
	case err != nil:
		return "", nil, fmt.Errorf("could not read ClusterVersion \"version\", which every archive has: %w", err)
	}
	topology, err := snapshot.Of(g.cluster).Topology(ctx)
	if err != nil {
		topology = "" // the queries of a hosted cluster are missing then
	}
	if err := g.learn(ctx); err != nil {
		return "", nil, err
	}
	return string(version.Spec.ClusterID), risk.Queries(version, topology), nil
}
