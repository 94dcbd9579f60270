// Package monitoring answers: what does the cluster's monitoring report?
//
// It reads the active alerts, and evaluates the PromQL of risks, as the cluster-version operator (CVO,
// pkg/clusterconditions/promql) does: through Prometheus' own API, which the cluster's thanos-querier implements.
//
// It differs from CVO where CVO accepts an inconclusive response. CVO uses old alerts, or none, when they cannot
// be read; here that is an error. CVO only logs the warnings of a response, by which Thanos reports that data is
// missing; here they are an error. CVO treats a histogram as 0; here it is an error. Requests are not throttled,
// and nothing is read twice.
package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

// DefaultTimeout bounds one read. CVO, for which no user waits, allows five minutes.
const DefaultTimeout = 30 * time.Second

// parallelism bounds the concurrent reads. Prometheus evaluates 20 queries at a
// time by default, and has other clients.
const parallelism = 8

// Client reads the current state of the monitoring. Nothing is read before the first call that needs it, and
// everything once: later and concurrent calls share the result or the error. Its methods may be called
// concurrently.
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

// Alerts returns the active alerts, pending and firing, in the order of the server. The result is shared, and must
// not be changed. The error is an *[Error], or comes from ctx.
func (c *Client) Alerts(ctx context.Context) ([]prometheusv1.Alert, error) {
	return c.alerts.Get(ctx, c.readAlerts)
}

// Query evaluates PromQL that is a condition, as CVO does: the result must be an instant vector of exactly one
// sample, with the value 1 (true) or 0 (false). Any other result is an *[Error], with CVO's message if it has one.
// The error may also come from ctx.
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

// AlertsData returns the data of a response with the active alerts, and reads it each time. It returns the same
// errors as Alerts.
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

const (
	namespace = "openshift-monitoring"
	querier   = "thanos-querier"
	// querierService is the address of the querier for pods, which have no proxy for it.
	querierService = "https://" + querier + "." + namespace + ".svc:9091"
	// proxyPath is the path of the querier behind the API server, for a cluster that is reached
	// by a transport of its own: no network leads to the querier.
	proxyPath = "/api/v1/namespaces/" + namespace + "/services/https:" + querier + ":web/proxy"
	// podToken is the token file of rest.InClusterConfig.
	podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // the path of a token, not a token
)

// Finder finds a Prometheus: Host is its URL, and requests to it have the
// credentials and the CA of the configuration, and no others. It is called before
// the first request.
type Finder func(context.Context) (*rest.Config, error)

// Querier finds the thanos-querier of a cluster as a user of the cluster reaches it.
type Querier struct {
	// Config has the user's credentials, and the proxy to the cluster.
	Config *rest.Config
	// Dynamic reads Routes and ConfigMaps.
	Dynamic dynamic.Interface
}

// Reads are the requests of [Querier.Find] to the API server.
func Reads() []access.Request {
	return []access.Request{
		{Verb: "get", Group: "route.openshift.io", Resource: "routes", Namespace: namespace, Name: querier},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "default-ingress-cert"},
	}
}

// Find finds the cluster's own thanos-querier: through its Route or, in a pod of the cluster, through its Service.
// Requests have the user's token; certificates and passwords are sent only to the API server. The error is an
// *[Error]: NoMonitoring if the cluster has none, NoToken for a user without a token.
func (c Querier) Find(ctx context.Context) (*rest.Config, error) {
	if c.Config.Transport != nil {
		return &rest.Config{Host: c.Config.Host + proxyPath, Transport: c.Config.Transport}, nil
	}
	if c.Config.BearerTokenFile == podToken {
		ca, err := c.certificates(ctx, namespace, "openshift-service-ca.crt", "service-ca.crt")
		return c.configFor(querierService, ca), err
	}
	route, err := c.Dynamic.Resource(routes()).Namespace(namespace).Get(ctx, querier, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, noMonitoring()
	}
	if err != nil {
		return nil, unread("the Route "+namespace+"/"+querier, err)
	}
	hosts := hostsOf(route)
	if len(hosts) == 0 {
		return nil, noMonitoring()
	}
	return c.throughRoute(ctx, "https://"+hosts[0])
}

// Locate is [Querier.At] for an address and, without one, [Querier.Find].
func (c Querier) Locate(address string) (Finder, error) {
	if address == "" {
		return c.Find, nil
	}
	return c.At(address)
}

// At finds a Prometheus by its URL. Requests have no credentials except those in
// the URL; only a Prometheus behind a Route of the cluster's own monitoring
// receives the user's token.
func (c Querier) At(address string) (Finder, error) {
	named, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the URL of the Prometheus cannot be read: %w", withoutURL(err))
	}
	if (named.Scheme != "http" && named.Scheme != "https") || named.Host == "" {
		return nil, fmt.Errorf("the URL of the Prometheus is %q; it must be like https://prometheus.example.com", named.Redacted())
	}
	return func(ctx context.Context) (*rest.Config, error) {
		if named.Scheme == "https" && c.hasRouteTo(ctx, named.Host) {
			return c.throughRoute(ctx, address)
		}
		return &rest.Config{Host: address}, nil
	}, nil
}

// withoutURL removes the URL that an error of net/url or net/http repeats: it may have a password, or a long query.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// hasRouteTo reports whether the host belongs to a Route of the cluster's own
// monitoring. It is false when the Routes cannot be read, so that no token is sent.
func (c Querier) hasRouteTo(ctx context.Context, host string) bool {
	list, err := c.Dynamic.Resource(routes()).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 100})
	if err != nil {
		return false
	}
	for _, route := range list.Items {
		if slices.Contains(hostsOf(&route), host) {
			return true
		}
	}
	return false
}

// throughRoute is the configuration for an address behind a Route, which has the
// certificate of the cluster's ingress.
func (c Querier) throughRoute(ctx context.Context, address string) (*rest.Config, error) {
	if c.Config.BearerToken == "" && c.Config.BearerTokenFile == "" && c.Config.ExecProvider == nil && c.Config.AuthProvider == nil {
		return nil, logIn(Error{Reason: ReasonNoToken, Message: "the monitoring requires a token, but the kubeconfig contains none"})
	}
	ca, err := c.certificates(ctx, "openshift-config-managed", "default-ingress-cert", "ca-bundle.crt")
	return c.configFor(address, ca), err
}

// certificates reads a CA. Where it does not exist or cannot be read, the CAs of
// this machine are used; a certificate is verified in any case.
func (c Querier) certificates(ctx context.Context, namespace, name, key string) ([]byte, error) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	configMap, err := c.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unread("the ConfigMap "+namespace+"/"+name, err)
	}
	bundle, _, _ := unstructured.NestedString(configMap.Object, "data", key) // ConfigMaps have strings
	return []byte(bundle), nil
}

func (c Querier) configFor(address string, ca []byte) *rest.Config {
	return &rest.Config{
		Host:            address,
		BearerToken:     c.Config.BearerToken,
		BearerTokenFile: c.Config.BearerTokenFile,
		ExecProvider:    c.Config.ExecProvider,
		AuthProvider:    c.Config.AuthProvider,
		UserAgent:       c.Config.UserAgent,
		Proxy:           c.Config.Proxy,
		Dial:            c.Config.Dial,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}
}

func routes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}
}

// hostsOf are the host names of a Route, those that an ingress admitted first.
func hostsOf(route *unstructured.Unstructured) []string {
	var hosts []string
	ingresses, _, _ := unstructured.NestedSlice(route.Object, "status", "ingress") // none where malformed
	for _, ingress := range ingresses {
		if ingress, ok := ingress.(map[string]any); ok {
			if host, _, _ := unstructured.NestedString(ingress, "host"); host != "" {
				hosts = append(hosts, host)
			}
		}
	}
	if host, _, _ := unstructured.NestedString(route.Object, "spec", "host"); host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}

func noMonitoring() *Error {
	return &Error{
		Reason:  ReasonNoMonitoring,
		Message: fmt.Sprintf("this cluster has no monitoring: there is no Route %s/%s", namespace, querier),
		Remedy:  "Use a Prometheus that has the metrics of the cluster.",
		Actions: []finding.Action{finding.Retry(finding.OptionMonitoring)},
	}
}

// unread returns an error of the API server while the monitoring is found; the error of a context is returned
// unchanged.
func unread(object string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	failure := Error{
		Message: fmt.Sprintf("could not find the monitoring: could not read %s: %s", object, words.Line(err.Error(), maxMessage)),
		Err:     err,
	}
	switch {
	case apierrors.IsForbidden(err):
		failure.Reason = reasonForbidden
		failure.Remedy = "Run the preflight as a user with permission to read it, or use another Prometheus that has the metrics of the cluster."
		failure.Actions = []finding.Action{finding.Roles(), finding.Retry(finding.OptionMonitoring)}
		return &failure
	case apierrors.IsUnauthorized(err):
		failure.Reason = reasonUnauthorized
		return logIn(failure)
	}
	failure.Reason = reasonUnreachable
	failure.Remedy = "Check that the API server responds, then run the preflight again, or use another Prometheus that has the " +
		"metrics of the cluster."
	failure.Actions = []finding.Action{finding.Retry(""), finding.Retry(finding.OptionMonitoring)}
	return &failure
}
