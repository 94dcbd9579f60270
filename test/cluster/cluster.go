// Package cluster answers: how does a test get a real Kubernetes on this
// machine, now, and how does it get rid of all of it?
//
// Start runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler
// as child processes, and, unless ControlPlaneOnly is given, a node of them
// all: containerd, kubelet, a CNI bridge and a registry on the loopback
// interface. The OpenShift resources a preflight reads are installed from the
// CRD manifests of the github.com/openshift/api module. Nothing is imitated:
// pods run, log and reach the API with the in-cluster configuration. Left out
// are kube-proxy (no Service but kubernetes is reachable), DNS (nobody answers)
// and a way from the pods to other machines.
//
// The binaries are those that `make tools` leaves in bin/.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// startTimeout bounds a start on a slow, busy machine.
	startTimeout = 3 * time.Minute
	// stopTimeout bounds a clean-up whose caller has given up already.
	stopTimeout = 30 * time.Second
)

// Cluster is a running Kubernetes of one node, or of none with
// ControlPlaneOnly. Its fields are set by Start and Open and are not to be
// changed.
type Cluster struct {
	// Dir is the absolute path of everything the cluster keeps on disk.
	Dir string `json:"dir"`
	// Kubeconfig is the path of a kubeconfig of a cluster administrator.
	Kubeconfig string `json:"kubeconfig"`
	// Registry is the host:port of a registry without TLS that the node pulls
	// from; empty with ControlPlaneOnly.
	Registry string `json:"registry,omitempty"`
	// Config is what Kubeconfig says.
	Config *rest.Config `json:"-"`
	// Starter is the process that the cluster ends with; 0 for a standing one.
	Starter int `json:"starter,omitempty"`

	claim *claim
	// started is how the cluster came up, where this process has started it.
	started *plan
}

// Start runs a cluster whose files are in dir, and returns when its API serves
// the OpenShift resources and, unless ControlPlaneOnly is given, its node takes
// pods. Dir is made when it is not there, must be empty otherwise, or hold what
// a crashed cluster left, which is cleared away first. Several clusters run
// side by side: each has its own ports, subnets and names.
//
// A cluster with a node needs root on Linux. The error is one line and says
// what to do; that of a component which did not come up ends with the last
// lines of its log. The cluster ends with this process, even when it is killed,
// unless Standing is given.
func Start(ctx context.Context, dir string, options ...Option) (*Cluster, error) {
	p, err := newPlan(ctx, dir, options)
	if err != nil {
		return nil, err
	}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the cluster was not ready after %s", startTimeout))
	defer cancel()
	if err := p.run(ctx); err != nil {
		return nil, errors.Join(err, p.cluster.Stop(context.WithoutCancel(ctx)))
	}
	p.cluster.started = p
	return p.cluster, p.cluster.save()
}

// run brings the components up, in parallel where they do not need each other.
// When a component dies, all waiting ends with its last words.
func (p *plan) run(ctx context.Context) error {
	ctx, p.fail = context.WithCancelCause(ctx)
	before, beforeCtx := errgroup.WithContext(ctx)
	before.Go(func() error {
		if err := p.startEtcd(beforeCtx); err != nil {
			return err
		}
		return p.startAPIServer(beforeCtx)
	})
	if !p.controlPlaneOnly {
		before.Go(func() error { return p.startRegistry(beforeCtx) })
		before.Go(func() error { return p.startContainerd(beforeCtx) })
	}
	if err := before.Wait(); err != nil {
		return causeOf(ctx, err)
	}
	after, afterCtx := errgroup.WithContext(ctx)
	after.Go(func() error { return p.startControllerManager(afterCtx) })
	after.Go(func() error { return p.startScheduler(afterCtx) })
	after.Go(func() error { return p.installCRDs(afterCtx) })
	if !p.controlPlaneOnly {
		after.Go(func() error { return p.startKubelet(afterCtx) })
	}
	if p.simulated > 0 {
		after.Go(func() error { return p.startSimulation(afterCtx) })
	}
	return causeOf(ctx, after.Wait())
}

// causeOf prefers why ctx ended to the error that its end led to.
func causeOf(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// Stop ends the cluster and removes everything it made but its logs: its
// processes and those of its pods, mounts, interfaces, nftables table, cgroups
// and files. It may be called again, and works on whatever a crash left. It
// goes on for at most half a minute, also when ctx has ended already. A cluster
// that was there before is left as it is.
func (c *Cluster) Stop(ctx context.Context) error {
	if c.Dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := sweep(ctx, c.Dir, c.claim); err != nil {
		return fmt.Errorf("cannot clear away the cluster in %q: %w", c.Dir, err)
	}
	return c.claim.release()
}

// Existing is a cluster that is there already, Kubernetes 1.30 or newer, with
// the OpenShift resources installed where it lacks them. Registry is the
// host:port of one that this process may push to and its nodes pull from.
func Existing(ctx context.Context, kubeconfig, registry string) (*Cluster, error) {
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	p := &plan{featureSet: defaultFeatureSet, cluster: &Cluster{Kubeconfig: kubeconfig, Registry: registry, Config: config}}
	if p.root, err = sourceRoot(); err != nil {
		return nil, err
	}
	if p.crds, err = p.crdFiles(ctx); err != nil {
		return nil, err
	}
	return p.cluster, p.installCRDs(ctx)
}

// Open finds the cluster that runs in dir, or reports os.ErrNotExist when none
// does.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c, err := load(dir)
	if err != nil {
		return nil, err
	}
	alive, err := marked(dir)
	if err != nil {
		return nil, err
	}
	if len(alive) == 0 || c.Kubeconfig == "" {
		return nil, fmt.Errorf("the cluster in %q has died: %w", dir, os.ErrNotExist)
	}
	c.Config, err = clientConfig(c.Kubeconfig)
	return c, err
}

// load reads what save wrote.
func load(dir string) (*Cluster, error) {
	path := filepath.Join(dir, stateFile)
	data, err := os.ReadFile(path) //nolint:gosec // the caller's own directory
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	return c, nil
}

// clientConfig is that of a client which tests a server of their own: it asks
// as fast as it can.
func clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 1000, 2000
	return config, nil
}

// save writes what load reads.
func (c *Cluster) save() error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, stateFile), data, 0o600)
}
