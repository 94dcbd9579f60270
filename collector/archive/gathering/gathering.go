// Package gathering answers: how is an archive made that gives checks the same objects as the cluster?
//
// [Gather] makes the requests that checks declare, and writes the objects in the layout of "oc adm inspect", with
// an inventory.Collection that records which objects do not exist and which could not be read. The archive also
// contains the data of the monitoring.
//
// Lists are read in pages and written object by object, so memory use does not grow with the cluster. Only the
// fields that checks read are written (package reduction), and never values of Secrets or user info of URLs. With
// redaction, everything is read before it is written, since each object may show names that must be replaced in
// all others; until then it is stored on disk.
package gathering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/redaction"
	"github.com/openshift/update-preflight/collector/archive/reduction"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Options select what to gather, and how it is written.
type Options struct {
	// Reads are requests as checks declare them; requests with other verbs than get and list are ignored.
	Reads []access.Request
	// Monitoring is the monitoring of the cluster; nil gathers nothing of it.
	Monitoring *monitoring.Client
	// Redact replaces the names of nodes, IP addresses and domains (package redaction).
	Redact bool
	// Step reports the next step.
	Step func(string)
}

// Files is where the archive is written, file by file.
type Files interface {
	io.Writer
	Begin(name string) error
	End() error
	// Drop leaves the current file out.
	Drop() error
	// Scratch is an empty file that is not part of the archive.
	Scratch() (*os.File, error)
}

// Summary describes what was gathered.
type Summary struct {
	ClusterID string
	// Time of the archive, by the cluster's clock.
	Time    time.Time
	Objects int
	// Missing could not be read. What does not exist is not missing.
	Missing []gap.Gap
	// Kept are names of nodes and domains that redaction has left, since they are ordinary words or
	// parts of API groups.
	Kept []string
}

// maxMissing bounds what is listed as missing.
const maxMissing = 1000

type gatherer struct {
	cluster *cluster.Cluster
	request Options
	reducer *reduction.Reducer
	// out is the archive, and into where objects go: what is redacted, to a spool first.
	out     *output
	into    destination
	spool   *spool
	objects int
	// alerts of the monitoring; nil for none.
	alerts json.RawMessage
	api    api
	// reported is the last step that was reported.
	reported string
}

func (g *gatherer) step(text string) {
	if text != g.reported {
		g.reported = text
		g.request.Step(text)
	}
}

// Gather writes the archive of a cluster. What cannot be read is in the summary; an error means
// that the cluster cannot be reached, or that the archive cannot be written.
func Gather(ctx context.Context, c *cluster.Cluster, request Options, files Files) (Summary, error) {
	out := &output{files: files}
	g := &gatherer{cluster: c, request: request, reducer: reduction.New(request.Reads), out: out, into: out}
	g.step("reading the APIs that the cluster serves")
	info, err := discovery.ToServerVersionInterfaceWithContext(c.Kubernetes.Discovery()).ServerVersionWithContext(ctx)
	if err != nil {
		return Summary{}, fmt.Errorf("could not reach the API server: %w", err)
	}
	out.index.Version = *info
	if g.api, err = discoverAPI(ctx, c.Kubernetes.Discovery()); err != nil {
		return Summary{}, err
	}
	id, monitored, err := g.identify(ctx)
	if err != nil {
		return Summary{}, err
	}
	for _, each := range readingsOf(g.api.each(request.Reads)) {
		if err := g.read(ctx, each); err != nil {
			return Summary{}, err
		}
	}
	if err := errors.Join(g.readMetrics(ctx), g.readMonitoring(ctx, monitored)); err != nil {
		return Summary{}, err
	}
	out.index.Time, out.index.Redacted = c.Now(), request.Redact
	if err := g.replaceNames(); err != nil {
		return Summary{}, err
	}
	if err := errors.Join(out.writeAlerts(g.alerts), out.writeIndex()); err != nil {
		return Summary{}, err
	}
	summary := Summary{ClusterID: id, Time: out.index.Time, Objects: g.objects, Missing: out.index.Missing}
	if out.names != nil {
		summary.Kept = out.names.Kept()
	}
	return summary, nil
}

// replaceNames writes what was read, once all names are known. Nothing is done where none is replaced.
func (g *gatherer) replaceNames() error {
	if g.spool == nil {
		return nil
	}
	g.step("replacing the names")
	g.spool.names.Learn(g.out.index.Metrics)
	return g.spool.replay(g.out)
}

func (g *gatherer) read(ctx context.Context, r reading) error {
	found, err := g.api.find(r.resource)
	key := r.resource.String()
	switch {
	case err != nil:
		g.miss(r, err)
		return nil
	case found == nil:
		if !slices.Contains(g.out.index.Unserved, key) {
			g.out.index.Unserved = append(g.out.index.Unserved, key)
		}
		return nil
	}
	g.step("reading " + key)
	gather := g.get
	if r.name == "" {
		gather = g.getAll
	}
	if err := gather(ctx, source{r, found}); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, ours := errors.AsType[*writeError](err); ours {
			return err
		}
		g.note(r, err)
	}
	return nil
}

// note states why what a request reads is not in the archive.
func (g *gatherer) note(r reading, err error) {
	switch {
	case apierrors.IsNotFound(err) && r.name != "":
		g.out.index.Nonexistent = append(g.out.index.Nonexistent, r.resource.Object(r.namespace, r.name))
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		g.out.index.Unserved = append(g.out.index.Unserved, r.resource.String())
	default:
		g.miss(r, err)
	}
}

func (g *gatherer) miss(r reading, err error) {
	if len(g.out.index.Missing) >= maxMissing {
		return
	}
	cause := words.Line(err.Error(), maxCause)
	if g.out.names != nil {
		g.out.names.Learn(cause)
	}
	g.out.index.Missing = append(g.out.index.Missing,
		gap.Gap{Group: r.resource.Group, Resource: r.resource.Name, Namespace: r.namespace, Name: r.name, Cause: cause})
}

// maxCause bounds an error, in bytes.
const maxCause = 500

type reading struct {
	resource        inventory.Resource
	namespace, name string
}

// readingsOf are the readings of requests, each once, and none that another one includes. The
// configuration of the cluster comes first: it shows which domains there are.
func readingsOf(requests []access.Request) []reading {
	var wanted []access.Request
	for _, each := range requests {
		lists := each.Verb == "list"
		if lists && each.Name != "" {
			each.Verb = "get"
		}
		if (lists || each.Verb == "get" && each.Name != "") && each.Subresource == "" {
			wanted = append(wanted, each)
		}
	}
	var readings []reading
	for _, each := range access.Essential(wanted) {
		listed := each
		listed.Verb, listed.Name = "list", ""
		if each.Verb == "get" && slices.ContainsFunc(wanted, func(wider access.Request) bool { return access.Includes(wider, listed) }) {
			continue
		}
		readings = append(readings, reading{inventory.Resource{Group: each.Group, Name: each.Resource}, each.Namespace, each.Name})
	}
	slices.SortStableFunc(readings, func(a, b reading) int { return rank(a) - rank(b) })
	return readings
}

func rank(r reading) int {
	if strings.HasSuffix(r.resource.Group, "openshift.io") {
		return 0
	}
	return 1
}

const (
	// parallelQueries bounds the concurrent queries.
	parallelQueries = 8
	// maxQueries bounds the queries, and maxResult one result, in bytes: the result of a condition is one sample.
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
		g.out.index.Metrics = "# metrics of deprecated APIs\n" + string(kept)
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
				err = fmt.Errorf("its result is larger than %d bytes", maxResult)
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
		return "", nil, fmt.Errorf("could not read ClusterVersion \"version\", which every archive needs: %w", err)
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

// nodePage is the number of nodes of a page: each has a list of images.
const nodePage = 50

// learn reads which names are replaced. Without the nodes nothing can be.
func (g *gatherer) learn(ctx context.Context) error {
	if !g.request.Redact {
		return nil
	}
	g.step("reading the names to replace")
	nodes, err := nodeNames(ctx, g.cluster)
	if err != nil {
		return fmt.Errorf("names cannot be replaced: could not list the nodes: %w", err)
	}
	infrastructure, err := g.cluster.OpenShift.ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("names cannot be replaced: could not read the Infrastructure \"cluster\": %w", err)
	}
	groups := map[string]bool{}
	for resource := range g.api.resources {
		groups[resource.Group] = true
	}
	names := redaction.New(redaction.Known{Nodes: nodes, Domains: domainsOf(infrastructure), Groups: slices.Sorted(maps.Keys(groups))})
	file, err := g.out.files.Scratch()
	if err != nil {
		return &writeError{err}
	}
	g.spool = newSpool(file, names)
	g.into, g.out.names = g.spool, names
	return nil
}

// nodeNames are the names of each node, its own first.
func nodeNames(ctx context.Context, c *cluster.Cluster) ([][]string, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.Kubernetes.CoreV1().Nodes().List(ctx, options)
	})
	pages.PageSize, pages.PageBufferSize = nodePage, 1
	var names [][]string
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		node, ok := item.(*corev1.Node)
		if !ok {
			return errors.ErrUnsupported // the list has no others
		}
		all := []string{node.Name, node.Labels[corev1.LabelHostname]}
		for _, address := range node.Status.Addresses {
			if address.Type != corev1.NodeInternalIP && address.Type != corev1.NodeExternalIP {
				all = append(all, address.Address)
			}
		}
		names = append(names, slices.DeleteFunc(all, func(name string) bool { return name == "" }))
		return nil
	})
	return names, err
}

// domainsOf returns the domains of the API server.
func domainsOf(infrastructure *configv1.Infrastructure) []string {
	if infrastructure == nil {
		return nil
	}
	domains := []string{infrastructure.Status.EtcdDiscoveryDomain}
	for _, address := range []string{infrastructure.Status.APIServerURL, infrastructure.Status.APIServerInternalURL} {
		parsed, err := url.Parse(address)
		if err != nil || net.ParseIP(parsed.Hostname()) != nil {
			continue
		}
		host := parsed.Hostname()
		for _, prefix := range []string{"api.", "api-int."} {
			host = strings.TrimPrefix(host, prefix)
		}
		domains = append(domains, host)
	}
	return domains
}
