// Package terminal answers: how is a story shown on a terminal, on a real cluster?
//
// Each step is printed with the time since the start, each command as an administrator
// would enter it, with its output.
package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/objects"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/story"
)

// preflight is the name of the program in commands.
const preflight = "oc-preflight"

const (
	// timeout bounds the repetitions of a program; interval is the time between two.
	timeout  = time.Minute
	interval = 500 * time.Millisecond
)

// Terminal shows one story.
type Terminal struct {
	// Root is the root of the repository, and Directory has the files of the story.
	Root, Directory string
	// Cluster has the objects of the story, and Monitoring is the URL of its monitoring.
	Cluster    *cluster.Cluster
	Monitoring string
	// Release is the pull spec of the release that Prepare has made.
	Release string
	// Preflight is the path of oc-preflight.
	Preflight string

	out   io.Writer
	start time.Time
	// monitoring and temporary are of a cluster that Open has started.
	monitoring *httptest.Server
	temporary  bool
}

// New returns a terminal for a story whose files are in a directory. Its cluster and
// monitoring are to be set.
func New(out io.Writer, directory string) (*Terminal, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	return &Terminal{Root: root, Directory: directory, Preflight: filepath.Join(build.Bin(root), preflight), out: out, start: time.Now()}, nil
}

// Open starts a cluster and its monitoring, and prepares the story on it. If keep is not
// empty, Close does not stop the cluster, whose files are in this directory.
func Open(ctx context.Context, out io.Writer, keep string) (*Terminal, error) {
	t, err := New(out, keep)
	if err != nil {
		return nil, err
	}
	if err := t.open(ctx); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
}

func (t *Terminal) open(ctx context.Context) error {
	options := []cluster.Option{cluster.Progress(func(step string, _ time.Duration) { t.Step("  " + step) })}
	if err := t.makeDirectory(); err != nil {
		return err
	}
	if !t.temporary {
		options = append(options, cluster.Standing())
	}
	t.Step("starting a Kubernetes cluster with the resources of OpenShift, and monitoring without alerts")
	if err := t.startCluster(ctx, options); err != nil {
		return err
	}
	return t.Prepare(ctx)
}

// makeDirectory makes the directory of a cluster that is kept, or a temporary one. The
// programs run in another working directory.
func (t *Terminal) makeDirectory() (err error) {
	t.temporary = t.Directory == ""
	if t.temporary {
		t.Directory, err = os.MkdirTemp("", "preflight-demo-")
		return err
	}
	if t.Directory, err = filepath.Abs(t.Directory); err != nil {
		return err
	}
	return os.MkdirAll(t.Directory, 0o750)
}

// startCluster starts the cluster. Its monitoring is what Prometheus responds where no alert fires,
// since the build of Prometheus would take a tenth of the time before the first demo.
func (t *Terminal) startCluster(ctx context.Context, options []cluster.Option) (err error) {
	t.monitoring = httptest.NewServer(prometheus.WithoutAlerts())
	t.Monitoring = t.monitoring.URL
	t.Cluster, err = cluster.Start(ctx, filepath.Join(t.Directory, "cluster"), options...)
	return err
}

// Prepare prepares the story on the cluster.
func (t *Terminal) Prepare(ctx context.Context) (err error) {
	t.Release, err = story.Prepare(ctx, t.Cluster, t.Root, t.Directory, t.Step)
	return err
}

// Close stops the monitoring and, unless it is to be kept, the cluster, and removes its files.
func (t *Terminal) Close(ctx context.Context) error {
	if t.monitoring != nil {
		t.monitoring.Close()
	}
	if !t.temporary {
		return nil
	}
	var stopped error
	if t.Cluster != nil {
		stopped = t.Cluster.Stop(ctx)
	}
	return errors.Join(stopped, os.RemoveAll(t.Directory))
}

// Step shows what happens next.
func (t *Terminal) Step(text string) {
	fmt.Fprintf(t.out, "%5.1fs  %s\n", time.Since(t.start).Seconds(), text)
}

// Show shows a text.
func (t *Terminal) Show(text string) { fmt.Fprint(t.out, text) }

// Title shows the title of a part.
func (t *Terminal) Title(text string) { fmt.Fprintf(t.out, "\n## %s\n\n", text) }

// Follow performs the remedies of the story.
func (t *Terminal) Follow(ctx context.Context) error {
	remedies, err := story.Remedies(t.Directory)
	if err != nil {
		return err
	}
	w, err := objects.New(t.Cluster.Config)
	if err != nil {
		return err
	}
	t.Title("The administrator follows the remedies of the report (the demo has no oc: it makes its requests itself)")
	for _, remedy := range remedies {
		fmt.Fprintln(t.out, "# "+remedy.Why)
		if remedy.Write == nil {
			err = t.Run(ctx, exit.Ready, remedy.Command...)
		} else {
			fmt.Fprintln(t.out, "$ "+quoted(remedy.Command))
			err = remedy.Write(ctx, w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Run runs oc-preflight or a program of bin/, which must end with this exit code.
func (t *Terminal) Run(ctx context.Context, code int, command ...string) error {
	fmt.Fprintln(t.out, "$ "+quoted(command))
	got, err := t.execute(ctx, t.out, command)
	if err == nil && got != code {
		err = fmt.Errorf("%q ended with exit code %d, want %d", quoted(command), got, code)
	}
	return err
}

// RunLines runs a program as Run does, and shows the lines of its output that begin with a text, of which there has to
// be one.
func (t *Terminal) RunLines(ctx context.Context, code int, begin string, command ...string) error {
	fmt.Fprintf(t.out, "$ %s | grep ^%s\n", quoted(command), begin)
	var all bytes.Buffer
	got, err := t.execute(ctx, &all, command)
	if err != nil {
		return err
	}
	shown := 0
	for line := range strings.Lines(all.String()) {
		if strings.HasPrefix(line, begin) {
			t.Show(line)
			shown++
		}
	}
	if got != code || shown == 0 {
		return fmt.Errorf("%q ended with exit code %d, want %d, with %d lines that begin with %q:\n%s", quoted(command), got, code, shown, begin,
			&all)
	}
	return nil
}

// Await repeats a program, without its output, until it ends with this exit code.
func (t *Terminal) Await(ctx context.Context, code int, command ...string) error {
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		got, err := t.execute(ctx, io.Discard, command)
		return got == code, err
	})
	if err != nil {
		return fmt.Errorf("%q did not end with exit code %d: %w", quoted(command), code, err)
	}
	return nil
}

// execute runs a program in the root of the repository, and returns its exit code.
func (t *Terminal) execute(ctx context.Context, out io.Writer, command []string) (int, error) {
	path := filepath.Join(build.Bin(t.Root), command[0])
	if command[0] == preflight {
		path = t.Preflight
	}
	program := exec.CommandContext(ctx, path, command[1:]...) //nolint:gosec // a program of the repository
	program.Dir, program.Env = t.Root, append(os.Environ(), "KUBECONFIG="+t.Cluster.Kubeconfig)
	program.Stdout, program.Stderr = out, out
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	err := program.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return program.ProcessState.ExitCode(), nil
}

// quoted returns a command line for a shell.
func quoted(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = word
		if strings.ContainsAny(word, ` {}"`) {
			words[i] = "'" + word + "'"
		}
	}
	return strings.Join(words, " ")
}
