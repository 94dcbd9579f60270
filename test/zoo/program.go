package zoo

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/build"
)

// Result is the exit code and the output of a program.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Command returns a command that runs oc-preflight on the cluster of the zoo.
func (z *Zoo) Command(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), z.Program(tb), args...) //nolint:gosec // the program under test
	command.Env = append(os.Environ(), "KUBECONFIG="+z.cluster.Kubeconfig)
	return command
}

// Call runs oc-preflight and returns its result.
func (z *Zoo) Call(tb testing.TB, args ...string) Result {
	tb.Helper()
	return Run(tb, z.Command(tb, args...))
}

// Run runs a program, which may end with any exit code, and returns its result.
func Run(tb testing.TB, command *exec.Cmd) Result {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return Result{Code: command.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// Kubectl runs kubectl, which must succeed, and returns its output.
func (z *Zoo) Kubectl(tb testing.TB, args ...string) string {
	tb.Helper()
	path, err := build.Program("kubectl")
	if err != nil {
		tb.Fatal(err)
	}
	command := exec.CommandContext(tb.Context(), path, args...) //nolint:gosec // a pinned program
	command.Env = append(os.Environ(), "KUBECONFIG="+z.cluster.Kubeconfig)
	output, err := command.CombinedOutput()
	if err != nil {
		tb.Fatalf("kubectl %s: %v\n%s", args[0], err, output)
	}
	return string(output)
}

// Client returns a client of the cluster.
func (z *Zoo) Client(tb testing.TB) kubernetes.Interface {
	tb.Helper()
	client, err := kubernetes.NewForConfig(z.cluster.Config)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// ExpectNothingLeft fails the test if an object of a run remains in the cluster.
func (z *Zoo) ExpectNothingLeft(tb testing.TB) {
	tb.Helper()
	if left := z.Left(tb, ""); len(left) > 0 {
		tb.Errorf("objects of runs remain:\n%s", strings.Join(left, "\n"))
	}
}
