package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// errForeign is returned for clusters that another process has started.
var errForeign = errors.New("only the process that has started a cluster can crash and revive its components")

// Crash kills a component with SIGKILL: "etcd", "kube-apiserver",
// "kube-controller-manager", "kube-scheduler" and, on the node, "kubelet" and
// "containerd". It returns when the process has ended. The files of the component
// stay, and so do processes that it has started: pods survive the end of
// containerd and kubelet. The cluster must have been started by this process.
func (c *Cluster) Crash(ctx context.Context, component string) error {
	if c.started == nil {
		return errForeign
	}
	running, err := c.started.running(component)
	if err != nil {
		return err
	}
	select {
	case <-running.ended:
		return fmt.Errorf("%s has ended already; its log is in %s/logs", component, c.Dir)
	default:
	}
	c.started.expectEnd(component, true)
	if err := syscall.Kill(running.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", component, err)
	}
	select {
	case <-running.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s was killed but has not ended: %w", component, context.Cause(ctx))
	}
}

// Revive starts a component that was crashed with the same command as before, and
// returns when it is as ready as after Start. Concurrent calls run one after the
// other. The components that it depends on must be running: etcd is revived before
// the API server.
func (c *Cluster) Revive(ctx context.Context, component string) error {
	p := c.started
	if p == nil {
		return errForeign
	}
	p.reviving.Lock()
	defer p.reviving.Unlock()
	crashed, err := p.running(component)
	if err != nil {
		return err
	}
	select {
	case <-crashed.ended:
	default:
		return fmt.Errorf("%s is running", component)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s was not ready again after %s", component, startTimeout))
	defer cancel()
	ctx, p.fail = context.WithCancelCause(ctx)
	defer p.fail(nil)
	p.expectEnd(component, false)
	return causeOf(ctx, p.starters()[component](ctx))
}

// expectEnd decides whether the end of a component is reported.
func (p *plan) expectEnd(component string, expected bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.crashed[component] = expected
}

// stop has no more ends reported.
func (p *plan) stop() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.stopped = true
}

// starters returns the start function of each component that loses no data when
// it ends. The registry is none: it keeps its manifests in memory.
func (p *plan) starters() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"etcd":                    p.startEtcd,
		"kube-apiserver":          p.startAPIServer,
		"kube-controller-manager": p.startControllerManager,
		"kube-scheduler":          p.startScheduler,
		"kubelet":                 p.startKubelet,
		"containerd":              p.startContainerd,
	}
}

// running returns a component that was started. It may have ended.
func (p *plan) running(component string) (process, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var names []string
	for name := range p.starters() {
		found, ok := p.processes[name]
		if ok && name == component {
			return found, nil
		}
		if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return process{}, fmt.Errorf("%q is not a component that can be crashed; this cluster has: %s", component, strings.Join(names, ", "))
}
