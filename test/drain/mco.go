package drain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// update drains the nodes of the pools, those of all pools at the same time. It is written from the
// machine-config-operator (pkg/controller/node, pkg/controller/drain), and not from collector/drain.
type update struct {
	*Trial

	pools []*pool
	// listed are the pods of the nodes that are drained: a drain evicts those that it lists, and lists them again if it
	// does not end (kubectl pkg/drain, machine-config-operator pkg/controller/drain).
	listed map[string]map[types.UID]bool
	// tries counts how often a node was listed again.
	tries map[string]int
}

// maxTries bounds how often the pods of a node are listed: pods that come to it although it is cordoned are evicted in
// each try.
const maxTries = 3

// pool is the nodes of a MachineConfigPool.
type pool struct {
	name string
	// limit is how many nodes may be unavailable.
	limit int
	// waiting are the nodes that are to be drained, in order; the drains of draining have not ended.
	waiting, draining []string
	drained           int
	// unavailable counts the nodes that are not updated while they are as they are, and configuring are those
	// that are in the middle of a configuration, which ends by itself.
	unavailable int
	configuring []string
}

// drain drains the nodes until nothing changes any more.
func (t *Trial) drain(ctx context.Context) error {
	u := &update{Trial: t, listed: map[string]map[types.UID]bool{}, tries: map[string]int{}}
	for i := range t.Created.Pools {
		if of := &t.Created.Pools[i]; !of.Spec.Paused {
			added, err := poolOf(of.Name, of.Spec.NodeSelector.MatchLabels, of.Spec.MaxUnavailable, t.before.Nodes)
			if err != nil {
				return err
			}
			u.pools = append(u.pools, added)
		}
	}
	if err := u.rounds(ctx); err != nil {
		return err
	}
	t.after = t.read()
	t.Ended = lab.Outcome{
		Stuck: map[string][]string{}, Waiting: map[string]int{}, Drained: map[string]int{},
		Absent: t.after.Absent(&t.before),
	}
	for _, of := range u.pools {
		if slices.Sort(of.draining); len(of.draining) > 0 {
			t.Ended.Stuck[of.name] = of.draining
		}
		t.Ended.Waiting[of.name], t.Ended.Drained[of.name] = len(of.waiting), of.drained
	}
	return nil
}

// poolOf is a pool with its nodes: by zone, those without one last, then the oldest, then by name.
func poolOf(name string, selected map[string]string, most *intstr.IntOrString, nodes []corev1.Node) (*pool, error) {
	made, members := &pool{name: name, limit: 1}, []*corev1.Node{}
	for i := range nodes {
		if labels.SelectorFromSet(selected).Matches(labels.Set(nodes[i].Labels)) {
			members = append(members, &nodes[i])
		}
	}
	if most != nil {
		limit, err := intstr.GetScaledValueFromIntOrPercent(most, len(members), false)
		if err != nil {
			return nil, fmt.Errorf("maxUnavailable of pool %s: %w", name, err)
		}
		made.limit = max(1, limit)
	}
	slices.SortFunc(members, func(a, b *corev1.Node) int {
		return cmp.Or(cmp.Compare(a.Labels[corev1.LabelTopologyZone], b.Labels[corev1.LabelTopologyZone]),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, node := range members {
		switch {
		case !ready(node) || node.Spec.Unschedulable:
			made.unavailable++
		case node.Annotations[lab.DaemonState] != lab.Done:
			made.configuring = append(made.configuring, node.Name)
		default:
			made.waiting = append(made.waiting, node.Name)
		}
	}
	return made, nil
}

// rounds repeats the requests until all are refused and nothing changes.
func (u *update) rounds(ctx context.Context) error {
	for {
		before, _, _ := u.watched.state(u.Created.Namespace)
		changed, err := u.round(ctx)
		if err != nil {
			return err
		}
		if changed {
			if err := u.watched.pause(ctx, u.Created.Namespace, poll); err != nil {
				return err
			}
			continue
		}
		if err := u.await(ctx); err != nil {
			return err
		}
		if after, _, _ := u.watched.state(u.Created.Namespace); after != before {
			continue
		}
		if more, err := u.goOn(ctx); err != nil || !more {
			return err
		}
	}
}

// goOn begins what is left once nothing changes, and reports whether there is anything.
func (u *update) goOn(ctx context.Context) (bool, error) {
	if u.again() {
		return true, nil
	}
	return u.configure(ctx)
}

// again has the drains that do not end list the pods of their nodes again, and reports whether there are other ones.
func (u *update) again() bool {
	others, found := false, u.read()
	for _, of := range u.pools {
		for _, node := range of.draining {
			now := list(&found, node)
			if maps.Equal(now, u.listed[node]) || u.tries[node] == maxTries {
				continue
			}
			u.listed[node], others = now, true
			u.tries[node]++
		}
	}
	return others
}

// list are the pods that a drain of a node evicts.
func list(found *lab.Cluster, node string) map[types.UID]bool {
	all := map[types.UID]bool{}
	for i := range found.Pods {
		if pod := &found.Pods[i]; pod.Spec.NodeName == node && lab.ControllerOf(pod).Kind != "DaemonSet" {
			all[pod.UID] = true
		}
	}
	return all
}

// configure ends the configurations in progress, and reports whether there is one.
func (u *update) configure(ctx context.Context) (bool, error) {
	changed := false
	for _, of := range u.pools {
		for _, node := range of.configuring {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"b",%q:%q}}}`, lab.CurrentConfig, lab.DaemonState, lab.Done)
			if err := u.patchNode(ctx, node, patch); err != nil {
				return false, err
			}
			of.waiting, changed = append(of.waiting, node), true
		}
		of.configuring = nil
	}
	return changed, nil
}

// round cordons the next nodes, requests the evictions of the pods on all that are drained, and returns
// those without such pods. It reports whether anything has changed.
func (u *update) round(ctx context.Context) (bool, error) {
	if err := u.operate(ctx); err != nil {
		return false, err
	}
	changed := false
	for _, of := range u.pools {
		for len(of.waiting) > 0 && len(of.draining)+of.unavailable+len(of.configuring) < of.limit {
			node := of.waiting[0]
			if err := u.cordon(ctx, node, true); err != nil {
				return false, err
			}
			found := u.read()
			u.listed[node] = list(&found, node)
			of.waiting, of.draining, changed = of.waiting[1:], append(of.draining, node), true
		}
	}
	evicted, left, err := u.evict(ctx)
	if err != nil {
		return false, err
	}
	var drained []string
	for _, of := range u.pools {
		of.draining = slices.DeleteFunc(of.draining, func(node string) bool {
			if !left[node] {
				drained = append(drained, node)
				of.drained++
			}
			return !left[node]
		})
	}
	return changed || evicted || len(drained) > 0, u.returned(ctx, drained)
}

// evict requests the evictions, and reports whether one was granted, and which nodes have pods.
func (u *update) evict(ctx context.Context) (evicted bool, left map[string]bool, err error) {
	left = map[string]bool{}
	found := u.read()
	for i := range found.Pods {
		pod := &found.Pods[i]
		if !u.drains(pod.Spec.NodeName) || !u.listed[pod.Spec.NodeName][pod.UID] {
			continue
		}
		left[pod.Spec.NodeName] = true
		if pod.DeletionTimestamp != nil {
			continue
		}
		// The client itself repeats a request ten times that is to be repeated later.
		err := u.Clients.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").MaxRetries(
			0).
			Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}).Do(ctx).Error()
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
	return slices.ContainsFunc(u.pools, func(of *pool) bool { return slices.Contains(of.draining, node) })
}

// returned returns nodes that are drained. Since their update takes minutes, the controllers and the
// scheduler have made all steps by then, and again before the next nodes are drained.
func (u *update) returned(ctx context.Context, drained []string) error {
	if len(drained) == 0 {
		return nil
	}
	if err := u.await(ctx); err != nil {
		return err
	}
	for _, node := range drained {
		if err := u.cordon(ctx, node, false); err != nil {
			return err
		}
	}
	return u.await(ctx)
}

func (u *update) cordon(ctx context.Context, node string, cordoned bool) error {
	return u.patchNode(ctx, node, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned))
}

func (u *update) patchNode(ctx context.Context, node string, patch []byte) error {
	_, err := u.Clients.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
