// Package cluster answers: how does a test get a real Kubernetes on this
// machine, and how is all of it removed?
//
// Start runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler
// as child processes and, unless ControlPlaneOnly is given, a node: containerd,
// kubelet, a CNI bridge and a registry on the loopback interface. The OpenShift
// resources that a preflight reads are installed from the CRD manifests of the
// github.com/openshift/api module. Nothing is imitated: pods run, log and reach
// the API with the in-cluster configuration. Missing are kube-proxy (only the
// Service kubernetes is reachable), DNS, and a route from the pods to other
// machines.
//
// The programs are those that `make tools` builds in bin/.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/update-preflight/test/build"
)

const (
	// startTimeout bounds a start, which takes minutes on a busy machine. It ends early
	// when a component ends.
	startTimeout = 10 * time.Minute
	// stopTimeout bounds a clean-up, also after the end of its context.
	stopTimeout = 30 * time.Second
)

// Cluster is a running Kubernetes with one node, or without nodes if it was
// started with ControlPlaneOnly. Its fields are read-only.
type Cluster struct {
	// Dir is the absolute path of the cluster's files.
	Dir string `json:"dir"`
	// Kubeconfig is the path of a kubeconfig of a cluster administrator.
	Kubeconfig string `json:"kubeconfig"`
	// CertificateKubeconfig is the path of one that has a client certificate instead of a
	// token, as the installer of OpenShift leaves it; empty for an existing cluster.
	CertificateKubeconfig string `json:"certificateKubeconfig,omitempty"`
	// Registry is the host:port of a registry without TLS that the node pulls
	// from. It is empty with ControlPlaneOnly.
	Registry string `json:"registry,omitempty"`
	// SchedulerMetrics is the address of the scheduler's metrics. It is empty without QuickScheduler.
	SchedulerMetrics string `json:"schedulerMetrics,omitempty"`
	// Etcd is the URL of etcd; empty for an existing cluster.
	Etcd string `json:"etcd,omitempty"`
	// Saved is the path of what the API server created at this start, with which the next start with the same
	// manifests begins. It is empty if this start has begun with it, and for an existing cluster.
	Saved string `json:"-"`
	// Config is the parsed Kubeconfig, without rate limits.
	Config *rest.Config `json:"-"`
	// Starter is the ID of the process with which the cluster ends; 0 for a
	// standing cluster.
	Starter int `json:"starter,omitempty"`

	claim *claim
	// ports are reserved.
	ports []io.Closer
	// failed receives the error of the first component that has ended by itself.
	failed chan error
	// started is nil if another process has started the cluster.
	started *plan
}

// Start runs a cluster whose files are in dir, and returns when its API serves
// the OpenShift resources and, unless ControlPlaneOnly is given, its node is
// ready for pods. Dir is created if it does not exist. Otherwise it must be
// empty or that of a crashed cluster, which is removed first. Several clusters
// can run at the same time: each has its own ports, subnets and names.
//
// A cluster with a node needs root on Linux. The error is a single line; if a
// component does not start, it ends with the last lines of the component's log.
// The cluster ends with this process, even if that is killed, unless Standing is
// given.
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

// run starts the components, in parallel where they do not depend on each other.
// If a component ends, run fails with the end of its log.
func (p *plan) run(ctx context.Context) error {
	ctx, p.fail = context.WithCancelCause(ctx)
	before, beforeCtx := errgroup.WithContext(ctx)
	before.Go(func() error {
		if err := p.startEtcd(beforeCtx); err != nil {
			return err
		}
		if err := p.storeBootstrap(beforeCtx); err != nil {
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
	after.Go(func() error {
		if err := p.installCRDs(afterCtx); err != nil {
			return err
		}
		return p.saveBootstrap(afterCtx)
	})
	if !p.controlPlaneOnly {
		after.Go(func() error { return p.startKubelet(afterCtx) })
	}
	if p.simulated > 0 {
		after.Go(func() error { return p.startSimulation(afterCtx) })
	}
	return causeOf(ctx, after.Wait())
}

// causeOf returns the cause of the end of ctx, or err if ctx has not ended.
func causeOf(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// Stop ends the cluster and removes everything that it has created except its
// logs: its processes and those of its pods, mounts, interfaces, nftables table,
// cgroups and files. It can be called again, also after a crash. It takes at most
// 30 s, even if ctx has ended already. It does not change an existing cluster
// (see Existing).
func (c *Cluster) Stop(ctx context.Context) error {
	if c.Dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if c.started != nil {
		c.started.stop()
	}
	if err := sweep(ctx, c.Dir, c.claim); err != nil {
		return fmt.Errorf("remove the cluster in %q: %w", c.Dir, err)
	}
	if c.started != nil {
		c.started.reap(ctx)
	}
	for _, reservation := range c.ports {
		_ = reservation.Close() // again, if Stop is called again
	}
	return c.claim.release()
}

// Failed returns a channel that receives the error of the first component that has ended
// without Crash or Stop after the start, with the end of its log. It receives nothing for a
// cluster of another process.
func (c *Cluster) Failed() <-chan error { return c.failed }

// Existing returns a cluster that this package has not started, Kubernetes 1.30
// or newer, and installs the OpenShift resources that it lacks. Registry is the
// host:port of a registry to which this process can push, and from which the
// nodes can pull.
func Existing(ctx context.Context, kubeconfig, registry string) (*Cluster, error) {
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	p := &plan{featureSet: defaultFeatureSet, cluster: &Cluster{Kubeconfig: kubeconfig, Registry: registry, Config: config}}
	if p.root, err = build.Root(); err != nil {
		return nil, err
	}
	if p.crds, err = p.crdFiles(ctx, crdResources()); err != nil {
		return nil, err
	}
	return p.cluster, p.installCRDs(ctx)
}

// Open returns the cluster that runs in dir. The error is os.ErrNotExist if there
// is none.
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
		return nil, fmt.Errorf("the cluster in %q has ended: %w", dir, os.ErrNotExist)
	}
	c.Config, err = clientConfig(c.Kubeconfig)
	return c, err
}

// load reads the state that save has written.
func load(dir string) (*Cluster, error) {
	path := filepath.Join(dir, stateFile)
	data, err := os.ReadFile(path) //nolint:gosec // the caller's own directory
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return c, nil
}

// clientConfig returns the configuration in a kubeconfig with rate limits that
// a test does not reach.
func clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 1000, 2000
	return config, nil
}

// save writes the state of the cluster to its directory.
func (c *Cluster) save() error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, stateFile), data, 0o600)
}
