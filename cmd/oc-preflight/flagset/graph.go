package flagset

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
	"github.com/openshift/update-preflight/signature/localfile"
)

// Graph select the update graph.
type Graph struct {
	architecture     string
	channels, graphs []string
	offline          bool
}

// Add adds --channel, --graph, --arch and --offline to the command.
func (f *Graph) Add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.channels, "channel", nil, "Channel of the update service. May be repeated. Default: the channel of the cluster.")
	c.Flags().StringArrayVar(&f.graphs, "graph", nil, "File with a graph, or URL of an update service: \"-\" is standard input. May be repeated. Default: the update service of the cluster, else that of api.openshift.com.")
	c.Flags().StringVar(&f.architecture, "arch", "", "Architecture of the releases: "+strings.Join(architectures(), ", ")+". Default: that of the cluster.")
	c.Flags().BoolVar(&f.offline, "offline", false, "Request no graph from an update service: use the one that was stored when it was requested last. The output has its age.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Values: option.Channels}, "channel")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "arch", "graph", "offline")
}

// architectures lists the values that update services accept.
func architectures() []string { return []string{"amd64", "arm64", "ppc64le", "s390x", "multi"} }

// Validate rejects values that are none.
func (f Graph) Validate() error {
	if f.architecture != "" && !slices.Contains(architectures(), f.architecture) {
		return fmt.Errorf("--arch: %q is not one of %s", f.architecture, strings.Join(architectures(), ", "))
	}
	// The names of channels are restricted by update services.
	channelName := regexp.MustCompile(`^[0-9a-z.-]+$`)
	for _, channel := range f.channels {
		if !channelName.MatchString(channel) {
			return fmt.Errorf("--channel: %q is not the name of a channel, such as stable-4.18", channel)
		}
	}
	return nil
}

// CheckMinor rejects a value of --to-minor that is not a minor version.
func CheckMinor(minor string) error {
	if strings.Count(minor, ".") > 1 || minor != "" && !SemverLike(minor+".0") {
		return fmt.Errorf("--to-minor: %q is not a minor version, such as 4.18", minor)
	}
	return nil
}

// Request names the graphs that the flags select. It reads the files and opens the store of graphs.
func (f Graph) Request(ctx context.Context, client *cli.Client, stored Pull) (graphsource.Request, error) {
	request, err := f.sources(ctx, client.Streams.In)
	if err != nil {
		return graphsource.Request{}, exitcode.BadUsage(err)
	}
	request.Offline = f.offline
	request.Graphs, err = stored.graphs(client)
	return request, err
}

// sources are the graphs and update services of the flags.
func (f Graph) sources(ctx context.Context, stdin io.Reader) (graphsource.Request, error) {
	request := graphsource.Request{Channels: f.channels, Architecture: f.architecture}
	for _, name := range f.graphs {
		if strings.Contains(name, "://") {
			if err := updateservice.Check(name); err != nil {
				return graphsource.Request{}, fmt.Errorf("--graph: %w", err)
			}
			request.Services = append(request.Services, name)
			continue
		}
		content, err := readGraph(ctx, stdin, name)
		if err != nil {
			return graphsource.Request{}, fmt.Errorf("--graph: %w", err)
		}
		request.Files = append(request.Files, graphsource.File{Name: f.sourceOf(name), Content: content})
	}
	return request, nil
}

// sourceOf is the channel of a file: the value of --channel if it is about this file alone,
// else the name of the file.
func (f Graph) sourceOf(name string) string {
	if len(f.graphs) == 1 && len(f.channels) == 1 {
		return f.channels[0]
	}
	if name == "-" {
		return "stdin"
	}
	return strings.TrimSuffix(filepath.Base(name), ".json")
}

// readGraph reads one byte more than is allowed, for the graph's own error.
func readGraph(ctx context.Context, stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, graph.MaxBytes+1))
	}
	file, err := localfile.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(file, graph.MaxBytes+1))
}
