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
	c, err := Start(ctx, dir, options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start a local cluster:", err)
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

// tidy removes the logs of the cluster, or says where they are.
func tidy(dir string, code int) error {
	if code == 0 {
		return os.RemoveAll(dir)
	}
	fmt.Fprintln(os.Stderr, "the logs of the cluster are in", filepath.Join(dir, "logs"))
	return nil
}
