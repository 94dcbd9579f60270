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

// Main is the TestMain of a package that needs a cluster: it starts one, hands
// it to use, runs the tests, ends the cluster whatever happened, interrupts
// included, and exits. The components' logs are kept when a test failed. Fuzz
// targets get no cluster when they run alone (-run '^$').
//
// Where none with a node can be started, PREFLIGHT_TEST_KUBECONFIG and
// PREFLIGHT_TEST_REGISTRY name one to use instead, as Existing wants them.
//
//	func TestMain(m *testing.M) {
//		cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
//	}
func Main(m *testing.M, use func(*Cluster), options ...Option) {
	MainWith(m, Wanted{Use: use, Options: options})
}

// Wanted is one cluster of a package that needs several.
type Wanted struct {
	// Use is handed the cluster before the tests run.
	Use     func(*Cluster)
	Options []Option
}

// MainWith is Main for several clusters, which start side by side.
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
		code = run(ctx, m)
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

// onlyFuzzing says that no test runs. Fuzz targets read text, and their workers
// would all start clusters of their own.
func onlyFuzzing() bool {
	if flag.Lookup("test.fuzzworker").Value.String() == "true" {
		return true
	}
	return flag.Lookup("test.fuzz").Value.String() != "" && flag.Lookup("test.run").Value.String() == "^$"
}

// run runs the tests until they end, or somebody interrupts them.
func run(ctx context.Context, m *testing.M) int {
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
		return 130 // as a shell reports an interrupt
	}
}

// home is where a cluster lives while tests run.
type home struct {
	dir     string
	cluster *Cluster
}

func (h *home) settle(ctx context.Context, options []Option) error {
	var err error
	if h.dir, err = os.MkdirTemp("", "preflight-cluster-"); err != nil {
		return err
	}
	if h.cluster, err = startOrUse(ctx, h.dir, options); err != nil {
		return fmt.Errorf("cannot have a cluster: %w", err)
	}
	return nil
}

// leave ends the cluster, if it was ever there.
func (h *home) leave(ctx context.Context, code int) error {
	var err error
	if h.cluster != nil {
		err = h.cluster.Stop(ctx)
	}
	if h.dir == "" {
		return err
	}
	return errors.Join(err, tidy(h.dir, code))
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
