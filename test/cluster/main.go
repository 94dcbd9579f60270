package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// Main is the TestMain of a package that needs a cluster: it starts one, hands
// it to use, runs the tests, ends the cluster whatever happened, interrupts
// included, and exits. The components' logs are kept when a test failed.
//
// Where none with a node can be started, PREFLIGHT_TEST_KUBECONFIG and
// PREFLIGHT_TEST_REGISTRY name one to use instead, as Existing wants them.
//
//	func TestMain(m *testing.M) {
//		cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
//	}
func Main(m *testing.M, use func(*Cluster), options ...Option) {
	os.Exit(testOn(m, use, options))
}

func testOn(m *testing.M, use func(*Cluster), options []Option) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", "preflight-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := startOrUse(ctx, dir, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(fmt.Errorf("cannot have a cluster: %w", err), tidy(dir, 1)))
		return 1
	}
	use(c)
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	code := 130 // as a shell reports an interrupt
	select {
	case code = <-ended:
	case <-ctx.Done():
	}
	if err := errors.Join(c.Stop(ctx), tidy(dir, code)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// startOrUse does not give a test that wants a control plane alone a cluster
// whose node would run its pods.
func startOrUse(ctx context.Context, dir string, options []Option) (*Cluster, error) {
	wanted := &plan{}
	for _, option := range options {
		option(wanted)
	}
	kubeconfig := os.Getenv("PREFLIGHT_TEST_KUBECONFIG")
	if kubeconfig != "" && !wanted.controlPlaneOnly {
		return Existing(ctx, kubeconfig, os.Getenv("PREFLIGHT_TEST_REGISTRY"))
	}
	c, err := Start(ctx, dir, options...)
	if errors.Is(err, errUnsupported) && !wanted.controlPlaneOnly {
		err = fmt.Errorf("%w; or name a Kubernetes 1.30 or newer with PREFLIGHT_TEST_KUBECONFIG, "+
			"and a registry that it pulls from with PREFLIGHT_TEST_REGISTRY", err)
	}
	return c, err
}

// tidy removes the logs of the cluster, or says where they are.
func tidy(dir string, code int) error {
	logs, err := os.ReadDir(filepath.Join(dir, "logs"))
	if code == 0 || err != nil || len(logs) == 0 {
		return os.RemoveAll(dir)
	}
	fmt.Fprintln(os.Stderr, "the logs of the cluster are in", filepath.Join(dir, "logs"))
	return nil
}
