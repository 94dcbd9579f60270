// Package monitoring answers: what does the cluster's monitoring report?
//
// It reads the active alerts, and evaluates the PromQL of risks, as the
// cluster-version operator (CVO, pkg/clusterconditions/promql) does: through
// Prometheus' own API, which the cluster's thanos-querier implements.
//
// It differs from CVO where CVO accepts an inconclusive response. CVO uses old
// alerts, or none, when they cannot be read; here that is an error. CVO only logs
// the warnings of a response, by which Thanos reports that data is missing; here
// they are an error. CVO treats a histogram as 0; here it is an error. Nothing is
// throttled, and nothing is read twice.
package monitoring

import (
	"context"
	"encoding/json"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/openshift/update-preflight/collector/gap"
)

// DefaultTimeout bounds one read. CVO, for which no user waits, allows five minutes.
const DefaultTimeout = 30 * time.Second

// parallelism bounds the concurrent reads. Prometheus evaluates 20 queries at a
// time by default, and has other clients.
const parallelism = 8

// Client reads the present state of the monitoring. Nothing is read before the
// first call that needs it, and everything once: later and concurrent calls share
// the result or the error. Its methods may be called concurrently.
type Client struct {
	timeout time.Duration
	slots   chan struct{}

	find   Finder
	server gap.Once[*server]
	alerts gap.Once[[]prometheusv1.Alert]

	mutex   sync.Mutex
	queries map[string]*gap.Once[bool]

	// responded is true once the server responded to any read. silence is the error
	// of a read that timed out before that: other reads would wait in vain too.
	responded atomic.Bool
	silence   atomic.Pointer[Error]
}

// New makes a client of the monitoring that find finds; timeout bounds each read.
func New(find Finder, timeout time.Duration) *Client {
	return &Client{timeout: timeout, slots: make(chan struct{}, parallelism), find: find, queries: map[string]*gap.Once[bool]{}}
}

// Alerts are the active alerts, pending and firing, in the order of the server. The
// result is shared, and must not be changed. The error is an *[Error], or that of
// ctx.
func (c *Client) Alerts(ctx context.Context) ([]prometheusv1.Alert, error) {
	return c.alerts.Get(ctx, c.readAlerts)
}

// Query evaluates PromQL that is a condition, as CVO does: the result must be an
// instant vector of exactly one sample, with the value 1 (true) or 0 (false). Any
// other result is an *[Error], with CVO's message where it has one; or the error
// of ctx.
func (c *Client) Query(ctx context.Context, promql string) (bool, error) {
	c.mutex.Lock()
	query := c.queries[promql]
	if query == nil {
		query = &gap.Once[bool]{}
		c.queries[promql] = query
	}
	c.mutex.Unlock()
	return query.Get(ctx, func(ctx context.Context) (bool, error) { return c.readQuery(ctx, promql) })
}

func (c *Client) readAlerts(ctx context.Context) ([]prometheusv1.Alert, error) {
	data, err := c.AlertsData(ctx)
	if err != nil {
		return nil, err
	}
	return parseAlerts(data)
}

func (c *Client) readQuery(ctx context.Context, promql string) (bool, error) {
	data, err := c.QueryData(ctx, promql)
	if err != nil {
		return false, err
	}
	return parseMatch(data)
}

// AlertsData is the data of a response with the active alerts, which is read each time. The error
// is that of Alerts.
func (c *Client) AlertsData(ctx context.Context) (json.RawMessage, error) {
	data, err := c.get(ctx, "/api/v1/alerts", nil)
	return data, wrap("reading the alerts", err)
}

// QueryData is the data of the response to a query, which is executed each time. It fails as Query does.
func (c *Client) QueryData(ctx context.Context, promql string) (json.RawMessage, error) {
	data, err := c.get(ctx, "/api/v1/query", url.Values{"query": {promql}})
	return data, wrap("executing PromQL query", err)
}

// get is one read. It waits while the bound of concurrent reads is reached.
func (c *Client) get(ctx context.Context, path string, arguments url.Values) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.slots }()
	if err := c.silence.Load(); err != nil {
		return nil, err
	}
	server, err := c.server.Get(ctx, func(ctx context.Context) (*server, error) { return reach(ctx, c.find) })
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	data, err := server.get(limited, path, arguments)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		silence := timedOut(server.name, c.timeout)
		if !c.responded.Load() {
			c.silence.Store(silence)
		}
		return nil, silence
	}
	c.responded.Store(true)
	return data, err
}
