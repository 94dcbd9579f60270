package graphsource

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
	"github.com/openshift/update-preflight/collector/words"
)

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
		return nil, input.Errorf("the update service has no release in channel %q for %s: there is no such channel, or the service has none of its releases", channel, r.request.Architecture)
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
	r.at.Logger.InfoContext(ctx, "the stored update graph is used", "channel", key.Channel, "architecture", key.Architecture, "age", age.Round(time.Second))
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
	r.notices = append(r.notices, fmt.Sprintf("offline: the graph of channel %s is %s old (%s), and lacks what was published or blocked since",
		key.Channel, duration.HumanDuration(max(0, r.at.Now.Sub(received))), words.Time(received)))
	return parsed, nil
}
