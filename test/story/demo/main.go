// Demo shows a preflight on a real cluster that is Blocked, the remedies that its
// report names, and the preflight that is Ready after them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/story"
)

// Exit codes of oc-preflight.
const (
	ready   = 0
	blocked = 3
)

func main() {
	keep := flag.String("keep", "", "keep the cluster running in this directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep string) (err error) {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	directory, options := keep, []cluster.Option{cluster.Standing()}
	if keep == "" {
		if directory, err = os.MkdirTemp("", "preflight-demo-"); err != nil {
			return err
		}
		defer os.RemoveAll(directory) //nolint:errcheck // a temporary directory
		options = nil
	}
	d := demo{root: root, start: time.Now()}
	d.step("starting a Kubernetes cluster with the resources of OpenShift")
	d.cluster, err = cluster.Start(ctx, filepath.Join(directory, "cluster"), append(options, cluster.Progress(d.clusterStep))...)
	if err != nil {
		return err
	}
	if keep == "" {
		defer func() { err = errors.Join(err, d.cluster.Stop(ctx)) }()
	}
	monitoring, err := d.show(ctx, directory)
	if err != nil {
		return err
	}
	defer monitoring.Stop()
	if keep != "" {
		d.wait(ctx, monitoring)
	}
	return nil
}

// wait keeps Prometheus, which ends with this process, until an interrupt. The cluster
// outlives it.
func (d demo) wait(ctx context.Context, monitoring *prometheus.Prometheus) {
	fmt.Printf(`
The cluster and its Prometheus are running. In another terminal:
  export KUBECONFIG=%[1]s
  bin/oc-preflight run --to-latest --prometheus %[2]s
Ctrl-C stops Prometheus. To stop the cluster then:
  go run ./test/cluster/local-cluster down --dir %[3]s
`, d.cluster.Kubeconfig, monitoring.URL, d.cluster.Dir)
	<-ctx.Done()
}

// demo is one run of the demo.
type demo struct {
	root    string
	start   time.Time
	cluster *cluster.Cluster
}

func (d demo) step(text string) {
	fmt.Printf("%5.1fs  %s\n", time.Since(d.start).Seconds(), text)
}

func (d demo) clusterStep(step string, _ time.Duration) { d.step("  " + step) }

// show prepares the cluster, performs the story and returns the Prometheus that it started.
func (d demo) show(ctx context.Context, directory string) (*prometheus.Prometheus, error) {
	if _, err := story.Prepare(ctx, d.cluster, d.root, directory, d.step); err != nil {
		return nil, err
	}
	d.step("starting a Prometheus as the cluster's monitoring")
	files, err := os.MkdirTemp(directory, "prometheus-")
	if err != nil {
		return nil, err
	}
	monitoring, err := prometheus.Start(ctx, files)
	if err != nil {
		return nil, err
	}
	if err := d.perform(ctx, directory, monitoring.URL); err != nil {
		monitoring.Stop()
		return nil, err
	}
	return monitoring, nil
}

// perform runs the commands of the story.
func (d demo) perform(ctx context.Context, directory, monitoring string) error {
	ask := []string{"oc-preflight", "run", "--to-latest", "--prometheus", monitoring}
	d.title("Is it safe to update to the newest available release?")
	if err := d.expect(ctx, blocked, ask); err != nil {
		return err
	}
	remedies, err := story.Remedies(directory)
	if err != nil {
		return err
	}
	d.title("The administrator follows the remedies of the report")
	for _, remedy := range remedies {
		fmt.Println("# " + remedy.Why)
		if err := d.expect(ctx, ready, remedy.Command); err != nil {
			return err
		}
	}
	d.title("And now?")
	if err := d.expect(ctx, ready, ask); err != nil {
		return err
	}
	fmt.Println()
	d.step("done: Blocked with causes and remedies, then Ready")
	return nil
}

func (demo) title(text string) { fmt.Printf("\n## %s\n\n", text) }

// expect runs a program of bin/ on the terminal of this process.
func (d demo) expect(ctx context.Context, code int, command []string) error {
	fmt.Println("$ " + quoted(command))
	program := exec.CommandContext(ctx, filepath.Join(d.root, "bin", command[0]), command[1:]...) //nolint:gosec // a program of the repository
	program.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.Kubeconfig)
	program.Stdout, program.Stderr = os.Stdout, os.Stderr
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	err := program.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if got := program.ProcessState.ExitCode(); got != code {
		return fmt.Errorf("%q ended with exit code %d, want %d", quoted(command), got, code)
	}
	return nil
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
