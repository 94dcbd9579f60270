package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
)

// Main is the TestMain of a package that needs a cluster: it starts one, passes
// it to use, runs the tests, stops the cluster, also after a failure or an
// interrupt, and exits. The components' logs are kept if a test failed. No
// cluster is started if only fuzz targets run (-run '^$').
//
// If no cluster with a node can be started, PREFLIGHT_TEST_KUBECONFIG and
// PREFLIGHT_TEST_REGISTRY can name one, see Existing.
//
//	func TestMain(m *testing.M) {
//		cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
//	}
func Main(m *testing.M, use func(*Cluster), options ...Option) {
	MainWith(m, Wanted{Use: use, Options: options})
}

// Wanted is one cluster of a package that needs several.
type Wanted struct {
	// Use is called with the cluster before the tests run.
	Use     func(*Cluster)
	Options []Option
	// Done is called after the tests, and ends what they share beside the cluster; optional.
	Done func() error
}

// MainWith is Main for several clusters, which are started in parallel.
func MainWith(m *testing.M, wanted ...Wanted) { os.Exit(testOn(m, wanted)) }

func testOn(m *testing.M, wanted []Wanted) int {
	flag.Parse()
	if onlyFuzzing() {
		return m.Run()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	homes := make([]home, len(wanted))
	var group errgroup.Group
	for i := range wanted {
		group.Go(func() error { return homes[i].settle(ctx, wanted[i].Options) })
	}
	code, err := 1, group.Wait()
	if err == nil {
		for i := range wanted {
			wanted[i].Use(homes[i].cluster)
		}
		code, err = run(ctx, m, homes)
		for i := range wanted {
			if wanted[i].Done != nil {
				err = errors.Join(err, wanted[i].Done())
			}
		}
	}
	for i := range homes {
		err = errors.Join(err, homes[i].leave(ctx, code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// onlyFuzzing reports whether only a fuzz target runs. Fuzz targets need no
// cluster, and each of their workers would start one.
func onlyFuzzing() bool {
	if flag.Lookup("test.fuzzworker").Value.String() == "true" {
		return true
	}
	return flag.Lookup("test.fuzz").Value.String() != "" && flag.Lookup("test.run").Value.String() == "^$"
}

// run runs the tests until they end, ctx does, or a component of a cluster does: tests
// would wait for it until their time limits.
func run(ctx context.Context, m *testing.M, homes []home) (code int, err error) {
	ended, failed := make(chan int, 1), make(chan error, len(homes))
	for i := range homes {
		go func() { failed <- <-homes[i].cluster.Failed() }()
	}
	go func() { ended <- m.Run() }()
	select {
	case code := <-ended:
		return code, nil
	case err := <-failed:
		return 1, fmt.Errorf("test cluster: %w", err)
	case <-ctx.Done():
		return 130, nil // the exit code that a shell reports for an interrupt
	}
}

// home is the directory of a cluster during the tests, or a shared control plane.
type home struct {
	dir     string
	cluster *Cluster
	// giveBack is not nil if the cluster is shared.
	giveBack func() error
}

func (h *home) settle(ctx context.Context, options []Option) error {
	var err error
	if h.cluster, h.giveBack, err = Borrow(ctx, options...); err != nil || h.cluster != nil {
		return err
	}
	if h.dir, err = os.MkdirTemp("", "preflight-cluster-"); err != nil {
		return err
	}
	if h.cluster, err = startOrUse(ctx, h.dir, options); err != nil {
		return fmt.Errorf("test cluster: %w", err)
	}
	return nil
}

// leave stops the cluster if it was started.
func (h *home) leave(ctx context.Context, code int) error {
	if h.giveBack != nil {
		if code != 0 {
			printLogs(h.cluster.Dir)
		}
		return h.giveBack()
	}
	var err error
	if h.cluster != nil {
		err = h.cluster.Stop(ctx)
	}
	if h.dir == "" {
		return err
	}
	return errors.Join(err, tidy(h.dir, code))
}

// startOrUse starts a cluster or uses an existing one. It never uses an existing
// one for tests that want only a control plane, since its nodes would run their
// pods, or that kill its components.
func startOrUse(ctx context.Context, dir string, options []Option) (*Cluster, error) {
	wanted := &plan{}
	for _, option := range options {
		option(wanted)
	}
	kubeconfig := os.Getenv("PREFLIGHT_TEST_KUBECONFIG")
	if kubeconfig != "" && !wanted.controlPlaneOnly && !wanted.exclusive {
		return Existing(ctx, kubeconfig, os.Getenv("PREFLIGHT_TEST_REGISTRY"))
	}
	c, err := Start(ctx, dir, options...)
	if errors.Is(err, errUnsupported) && !wanted.controlPlaneOnly && !wanted.exclusive {
		err = fmt.Errorf("%w; or name a Kubernetes 1.30 or newer with PREFLIGHT_TEST_KUBECONFIG, "+
			"and a registry that it pulls from with PREFLIGHT_TEST_REGISTRY", err)
	}
	return c, err
}

// tidy removes the logs of the cluster, or prints their path if a test failed.
func tidy(dir string, code int) error {
	logs, err := os.ReadDir(filepath.Join(dir, "logs"))
	if code == 0 || err != nil || len(logs) == 0 {
		return os.RemoveAll(dir)
	}
	printLogs(dir)
	return nil
}

func printLogs(dir string) {
	fmt.Fprintln(os.Stderr, "the logs of the cluster are in", filepath.Join(dir, "logs"))
}
