package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/test/build"
)

// stateFile marks the directory of a cluster. It is written before anything is
// started.
const stateFile = "cluster.json"

const defaultFeatureSet = "Default"

// errUnsupported is returned if the machine or the user cannot run a node.
var errUnsupported = errors.New("a local cluster needs root on Linux")

// plan has everything that is decided before a cluster is started.
type plan struct {
	cluster *Cluster

	controlPlaneOnly bool
	exclusive        bool
	simulated        int // nodes
	controllerRate   int // 0: the default
	controllerBurst  int
	quickScheduler   bool
	standing         bool
	featureSet       string
	furtherCRDs      []string
	furtherAPIs      map[string][]string // as those of crdResources
	report           func(step string, took time.Duration)
	reporting        sync.Mutex

	root      string   // of this module's source tree
	bin       string   // the binaries
	crds      []string // the manifests of the OpenShift resources
	stored    bool     // whether etcd had what a start creates before the API server started
	network   subnets
	etcd      string // host:port
	api       string // host:port
	kubelet   string // port on the gateway
	kwok      string // host:port
	scheduler string // host:port
	identity  *authority

	// fail ends the current start or revival.
	fail context.CancelCauseFunc
	// reviving is held during a revival.
	reviving  sync.Mutex
	mutex     sync.Mutex
	processes map[string]process // by the name of the component
	// crashed are the components that Crash has ended, and stopped is true for all.
	crashed map[string]bool
	stopped bool
}

func newPlan(ctx context.Context, dir string, options []Option) (*plan, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &plan{
		cluster: &Cluster{Dir: dir, failed: make(chan error, 1)}, featureSet: defaultFeatureSet,
		processes: map[string]process{}, crashed: map[string]bool{},
	}
	for _, option := range options {
		option(p)
	}
	if !p.standing {
		p.cluster.Starter = os.Getpid()
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%w: not Linux", errUnsupported)
	}
	if !p.controlPlaneOnly && os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: not root", errUnsupported)
	}
	if p.root, err = build.Root(); err != nil {
		return nil, err
	}
	p.bin = build.Bin(p.root)
	if err := p.checkPrograms(); err != nil {
		return nil, err
	}
	if p.crds, err = p.crdFiles(ctx, crdResources()); err != nil {
		return nil, err
	}
	return p, nil
}

// prepare removes a crashed predecessor, claims a place on the machine, and writes
// the files that the components read.
func (p *plan) prepare(ctx context.Context) error {
	if err := p.takeDir(ctx); err != nil {
		return err
	}
	if !p.controlPlaneOnly {
		claim, err := newClaim(ctx, p.cluster.Dir)
		if err != nil {
			return fmt.Errorf("claim a place for the cluster: %w", err)
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

// takeDir creates and marks the directory of the cluster.
func (p *plan) takeDir(ctx context.Context) error {
	dir := p.cluster.Dir
	if _, err := Open(dir); err == nil {
		return fmt.Errorf("a cluster is running in %q", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if err := Remove(ctx, dir); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%q is not empty: a cluster needs its own directory", dir)
		} else if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o750); err != nil {
		return err
	}
	return p.cluster.save()
}

// Ports are chosen below the default range of outgoing connections
// (net.ipv4.ip_local_port_range), which could take a port before its component
// listens.
const (
	firstPort = 10000
	lastPort  = 29999
	portTries = 1000
)

// choosePorts reserves ports that are free until the cluster is stopped, so that no other
// cluster takes one before its component listens, or while that is down. If another program
// takes one, Start fails.
func (p *plan) choosePorts() error {
	var addresses []string
	for range 6 {
		address, reservation, err := reservePort()
		if err != nil {
			return fmt.Errorf("choose a free port: %w", err)
		}
		p.cluster.ports = append(p.cluster.ports, reservation)
		addresses = append(addresses, address)
	}
	p.etcd, p.api, p.kwok, p.scheduler = addresses[0], addresses[1], addresses[4], addresses[5]
	if !p.controlPlaneOnly {
		p.cluster.Registry = addresses[2]
		p.kubelet = portOf(addresses[3])
	}
	return nil
}

// reservePort reserves a free port by a socket with its name. Such abstract sockets
// (unix(7)) have the scope of ports, which is the network namespace, and end with the
// process.
func reservePort() (address string, reservation io.Closer, err error) {
	for range portTries {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1)) //nolint:gosec // not a secret
		address = net.JoinHostPort("127.0.0.1", port)
		reservation, err = net.Listen("unix", portSocket+port) //nolint:noctx // it does not block
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if err = probe(address); err == nil {
			return address, reservation, nil
		}
		if err := reservation.Close(); err != nil {
			return "", nil, err
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", nil, err
		}
	}
	return "", nil, err
}

// portSocket and a port are the name of the socket that reserves it.
const portSocket = "@preflight-cluster-port-"

// probe returns an error if no program could listen on an address.
func probe(address string) error {
	listener, err := net.Listen("tcp", address) //nolint:noctx // a loopback port does not block
	if err != nil {
		return err
	}
	return listener.Close()
}

// done reports the end of a step that began at start.
func (p *plan) done(step string, start time.Time) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	if p.report != nil {
		p.report(step, time.Since(start))
	}
}

// portOf returns the port of an address that choosePorts has chosen.
func portOf(address string) string {
	return address[strings.LastIndex(address, ":")+1:]
}
