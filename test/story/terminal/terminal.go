// Package terminal answers: how is a story shown on a terminal, on a real cluster?
//
// Each step is printed with the time since the start, each command as an administrator
// would enter it, with its output.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/story"
)

// Exit codes of oc-preflight.
const (
	Ready   = 0
	Failed  = 1
	Blocked = 3
)

const (
	// timeout bounds the repetitions of a program; interval is the time between two.
	timeout  = time.Minute
	interval = 500 * time.Millisecond
)

// Terminal shows one story.
type Terminal struct {
	// Root is the root of the repository, and Directory has the files of the story.
	Root, Directory string
	// Cluster has the objects of the story, and Monitoring is its monitoring.
	Cluster    *cluster.Cluster
	Monitoring *prometheus.Prometheus

	out       io.Writer
	start     time.Time
	temporary bool
}

// Open starts a cluster and its monitoring, and prepares the story on it. If keep is not
// empty, Close does not stop the cluster, whose files are in this directory. The working
// directory must be the root of the repository.
func Open(ctx context.Context, out io.Writer, keep string) (*Terminal, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	t := &Terminal{Root: root, Directory: keep, out: out, start: time.Now(), temporary: keep == ""}
	options := []cluster.Option{cluster.Progress(func(step string, _ time.Duration) { t.Step("  " + step) })}
	if keep != "" {
		options = append(options, cluster.Standing())
	} else if t.Directory, err = os.MkdirTemp("", "preflight-demo-"); err != nil {
		return nil, err
	}
	t.Step("starting a Kubernetes cluster with the resources of OpenShift, and a Prometheus as its monitoring")
	if err := t.startCluster(ctx, options); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	if _, err := story.Prepare(ctx, t.Cluster, root, t.Directory, t.Step); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
}

// startCluster starts the cluster and its monitoring.
func (t *Terminal) startCluster(ctx context.Context, options []cluster.Option) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		t.Cluster, err = cluster.Start(ctx, filepath.Join(t.Directory, "cluster"), options...)
		return err
	})
	group.Go(func() error {
		files, err := os.MkdirTemp(t.Directory, "prometheus-")
		if err != nil {
			return err
		}
		t.Monitoring, err = prometheus.Start(ctx, files)
		return err
	})
	return group.Wait()
}

// Close stops the monitoring and, unless it is to be kept, the cluster, and removes its files.
func (t *Terminal) Close(ctx context.Context) error {
	if t.Monitoring != nil {
		t.Monitoring.Stop()
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

// Title shows the title of a part.
func (t *Terminal) Title(text string) { fmt.Fprintf(t.out, "\n## %s\n\n", text) }

// Follow performs the remedies of the story.
func (t *Terminal) Follow(ctx context.Context) error {
	remedies, err := story.Remedies(t.Directory)
	if err != nil {
		return err
	}
	t.Title("The administrator follows the remedies of the report")
	for _, remedy := range remedies {
		fmt.Fprintln(t.out, "# "+remedy.Why)
		if err := t.Run(ctx, Ready, remedy.Command...); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a program of bin/, which must end with this exit code.
func (t *Terminal) Run(ctx context.Context, code int, command ...string) error {
	fmt.Fprintln(t.out, "$ "+quoted(command))
	got, err := t.execute(ctx, t.out, command)
	if err == nil && got != code {
		err = fmt.Errorf("%q ended with exit code %d, want %d", quoted(command), got, code)
	}
	return err
}

// Await repeats a program of bin/, without its output, until it ends with this exit code.
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

// execute runs a program of bin/ and returns its exit code.
func (t *Terminal) execute(ctx context.Context, out io.Writer, command []string) (int, error) {
	program := exec.CommandContext(ctx, filepath.Join(t.Root, "bin", command[0]), command[1:]...) //nolint:gosec // a program of the repository
	program.Env = append(os.Environ(), "KUBECONFIG="+t.Cluster.Kubeconfig)
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
