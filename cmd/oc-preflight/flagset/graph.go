package flagset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/screen"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature/localfile"
)

// Graph are the flags that select the update graph.
type Graph struct {
	// Architecture is the architecture of the releases; empty for the architecture of the cluster.
	Architecture string
	// Channels are names of channels of the update service; empty for the channel of the cluster.
	Channels []string
	// Graphs are paths of files and URLs of update services; empty for the update service of the cluster.
	Graphs []string
	// Offline is true to use the cached graph instead of a request.
	Offline bool
}

// Add adds --channel, --graph, --arch and --offline to the command.
func (f *Graph) Add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.Channels, "channel", nil,
		"Channel of the update service. May be repeated. Default: the channel of the cluster.")
	c.Flags().StringArrayVar(&f.Graphs, "graph", nil, "File with a graph, or URL of an update service: \"-\" is standard input. May "+
		"be repeated. Default: the update service of the cluster, else api.openshift.com.")
	c.Flags().StringVar(&f.Architecture, "arch", "",
		"Architecture of the releases: "+strings.Join(architectures(), ", ")+". Default: the architecture of the cluster.")
	c.Flags().BoolVar(&f.Offline, "offline", false,
		"Request no graph from an update service; use the one that was cached last. The age of the graph is shown.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Values: option.Channels}, "channel")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "arch", "graph", "offline")
}

// architectures lists the values that update services accept.
func architectures() []string { return []string{"amd64", "arm64", "ppc64le", "s390x", "multi"} }

// Validate rejects values that are none.
func (f Graph) Validate() error {
	if f.Architecture != "" && !slices.Contains(architectures(), f.Architecture) {
		return fmt.Errorf("--arch: %q is not one of %s", f.Architecture, strings.Join(architectures(), ", "))
	}
	// The names of channels are restricted by update services.
	channelName := regexp.MustCompile(`^[0-9a-z.-]+$`)
	for _, channel := range f.Channels {
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
	request.Offline = f.Offline
	request.Graphs, err = stored.graphs(client)
	return request, err
}

// sources are the graphs and update services of the flags.
func (f Graph) sources(ctx context.Context, stdin io.Reader) (graphsource.Request, error) {
	request := graphsource.Request{Channels: f.Channels, Architecture: f.Architecture}
	for _, name := range f.Graphs {
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
	if len(f.Graphs) == 1 && len(f.Channels) == 1 {
		return f.Channels[0]
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
	return localfile.Read(ctx, name, graph.MaxBytes)
}

// Pull are the flags for reading images.
type Pull struct {
	// CacheDirectory is the directory of the cache; empty for the default.
	CacheDirectory string
	// NoCache is true to cache nothing.
	NoCache bool
}

// Add adds --cache-dir and --no-cache to the command.
func (f *Pull) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.CacheDirectory, "cache-dir", "",
		"Directory to cache the content of releases in; digests are verified at each use. Default: oc-preflight in the user's cache directory.")
	c.Flags().BoolVar(&f.NoCache, "no-cache", false, "Cache nothing: read releases from the registry only.")
	// digests are verified at each use
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnDisplay}, "cache-dir", "no-cache")
}

// Cache opens the cache; nil is none. For a directory that the user did not name, a
// failure is only a warning.
func (f *Pull) Cache(client *cli.Client) (imagefiles.Cache, error) {
	return openCache(f, client, "releases are not cached", func(path string) (imagefiles.Cache, error) {
		return cache.Open(path, cache.DefaultLimit)
	})
}

// graphs opens the store of graphs, as cache does.
func (f *Pull) graphs(client *cli.Client) (updateservice.Store, error) {
	return openCache(f, client, "graphs are not stored", func(path string) (updateservice.Store, error) {
		return cache.OpenGraphs(path)
	})
}

// openCache opens a store in the directory of the cache; the zero value is none.
func openCache[T any](f *Pull, client *cli.Client, warning string, open func(path string) (T, error)) (none T, err error) {
	if f.NoCache {
		return none, nil
	}
	path := f.CacheDirectory
	if path == "" {
		directory, err := os.UserCacheDir()
		if err != nil {
			return none, nil //nolint:nilerr // without a home directory there is no default cache
		}
		path = filepath.Join(directory, "oc-preflight")
	}
	opened, err := open(path)
	switch {
	case err == nil:
		return opened, nil
	case f.CacheDirectory != "":
		return none, exitcode.BadUsage(fmt.Errorf("--cache-dir: %w", err))
	}
	fmt.Fprintf(client.Streams.ErrOut, "warning: %s: %v\n", warning, err)
	return none, nil
}

// Local are the credentials of podman and docker on this machine, in the files of
// containers-auth.json(5).
func Local() registry.Local {
	if path := os.Getenv("REGISTRY_AUTH_FILE"); path != "" {
		return registry.Local{AuthFiles: []string{path}}
	}
	var paths []string
	if directory := os.Getenv("XDG_RUNTIME_DIR"); directory != "" {
		paths = append(paths, filepath.Join(directory, "containers", "auth.json"))
	}
	paths = append(paths, filepath.Join("/run/containers", strconv.Itoa(os.Getuid()), "auth.json"))
	if directory, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(directory, "containers", "auth.json"))
	}
	if directory := os.Getenv("DOCKER_CONFIG"); directory != "" {
		paths = append(paths, filepath.Join(directory, "config.json"))
	} else if directory, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(directory, ".docker", "config.json"))
	}
	return registry.Local{AuthFiles: paths}
}

// The bounds of --interval, and the shortest time between two documents where changes are
// watched.
const (
	leastInterval = 2 * time.Second
	mostInterval  = time.Hour
	pause         = time.Second
)

// Watching are --watch and --interval.
type Watching struct {
	// Watch is true to show the document again whenever it changes.
	Watch bool
	// Interval is the time after which the cluster is read again.
	Interval time.Duration
}

// Add adds the flags; interval is the default, and end what ends the command beside Ctrl-C.
func (f *Watching) Add(c *cobra.Command, interval time.Duration, end string) {
	f.Interval = interval
	c.Flags().BoolVarP(&f.Watch, "watch", "w", false,
		"Show it again whenever it changes, until "+end+": in place on a terminal, otherwise as a new document.")
	c.Flags().DurationVar(&f.Interval, "interval", interval,
		fmt.Sprintf("With --watch: time after which the cluster is read again, %s to %s.", leastInterval, mostInterval))
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "watch", "interval")
}

// Check rejects an interval outside of the limits that the help of --interval states.
func (f *Watching) Check() error {
	if f.Interval < leastInterval || f.Interval > mostInterval {
		return fmt.Errorf("--interval=%s: it must be %s to %s", f.Interval, leastInterval, mostInterval)
	}
	return nil
}

// Within is the time until another sample that is needed at once: at most the interval with --watch.
func (f *Watching) Within(most time.Duration) time.Duration {
	if f.Watch {
		return min(most, f.Interval)
	}
	return most
}

// changeSource calls changed after each change, until ctx is done or it cannot.
type changeSource func(ctx context.Context, changed func()) error

// Unwatched has no changes: the cluster is read at intervals.
func Unwatched(context.Context, func()) error { return nil }

// Repeat calls show: once, and with --watch also after changes and at intervals, until it
// reports the end, or until ctx is done, which is no error. An error after the first call is
// reported, and show is called again.
func (f *Watching) Repeat(ctx context.Context, shown *watched, source changeSource, show func() (ended bool, err error)) error {
	ended, err := show()
	if !f.Watch || err != nil || ended {
		return err
	}
	changed := make(chan struct{}, 1)
	watching, stop := context.WithCancel(ctx)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		err := source(watching, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
		if err != nil {
			shown.report(fmt.Sprintf("%s; read again every %s", err, f.Interval))
		}
	}()
	defer func() { stop(); <-finished }()
	for f.next(ctx, changed) {
		ended, err = show()
		switch {
		case ctx.Err() != nil:
			return nil
		case ended:
			return err
		case err != nil:
			shown.report(fmt.Sprintf("%s; read again in %s", err, f.Interval))
		}
	}
	return nil
}

// next waits for the next change or the end of the interval; false when ctx is done.
func (f *Watching) next(ctx context.Context, changed <-chan struct{}) bool {
	if !awaitChange(ctx, nil, pause) {
		return false
	}
	return awaitChange(ctx, changed, f.Interval-pause)
}

// awaitChange waits for a change or the end of the time; false when ctx is done.
func awaitChange(ctx context.Context, changed <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// watched is an output to which a document is written again: in place on a terminal,
// otherwise when more than its times has changed.
type watched struct {
	*Destination

	stderr io.Writer
	// last and filed are the documents of standard output and of the files, without times.
	last, filed []byte

	mutex  sync.Mutex
	region *screen.Region
	// lines are those in the region.
	lines []string
}

// Watched is the output of a command that may write its document more than once.
func (f *Watching) Watched(out *Destination, client *cli.Client) *watched {
	w := &watched{Destination: out, stderr: client.Streams.ErrOut}
	if _, ok := terminal.Of(out.Stdout); ok && f.Watch {
		w.region = screen.NewRegion(out.Stdout)
	}
	client.Quiet = client.Quiet || f.Watch
	return w
}

// Write writes the document; key is the document without its times.
func (w *watched) Write(document, key any) error {
	text, err := json.Marshal(key)
	if err != nil {
		return err
	}
	// What could not be written is written the next time, although it has not changed.
	var shown, filed error
	if w.region != nil || !bytes.Equal(text, w.last) {
		if shown = w.show(document); shown == nil {
			w.last = text
		}
	}
	if w.region != nil || !bytes.Equal(text, w.filed) {
		if filed = w.WriteFiles(document); filed == nil {
			w.filed = text
		}
	}
	return errors.Join(shown, filed)
}

// Last writes the final document: on a terminal all of it, in place of the part that fit.
func (w *watched) Last(document, key any) error {
	if w.region != nil {
		file, _ := terminal.Of(w.Stdout)
		width, _ := terminal.Size(file)
		if err := w.region.Draw(nil, "", width); err != nil {
			return err
		}
		w.mutex.Lock()
		w.region, w.last, w.filed = nil, nil, nil
		w.mutex.Unlock()
	}
	return w.Write(document, key)
}

// show writes the document to standard output: in place, or after the one before.
func (w *watched) show(document any) error {
	switch {
	case w.region != nil:
		return w.redraw(document)
	case w.last != nil && w.format == "yaml":
		fmt.Fprintln(w.Stdout, "---")
	case w.last != nil && w.format != "json":
		fmt.Fprintln(w.Stdout)
	}
	return expression.Write(w.Stdout, w.format, document, w.Style)
}

// redraw writes the document in place, as many of its lines as fit.
func (w *watched) redraw(document any) error {
	file, _ := terminal.Of(w.Stdout)
	width, height := terminal.Size(file)
	style := w.Style
	style.Width = width - 1
	var text bytes.Buffer
	if err := expression.Write(&text, w.format, document, style); err != nil {
		return err
	}
	w.mutex.Lock()
	w.lines = screen.Fit(text.String(), height-1, style)
	defer w.mutex.Unlock()
	return w.region.Draw(w.lines, "", width)
}

// report writes an error that does not end the command: on a terminal above the document.
func (w *watched) report(text string) {
	text = words.Line(text, terminal.MaxLine) + "\n"
	if w.region == nil {
		fmt.Fprint(w.stderr, text)
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	file, _ := terminal.Of(w.Stdout)
	width, _ := terminal.Size(file)
	_ = w.region.Draw(w.lines, text, width) // the next document is drawn nevertheless
}
