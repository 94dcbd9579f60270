package flagset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/screen"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/words"
)

// The bounds of --interval, and the shortest time between two documents where changes are
// watched.
const (
	leastInterval = 2 * time.Second
	mostInterval  = time.Hour
	pause         = time.Second
)

// Watching are --watch and --interval.
type Watching struct {
	Watch    bool
	interval time.Duration
}

// Add adds the flags; interval is the default, and end what ends the command beside Ctrl-C.
func (f *Watching) Add(c *cobra.Command, interval time.Duration, end string) {
	f.interval = interval
	c.Flags().BoolVarP(&f.Watch, "watch", "w", false, "Show it again whenever it changes, until "+end+": in place on a terminal, otherwise as a new document.")
	c.Flags().DurationVar(&f.interval, "interval", interval, fmt.Sprintf("With --watch: time after which the cluster is read again, %s to %s.", leastInterval, mostInterval))
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "watch", "interval")
}

// Check rejects an interval outside of the limits that the help of --interval states.
func (f *Watching) Check() error {
	if f.interval < leastInterval || f.interval > mostInterval {
		return fmt.Errorf("--interval=%s: it must be %s to %s", f.interval, leastInterval, mostInterval)
	}
	return nil
}

// Within is the time until another sample that is needed at once: at most the interval with --watch.
func (f *Watching) Within(most time.Duration) time.Duration {
	if f.Watch {
		return min(most, f.interval)
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
			shown.report(fmt.Sprintf("%s; read again every %s", err, f.interval))
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
			shown.report(fmt.Sprintf("%s; read again in %s", err, f.interval))
		}
	}
	return nil
}

// next waits for the next change or the end of the interval; false when ctx is done.
func (f *Watching) next(ctx context.Context, changed <-chan struct{}) bool {
	if !awaitChange(ctx, nil, pause) {
		return false
	}
	return awaitChange(ctx, changed, f.interval-pause)
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
	// last and filed are what standard output and the files have, without times.
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
