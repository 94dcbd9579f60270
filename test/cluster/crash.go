package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// errForeign is for clusters of which this process did not start the
// components.
var errForeign = errors.New("only the process that started a cluster can crash and revive its components")

// Crash kills a component with SIGKILL: "etcd", "kube-apiserver",
// "kube-controller-manager", "kube-scheduler" and, on the node, "kubelet" and
// "containerd". It returns when the component is dead. What the component had
// written stays, since it is the process that dies and not the machine, and what
// it had started goes on: the pods outlive containerd and the kubelet. The
// cluster must have been started by this process.
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
	if err := syscall.Kill(running.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot kill %s: %w", component, err)
	}
	select {
	case <-running.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s was killed, and is not dead yet: %w", component, context.Cause(ctx))
	}
}

// Revive starts a component that has crashed, with the same command as before,
// and returns when it is ready as Start wants it. One is revived at a time. What
// a component needs must be there: etcd is revived before the API server.
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
		return fmt.Errorf("%s is alive", component)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s was not ready again after %s", component, startTimeout))
	defer cancel()
	ctx, p.fail = context.WithCancelCause(ctx)
	defer p.fail(nil)
	return causeOf(ctx, p.starters()[component](ctx))
}

// starters are how each component starts that loses nothing when it dies. The
// registry is not among them: it keeps its manifests in memory.
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

// running is a component that was started, and may have ended since.
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
	return process{}, fmt.Errorf("%q is no component that can crash; this cluster has: %s", component, strings.Join(names, ", "))
}
