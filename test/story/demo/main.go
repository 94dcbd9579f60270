// Demo tells the story on a real cluster: a preflight that is Blocked, the
// remedies it names, and the preflight that is Ready after them.
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

// The exit codes of oc-preflight that the story meets.
const (
	ready   = 0
	blocked = 3
)

func main() {
	keep := flag.String("keep", "", "leave the cluster running in this directory")
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
		defer os.RemoveAll(directory) //nolint:errcheck // what is left is in the system's own temporary directory
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
	if err := d.tell(ctx, directory); err != nil {
		return err
	}
	if keep != "" {
		fmt.Printf("\nThe cluster is still running:\n  export KUBECONFIG=%s\n  go run ./test/cluster/local-cluster down --dir %s\n", d.cluster.Kubeconfig, d.cluster.Dir)
	}
	return nil
}

// demo is one telling.
type demo struct {
	root    string
	start   time.Time
	cluster *cluster.Cluster
}

func (d demo) step(text string) {
	fmt.Printf("%5.1fs  %s\n", time.Since(d.start).Seconds(), text)
}

func (d demo) clusterStep(step string, _ time.Duration) { d.step("  " + step) }

func (d demo) tell(ctx context.Context, directory string) error {
	if _, err := story.Tell(ctx, d.cluster, d.root, directory, d.step); err != nil {
		return err
	}
	d.step("starting a Prometheus, which is the cluster's monitoring")
	files, err := os.MkdirTemp(directory, "prometheus-")
	if err != nil {
		return err
	}
	monitoring, err := prometheus.Start(ctx, files)
	if err != nil {
		return err
	}
	defer monitoring.Stop()
	ask := []string{"oc-preflight", "run", "--to-latest", "--prometheus", monitoring.URL}
	d.title("Is it safe to go to the newest available update?")
	if err := d.expect(ctx, blocked, ask); err != nil {
		return err
	}
	remedies, err := story.Remedies(directory)
	if err != nil {
		return err
	}
	d.title("The administrator puts right what the report names")
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

// expect runs a program of bin/ on our own terminal, as somebody would type it.
func (d demo) expect(ctx context.Context, code int, command []string) error {
	fmt.Println("$ " + quoted(command))
	program := exec.CommandContext(ctx, filepath.Join(d.root, "bin", command[0]), command[1:]...) //nolint:gosec // our own programs
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

// quoted is how a command is typed.
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
