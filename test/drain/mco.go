package drain

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
)

const (
	// attempt is the timeout of a drain. MCO's is 90 s; a drain repeats requests every 5 s.
	attempt = 15 * time.Second
	// patience is how many attempts in a row without any progress in the cluster end a
	// drain. MCO continues for ever.
	patience = 3
)

// drains are those of one cluster.
type drains struct {
	*trial

	// progress counts the pods that have left their node, and the nodes that are drained.
	progress atomic.Int64
	mutex    sync.Mutex
	stuck    map[string][]string
}

// drain drains the pools at the same time, as MCO does.
func (t *trial) drain(ctx context.Context, planned order.Order) (actual, error) {
	d := &drains{trial: t, stuck: map[string][]string{}}
	before, err := t.describe(ctx)
	if err != nil {
		return actual{}, err
	}
	var group errgroup.Group
	for i := range planned.Pools {
		group.Go(func() error { return d.pool(ctx, &planned.Pools[i]) })
	}
	if err := group.Wait(); err != nil {
		return actual{}, err
	}
	if err := t.settle(ctx); err != nil {
		return actual{}, err
	}
	for _, nodes := range d.stuck {
		slices.Sort(nodes)
	}
	absent, err := t.absent(ctx)
	if err != nil {
		return actual{}, err
	}
	state, err := t.describe(ctx)
	return actual{stuck: d.stuck, absent: absent, state: before + "\nthen\n" + state}, err
}

// pool drains the nodes of a pool: as many at a time as may be unavailable.
func (d *drains) pool(ctx context.Context, pool *order.Pool) error {
	started, busy := map[string]bool{}, 0
	type result struct {
		node    string
		drained bool
		err     error
	}
	results := make(chan result, len(pool.Nodes))
	for {
		for _, node := range pool.Next(func(node string) bool { return started[node] }, busy) {
			started[node] = true
			busy++
			go func() {
				drained, err := d.node(ctx, node)
				results <- result{node, drained, err}
			}()
		}
		running := busy - len(d.stuckIn(pool.Name))
		if running == 0 {
			return nil
		}
		ended := <-results
		if ended.err != nil {
			return ended.err
		}
		if ended.drained {
			busy--
			continue
		}
		d.mutex.Lock()
		d.stuck[pool.Name] = append(d.stuck[pool.Name], ended.node)
		d.mutex.Unlock()
	}
}

func (d *drains) stuckIn(pool string) []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.stuck[pool]
}

// node drains and updates one node, and reports whether the drain ended.
func (d *drains) node(ctx context.Context, node string) (bool, error) {
	for idle := 0; idle < patience; idle++ {
		before := d.progress.Load()
		pods, err := d.left(ctx, node)
		if err != nil {
			return false, err
		}
		drained, err := d.kubectl(ctx, "drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout="+attempt.String())
		if err != nil {
			return false, err
		}
		if drained {
			d.progress.Add(1)
			_, err := d.kubectl(ctx, "uncordon", node)
			return true, err
		}
		waits, err := d.waits(ctx, node, pods)
		if err != nil {
			return false, err
		}
		if waits || d.progress.Load() != before {
			idle = -1
		}
	}
	return false, nil
}

// waits notes whether a node has lost pods since it had that many, and reports whether a budget
// is about to allow more.
func (d *drains) waits(ctx context.Context, node string, pods int) (bool, error) {
	count, err := d.left(ctx, node)
	if err != nil {
		return false, err
	}
	if count != pods {
		d.progress.Add(1)
	}
	return d.disrupted(ctx)
}

// disrupted reports whether a budget takes a pod for one that is being evicted. The disruption
// controller does so for up to two minutes where a StatefulSet has created a pod of the same name
// before the controller saw that the old one is gone (kubernetes pkg/controller/disruption,
// buildDisruptedPodMap).
func (d *drains) disrupted(ctx context.Context) (bool, error) {
	budgets, err := d.Clients.PolicyV1().PodDisruptionBudgets(d.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(budgets.Items, func(budget policyv1.PodDisruptionBudget) bool { return len(budget.Status.DisruptedPods) > 0 }), nil
}

// left counts the pods of a node.
func (d *drains) left(ctx context.Context, node string) (int, error) {
	pods, err := d.Clients.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return 0, err
	}
	return len(pods.Items), nil
}

// kubectl runs kubectl, and reports whether it succeeded.
func (d *drains) kubectl(ctx context.Context, args ...string) (bool, error) {
	command := exec.CommandContext(ctx, d.Kubectl, append([]string{"--kubeconfig=" + d.Kubeconfig}, args...)...) //nolint:gosec // our own arguments
	err := command.Run()
	if ctx.Err() != nil {
		return false, fmt.Errorf("kubectl %v: %w", args, ctx.Err())
	}
	return err == nil, nil
}

// describe is where the pods are, for a disagreement.
func (t *trial) describe(ctx context.Context) (string, error) {
	pods, err := t.Clients.CoreV1().Pods(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var lines []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		requested := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
		lines = append(lines, fmt.Sprintf("%s on %q, ready %t, %s, priority %d", pod.Name, pod.Spec.NodeName, eviction.Ready(pod), requested.String(), *pod.Spec.Priority))
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
				lines = append(lines, "  "+condition.Message)
			}
		}
	}
	budgets, err := t.Clients.PolicyV1().PodDisruptionBudgets(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range budgets.Items {
		status := &budgets.Items[i].Status
		lines = append(lines, fmt.Sprintf("budget %s: %d allowed, %d healthy, %d desired, %d expected, disrupted %v, %v",
			budgets.Items[i].Name, status.DisruptionsAllowed, status.CurrentHealthy, status.DesiredHealthy, status.ExpectedPods, status.DisruptedPods, status.Conditions))
	}
	return strings.Join(lines, "\n"), nil
}

// absent counts the pods without a node, or that are missing, by controller.
func (t *trial) absent(ctx context.Context) (map[string]int, error) {
	workloads, err := t.workloads(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := t.Clients.CoreV1().Pods(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	wanted, placed := map[types.UID]int{}, map[types.UID]int{}
	names := map[types.UID]string{}
	for i := range workloads.ReplicaSets {
		set := &workloads.ReplicaSets[i]
		names[set.UID], wanted[set.UID] = set.Name, int(*set.Spec.Replicas)
	}
	for i := range workloads.StatefulSets {
		set := &workloads.StatefulSets[i]
		names[set.UID], wanted[set.UID] = set.Name, int(*set.Spec.Replicas)
	}
	found := map[string]int{}
	for i := range pods.Items {
		count(&pods.Items[i], placed, found)
	}
	for uid, number := range wanted {
		if placed[uid] < number {
			found[names[uid]] = number - placed[uid]
		}
	}
	return found, nil
}

// count counts a pod that has a node for its controller; one without a controller that has no
// node is absent.
func count(pod *corev1.Pod, placed map[types.UID]int, absent map[string]int) {
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case controller != nil && pod.Spec.NodeName != "":
		placed[controller.UID]++
	case controller == nil && pod.Spec.NodeName == "":
		absent[pod.Name]++
	case controller != nil && controller.Kind == "DaemonSet" && pod.Spec.NodeName == "":
		absent[controller.Name]++
	}
}
