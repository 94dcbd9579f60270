// Package monitoring answers: what does the cluster's monitoring say? It reads
// the active alerts, and evaluates the PromQL of risks, as the cluster-version
// operator (CVO, pkg/clusterconditions/promql) does: through Prometheus' own
// API, which the cluster's thanos-querier speaks.
//
// It departs from CVO where that would take no answer for an answer. CVO goes
// on with old alerts, or with none, when they cannot be read; here that is an
// error. CVO only logs the warnings of an answer, with which Thanos says that a
// part of the data is missing; here they are an error. CVO takes a histogram
// for 0; here it is an error. Nothing is throttled, and nothing is asked twice.
package monitoring

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// DefaultTimeout bounds one read. CVO waits five minutes, but nobody waits for
// CVO.
const DefaultTimeout = 30 * time.Second

// parallelism bounds the reads that are under way at one time. Prometheus
// evaluates 20 queries at a time by default, and others have queries too.
const parallelism = 8

// Client reads what the monitoring says now. Nothing is read before it is asked
// for, and everything once: who asks again, or meanwhile, shares the answer,
// and the error. Its methods may be called concurrently.
type Client struct {
	timeout time.Duration
	slots   chan struct{}

	server reading[*server]
	alerts reading[[]prometheusv1.Alert]

	mutex   sync.Mutex
	queries map[string]*reading[bool]

	// answered is true once any read was answered, mute has the error of a read
	// that timed out before that: others would wait in vain too.
	answered atomic.Bool
	mute     atomic.Pointer[Error]
}

// New makes a client of the monitoring that find finds; each read may take as
// long as timeout.
func New(find Finder, timeout time.Duration) *Client {
	c := &Client{timeout: timeout, slots: make(chan struct{}, parallelism), queries: map[string]*reading[bool]{}}
	c.server.read = func(ctx context.Context) (*server, error) { return reach(ctx, find) }
	c.alerts.read = c.readAlerts
	return c
}

// Alerts are the active ones, pending and firing, as the server lists them.
// What it returns is shared, and must not be changed. The error is an *Error,
// or that of ctx.
func (c *Client) Alerts(ctx context.Context) ([]prometheusv1.Alert, error) { return c.alerts.get(ctx) }

// Query evaluates PromQL that says whether something is so, as CVO does: the
// result must be an instant vector of exactly one sample, and its value 1 (yes)
// or 0 (no). Whatever else comes is an *Error, in CVO's words where it has any;
// or the error of ctx.
func (c *Client) Query(ctx context.Context, promql string) (bool, error) {
	c.mutex.Lock()
	query := c.queries[promql]
	if query == nil {
		query = &reading[bool]{read: func(ctx context.Context) (bool, error) { return c.readQuery(ctx, promql) }}
		c.queries[promql] = query
	}
	c.mutex.Unlock()
	return query.get(ctx)
}

func (c *Client) readAlerts(ctx context.Context) ([]prometheusv1.Alert, error) {
	data, err := c.ask(ctx, "/api/v1/alerts", nil)
	if err != nil {
		return nil, wrap("reading the alerts", err)
	}
	return parseAlerts(data)
}

func (c *Client) readQuery(ctx context.Context, promql string) (bool, error) {
	data, err := c.ask(ctx, "/api/v1/query", url.Values{"query": {promql}})
	if err != nil {
		return false, wrap("executing PromQL query", err)
	}
	return parseMatch(data)
}

// ask is one read, when it is its turn.
func (c *Client) ask(ctx context.Context, path string, arguments url.Values) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.slots }()
	if err := c.mute.Load(); err != nil {
		return nil, err
	}
	server, err := c.server.get(ctx)
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
		if !c.answered.Load() {
			c.mute.Store(silence)
		}
		return nil, silence
	}
	c.answered.Store(true)
	return data, err
}

// reading is what came of reading one thing once.
type reading[T any] struct {
	read  func(context.Context) (T, error)
	once  sync.Once
	value T
	err   error
}

func (r *reading[T]) get(ctx context.Context) (T, error) {
	r.once.Do(func() { r.value, r.err = r.read(ctx) })
	return r.value, r.err
}
