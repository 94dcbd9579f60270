package drain

import (
	"context"
	"fmt"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/test/drain/lab"
)

// update drains the nodes of the pools, those of all pools at the same time.
type update struct {
	*trial

	pools []order.Pool
	// started are the nodes whose drains have begun, by pool, and draining those whose have not ended.
	started  []map[string]bool
	draining []map[string]bool
}

// drain drains the nodes as the machine-config-operator does, until nothing changes any more.
func (t *trial) drain(ctx context.Context, planned order.Order) (lab.Outcome, error) {
	u := &update{trial: t, pools: planned.Pools}
	for range u.pools {
		u.started, u.draining = append(u.started, map[string]bool{}), append(u.draining, map[string]bool{})
	}
	if err := u.rounds(ctx); err != nil {
		return lab.Outcome{}, err
	}
	found, err := t.read(ctx)
	if err != nil {
		return lab.Outcome{}, err
	}
	ended := lab.Outcome{Stuck: map[string][]string{}, Absent: found.Absent()}
	for i := range u.pools {
		for node := range u.draining[i] {
			ended.Stuck[u.pools[i].Name] = append(ended.Stuck[u.pools[i].Name], node)
		}
		slices.Sort(ended.Stuck[u.pools[i].Name])
	}
	return ended, nil
}

// rounds repeats the requests until all are refused, also once the budgets count what is ready then.
func (u *update) rounds(ctx context.Context) error {
	pause := time.NewTicker(poll)
	defer pause.Stop()
	for idle := false; ; {
		changed, err := u.round(ctx)
		if err != nil || !changed && idle {
			return err
		}
		if idle = !changed; idle {
			if err := u.await(ctx, u.settled); err != nil {
				return err
			}
			continue
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// round cordons the next nodes, requests the evictions of the pods on all that are drained, and returns
// those without such pods. It reports whether anything has changed.
func (u *update) round(ctx context.Context) (bool, error) {
	changed := false
	for i := range u.pools {
		started := func(node string) bool { return u.started[i][node] }
		for _, node := range u.pools[i].Next(started, len(u.draining[i])) {
			if err := u.cordon(ctx, node, true); err != nil {
				return false, err
			}
			u.started[i][node], u.draining[i][node], changed = true, true, true
		}
	}
	evicted, left, err := u.evict(ctx)
	if err != nil {
		return false, err
	}
	var drained []string
	for i := range u.pools {
		for node := range u.draining[i] {
			if !left[node] {
				drained = append(drained, node)
				delete(u.draining[i], node)
			}
		}
	}
	return changed || evicted || len(drained) > 0, u.returned(ctx, drained)
}

// evict requests the evictions, and reports whether one was granted, and which nodes have pods.
func (u *update) evict(ctx context.Context) (evicted bool, left map[string]bool, err error) {
	pods, err := u.Clients.CoreV1().Pods(u.created.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, nil, err
	}
	left = map[string]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !u.drains(pod.Spec.NodeName) || lab.ControllerOf(pod).Kind == "DaemonSet" {
			continue
		}
		left[pod.Spec.NodeName] = true
		if pod.DeletionTimestamp != nil {
			evicted = true // and is about to leave
			continue
		}
		err := u.Clients.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
			evicted = true
		case apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err), apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
			// Refused: by its budget, or since it has several, which is an error 500.
		default:
			return false, nil, fmt.Errorf("evict pod %s: %w", pod.Name, err)
		}
	}
	return evicted, left, nil
}

func (u *update) drains(node string) bool {
	return slices.ContainsFunc(u.draining, func(nodes map[string]bool) bool { return nodes[node] })
}

// returned returns nodes that are drained. Since their update takes minutes, the scheduler has tried to
// place all pods by then, and it tries again before the next nodes are drained.
func (u *update) returned(ctx context.Context, drained []string) error {
	if len(drained) == 0 {
		return nil
	}
	if err := u.await(ctx, u.tried); err != nil {
		return err
	}
	for _, node := range drained {
		if err := u.cordon(ctx, node, false); err != nil {
			return err
		}
	}
	return u.await(ctx, u.tried)
}

func (u *update) cordon(ctx context.Context, node string, cordoned bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)
	_, err := u.Clients.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
