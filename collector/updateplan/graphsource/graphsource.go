// Package graphsource answers: from where is the update graph of a plan read?
//
// [Request.Read] reads and unites all graphs that are requested: files, update services,
// or what was stored of them.
package graphsource

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
)

// Request is where the graph comes from.
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
	// Architecture is by the name that update services use; empty for that of the
	// cluster or, without one, of this program.
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
	return fmt.Sprintf("no graph of channel %q for %s is stored for the update service %s", e.Key.Channel, e.Key.Architecture, redacted(e.Key.URL))
}

// Remedy is the command that stores the graph, where the update service can be reached.
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
