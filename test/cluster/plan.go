package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// stateFile marks a directory as a cluster's, from before anything is started.
const stateFile = "cluster.json"

// plan is what one cluster is made of, decided before anything is started.
type plan struct {
	cluster *Cluster

	controlPlaneOnly bool
	standing         bool
	featureSet       string
	report           func(step string, took time.Duration)
	reporting        sync.Mutex

	root     string   // of this module's source tree
	bin      string   // the binaries
	crds     []string // the manifests of the OpenShift resources
	network  subnets
	etcd     string // host:port
	api      string // host:port
	kubelet  int    // port on the gateway
	fail     context.CancelCauseFunc
	identity *authority
}

func newPlan(ctx context.Context, dir string, options []Option) (*plan, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &plan{cluster: &Cluster{Dir: dir}, featureSet: "Default", report: func(string, time.Duration) {}}
	for _, option := range options {
		option(p)
	}
	if runtime.GOOS != "linux" {
		return nil, errors.New("a local cluster needs Linux")
	}
	if !p.controlPlaneOnly && os.Geteuid() != 0 {
		return nil, errors.New("a local cluster with a node needs root: run this as root, for example with sudo")
	}
	if p.root, err = sourceRoot(); err != nil {
		return nil, err
	}
	p.bin = filepath.Join(p.root, "bin")
	if err := p.checkTools(); err != nil {
		return nil, err
	}
	if p.crds, err = p.crdFiles(ctx); err != nil {
		return nil, fmt.Errorf("cannot find the OpenShift CRDs: %w", err)
	}
	return p, nil
}

// prepare clears what a crashed predecessor left, claims what must be this
// cluster's alone, and writes all files that the components read.
func (p *plan) prepare(ctx context.Context) error {
	if err := p.takeDir(ctx); err != nil {
		return err
	}
	if !p.controlPlaneOnly {
		claim, err := newClaim(ctx, p.cluster.Dir)
		if err != nil {
			return fmt.Errorf("cannot claim a place for the cluster: %w", err)
		}
		p.cluster.claim = claim
		p.network = claim.subnets()
	}
	err := p.furnish(ctx)
	if err != nil {
		return errors.Join(err, p.cluster.Stop(ctx))
	}
	return nil
}

func (p *plan) furnish(ctx context.Context) error {
	if err := p.choosePorts(); err != nil {
		return err
	}
	if err := p.writeIdentities(); err != nil {
		return err
	}
	if p.controlPlaneOnly {
		return nil
	}
	if err := p.makeNodeDir(); err != nil {
		return err
	}
	return p.connect(ctx)
}

// takeDir makes the directory this cluster's, or says why it cannot be.
func (p *plan) takeDir(ctx context.Context) error {
	dir := p.cluster.Dir
	if _, err := Open(dir); err == nil {
		return fmt.Errorf("a cluster is running in %q already", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if err := Remove(ctx, dir); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%q is not empty: a cluster wants a directory of its own", dir)
		} else if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o750); err != nil {
		return err
	}
	return p.cluster.save()
}

// choosePorts finds ports that nobody listens on. Another process may take one
// before its component does; that component then says so and Start fails.
func (p *plan) choosePorts() error {
	var listeners []net.Listener
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close() // the port is all that was wanted
		}
	}()
	var addresses []string
	for range 5 {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a loopback port does not block
		if err != nil {
			return fmt.Errorf("cannot find a free port: %w", err)
		}
		listeners = append(listeners, listener)
		addresses = append(addresses, listener.Addr().String())
	}
	p.etcd, p.api = addresses[0], addresses[1]
	if !p.controlPlaneOnly {
		p.cluster.Registry = addresses[3]
		p.kubelet = listeners[4].Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on tcp
	}
	return nil
}

// done reports a step that began at start.
func (p *plan) done(step string, start time.Time) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.report(step, time.Since(start))
}

// sourceRoot finds this module's tree from the working directory, which is
// below it in every test.
func sourceRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "tools", "kubernetes", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%q is not inside the source tree of update-preflight", start)
		}
	}
}

// checkTools names everything that is missing at once.
func (p *plan) checkTools() error {
	var missing []string
	for _, name := range p.tools() {
		if _, err := os.Stat(filepath.Join(p.bin, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s is not in %q: run `make tools`", strings.Join(missing, ", "), p.bin)
	}
	return nil
}

func (p *plan) tools() []string {
	names := []string{"server", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if p.controlPlaneOnly {
		return names
	}
	return append(names, "kubelet", "containerd", "containerd-shim-runc-v2", "bridge", "host-local", "loopback", "crane", "pause")
}

// portOf is for the addresses that choosePorts made.
func portOf(address string) string {
	return address[strings.LastIndex(address, ":")+1:]
}
