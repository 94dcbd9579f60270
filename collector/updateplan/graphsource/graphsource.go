// Package graphsource answers: where does the update graph of a plan come from?
//
// [Request.Read] reads and merges all requested graphs: files, update services, or stored copies of them.
package graphsource

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
	"github.com/openshift/update-preflight/collector/words"
)

// Request says where the graph comes from.
type Request struct {
	// Channels are channels of the update service; none for the channel of the cluster.
	Channels []string
	// Files are graphs, and Services the URLs of update services; without both, the update
	// service of the cluster, or else the public one, is used.
	Files    []File
	Services []string
	// Graphs stores the responses of update services; nil stores none. A graph that is stored
	// for at most ten minutes is used instead of a request.
	Graphs updateservice.Store
	// Offline uses the graphs of Graphs instead of requesting them.
	Offline bool
	// Architecture is the name that update services use; empty for the architecture of the cluster or, without one, of
	// this program.
	Architecture string
}

// File is a graph that was read.
type File struct {
	Name    string
	Content []byte
}

// Position is from where, when and by whom a graph is requested.
type Position struct {
	// From is the release that the plan starts from.
	From    string
	Now     time.Time
	Service Service
	Logger  *slog.Logger
}

// United is the union of all graphs of a request.
type United struct {
	Graph *graph.Graph
	// Sources names them, sorted, and Notices are their limitations.
	Sources, Notices []string
}

// Read reads and unites all graphs. An *input.Error is about a graph that cannot be used.
func (r Request) Read(ctx context.Context, at Position) (United, error) {
	reader := reader{request: r, at: at}
	graphs, err := reader.graphs(ctx)
	united := United{Notices: reader.notices}
	if err != nil {
		return united, err
	}
	if united.Graph, err = graph.Union(graphs...); err != nil {
		return united, &input.Error{Err: err}
	}
	for i := range united.Graph.Releases {
		united.Sources = append(united.Sources, united.Graph.Sources(i)...)
	}
	slices.Sort(united.Sources)
	united.Sources = slices.Compact(united.Sources)
	return united, nil
}

// NotStoredError is the error for a graph that is not stored, of a plan without access to the update service.
type NotStoredError struct {
	Key updateservice.Key
	// From is the release that the plan starts from.
	From string
}

// Error implements error.
func (e *NotStoredError) Error() string {
	return fmt.Sprintf("no graph of channel %q for %s is stored for the update service %s", e.Key.Channel, e.Key.Architecture,
		redacted(e.Key.URL))
}

// Remedy returns the command that stores the graph, for use where the update service is reachable.
func (e *NotStoredError) Remedy() (sentence string, commands []finding.Action) {
	command := finding.Read("oc preflight plan --from %s --channel %s --arch %s", e.From, e.Key.Channel, e.Key.Architecture)
	if e.Key.URL != updateservice.Default {
		command = command.Adding("--graph", redacted(e.Key.URL))
	}
	return "With access to the update service, store the graph", []finding.Action{command}
}

// NoChannelError is the error for an update service without a channel to request from it:
// neither the request nor the cluster has one.
type NoChannelError struct {
	Service string
}

// Error implements error.
func (e *NoChannelError) Error() string {
	return "no channel is known to request from " + redacted(e.Service)
}

// Remedy names what is missing.
func (e *NoChannelError) Remedy() (sentence string, commands []finding.Action) {
	return "Name a channel, such as --channel eus-4.18", nil
}

// redacted is a URL without its password.
func redacted(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "(invalid URL)"
	}
	return parsed.Redacted()
}

// Service is the update service that is used unless others are named.
type Service struct {
	// Transport reaches all update services.
	Transport http.RoundTripper
	// URL locates the service; only it receives ID, the ID of the cluster.
	URL, ID string
}

// Public is the service of a plan without a cluster.
func Public(transport http.RoundTripper) Service {
	return Service{Transport: transport, URL: updateservice.Default}
}

// ServiceOf is the service that CVO uses.
func ServiceOf(s scene.Scene, transport http.RoundTripper) Service {
	return Service{Transport: transport, URL: upstream(s.Version), ID: s.About.ID}
}

func upstream(clusterVersion *configv1.ClusterVersion) string {
	return cmp.Or(string(clusterVersion.Spec.Upstream), updateservice.Default)
}

// InChannel returns the release of a version in a channel, from the update service that CVO uses; the zero release
// if the channel does not contain it. The ID of the cluster is not sent. Of the scene, Cluster and Version are
// used.
func InChannel(ctx context.Context, s scene.Scene, transport http.RoundTripper, channel, version string) (update.Release, error) {
	found, _, err := updateservice.Graph(ctx, transport, updateservice.Query{
		URL: upstream(s.Version), Channel: channel, Version: s.Version.Status.Desired.Version,
		Architecture: Architecture(ctx, s, func(string, ...any) {}),
	})
	if err != nil {
		return update.Release{}, err
	}
	if at := found.Find(version); at >= 0 {
		return found.Releases[at].Release, nil
	}
	return update.Release{}, nil
}

// Architecture returns the architecture that CVO requests, by the name that update services use. It calls miss if
// that is an assumption.
func Architecture(ctx context.Context, s scene.Scene, miss func(string, ...any)) string {
	if s.Version.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti {
		return "multi"
	}
	if found := s.ControlPlaneArchitecture(ctx); found != "" {
		return found
	}
	const usual = "amd64"
	miss("the architecture: no control plane node could be read, and %s is assumed", usual)
	return usual
}

type reader struct {
	request Request
	at      Position
	notices []string
}

// maxGraphs bounds the graphs of one plan.
const maxGraphs = 32

func (r *reader) graphs(ctx context.Context) ([]*graph.Graph, error) {
	graphs, err := r.parseFiles()
	if err != nil {
		return nil, err
	}
	services := r.request.Services
	if len(services) == 0 && len(graphs) == 0 {
		services = []string{r.at.Service.URL}
	}
	if len(services) > 0 && len(r.request.Channels) == 0 {
		return nil, &input.Error{Err: &NoChannelError{Service: services[0]}}
	}
	if count := len(graphs) + len(services)*len(r.request.Channels); count > maxGraphs {
		return nil, input.Errorf("the plan needs %d graphs, more than %d", count, maxGraphs)
	}
	for _, service := range services {
		for _, channel := range r.request.Channels {
			requested, err := r.ask(ctx, service, channel)
			if err != nil {
				return nil, err
			}
			graphs = append(graphs, requested)
		}
	}
	return graphs, nil
}

func (r *reader) parseFiles() ([]*graph.Graph, error) {
	var graphs []*graph.Graph
	for _, file := range r.request.Files {
		parsed, err := graph.Parse(file.Name, file.Content)
		if err != nil {
			return nil, &input.Error{Err: err}
		}
		if len(parsed.Releases) == 0 {
			return nil, input.Errorf("the update graph %s has no release", file.Name)
		}
		graphs = append(graphs, parsed)
	}
	return graphs, nil
}

// ask requests one graph, and stores it, unless a recent one is stored. An unknown channel is an empty graph.
func (r *reader) ask(ctx context.Context, service, channel string) (*graph.Graph, error) {
	key := updateservice.Key{URL: service, Channel: channel, Architecture: r.request.Architecture}
	if r.request.Offline {
		return r.stored(key)
	}
	if recent := r.recent(ctx, key); recent != nil {
		return recent, nil
	}
	query := updateservice.Query{URL: service, Channel: channel, Architecture: r.request.Architecture, Version: r.at.From}
	if service == r.at.Service.URL {
		query.ID = r.at.Service.ID
	}
	requested, content, err := updateservice.Graph(ctx, r.at.Service.Transport, query)
	if err != nil {
		return nil, err
	}
	if len(requested.Releases) == 0 {
		return nil, input.Errorf("the update service has no release in channel %q for %s: there is no such channel, or the service has "+
			"none of its releases", channel, r.request.Architecture)
	}
	if r.request.Graphs != nil {
		if err := r.request.Graphs.Put(key, r.at.Now, content); err != nil {
			r.notices = append(r.notices, err.Error())
		}
	}
	return requested, nil
}

// maxReuse is how long a stored graph is used instead of a request. CVO requests a graph
// again after two to four minutes.
const maxReuse = 10 * time.Minute

// recent is a graph that was stored at most maxReuse ago; nil if there is none that can be used.
func (r *reader) recent(ctx context.Context, key updateservice.Key) *graph.Graph {
	if r.request.Graphs == nil {
		return nil
	}
	content, received, ok := r.request.Graphs.Get(key)
	age := r.at.Now.Sub(received)
	if !ok || age < 0 || age > maxReuse {
		return nil
	}
	parsed, err := graph.Parse(key.Channel, content)
	if err != nil || len(parsed.Releases) == 0 {
		return nil
	}
	r.at.Logger.InfoContext(ctx, "using the stored update graph", "channel", key.Channel, "architecture", key.Architecture, "age",
		age.Round(time.Second))
	return parsed
}

func (r *reader) stored(key updateservice.Key) (*graph.Graph, error) {
	missing := &input.Error{Err: &NotStoredError{Key: key, From: r.at.From}}
	if r.request.Graphs == nil {
		return nil, missing
	}
	content, received, ok := r.request.Graphs.Get(key)
	if !ok {
		return nil, missing
	}
	parsed, err := graph.Parse(key.Channel, content)
	if err != nil {
		return nil, &input.Error{Err: err}
	}
	r.notices = append(r.notices, fmt.Sprintf("offline: the graph of channel %s is %s old (%s), and lacks anything published or "+
		"blocked since",
		key.Channel, duration.HumanDuration(max(0, r.at.Now.Sub(received))), words.Time(received)))
	return parsed, nil
}
