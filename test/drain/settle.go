package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	product "github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/test/cluster"
)

const (
	// poll is how often the state of a cluster is read while it settles.
	poll = time.Second
	// quiet is how many times in a row it is the same then: longer than pods take to get
	// ready, and than the scheduler backs off.
	quiet = 6
	// patient bounds the time until a cluster has settled.
	patient = 4 * time.Minute
)

// settle waits until nothing changes, and the controllers have processed what has.
func (t *trial) settle(ctx context.Context) error {
	last, same := "", 0
	err := wait.PollUntilContextTimeout(ctx, poll, patient, true, func(ctx context.Context) (bool, error) {
		state, processed, err := t.fingerprint(ctx)
		if err != nil {
			return false, err
		}
		if state != last || !processed {
			last, same = state, 0
		}
		same++
		return same > quiet, nil
	})
	if err != nil {
		return fmt.Errorf("the cluster has not settled: %w\n%s", err, last)
	}
	return nil
}

// fingerprint is where the pods are, whether they are ready, and what the budgets allow. It
// reports whether the budgets count the pods that are ready, and whether each pod was tried to
// be placed.
func (t *trial) fingerprint(ctx context.Context) (state string, processed bool, err error) {
	pods, err := t.Clients.CoreV1().Pods(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", false, err
	}
	budgets, err := t.Clients.PolicyV1().PodDisruptionBudgets(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", false, err
	}
	processed = true
	var lines []string
	healthy, managed := map[string]int32{}, map[string]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		lines = append(lines, fmt.Sprintf("%s %s %s %v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions))
		app := pod.Labels["app"]
		managed[app] = managed[app] || metav1.GetControllerOfNoCopy(pod) != nil
		starts := pod.Spec.NodeName != "" && pod.Annotations[cluster.AnnotationReady] != cluster.NeverReady
		switch {
		case eviction.Ready(pod):
			healthy[app]++
		case starts, len(pod.Status.Conditions) == 0:
			processed = false
		}
	}
	for i := range budgets.Items {
		lines = append(lines, fmt.Sprintf("%s %+v", budgets.Items[i].Name, budgets.Items[i].Status))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), processed && computed(budgets.Items, healthy, managed) && len(pods.Items) > 0, nil
}

// computed reports whether the budgets count the pods of each application that are healthy; those of a
// managed one are expected.
func computed(budgets []policyv1.PodDisruptionBudget, healthy map[string]int32, managed map[string]bool) bool {
	selecting := map[string]int{}
	for i := range budgets {
		selecting[budgets[i].Spec.Selector.MatchLabels["app"]]++
	}
	for i := range budgets {
		status, app := &budgets[i].Status, budgets[i].Spec.Selector.MatchLabels["app"]
		// Of several budgets of a pod, the disruption controller computes one when the pod changes
		// (kubernetes pkg/controller/disruption, getPdbForPod). The numbers of a status that cannot be
		// computed are those before.
		if selecting[app] > 1 || len(status.Conditions) > 0 && status.Conditions[0].Reason == policyv1.SyncFailedReason {
			continue
		}
		if status.ObservedGeneration != budgets[i].Generation || status.CurrentHealthy != healthy[app] || managed[app] && status.ExpectedPods == 0 {
			return false
		}
	}
	return true
}

// read is the cluster as the rehearsal reads it.
func (t *trial) read(ctx context.Context) (product.Input, error) {
	nodes, err := t.Clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: clusterLabel + "=" + t.namespace})
	if err != nil {
		return product.Input{}, err
	}
	pods, err := t.Clients.CoreV1().Pods(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return product.Input{}, err
	}
	budgets, err := t.Clients.PolicyV1().PodDisruptionBudgets(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return product.Input{}, err
	}
	workloads, err := t.workloads(ctx)
	if err != nil {
		return product.Input{}, err
	}
	found, err := order.Of(order.Input{Nodes: nodes.Items, Pools: t.pools(), Topology: configv1.HighlyAvailableTopologyMode})
	return product.Input{
		Order: found, Cluster: placement.Input{Nodes: nodes.Items, Pods: pods.Items}, Budgets: budgets.Items,
		Workloads: recreation.New(workloads), Owners: owner.New(nil, nil), Now: time.Now(),
	}, err
}

func (t *trial) workloads(ctx context.Context) (recreation.Input, error) {
	sets, err := t.Clients.AppsV1().ReplicaSets(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return recreation.Input{}, err
	}
	stateful, err := t.Clients.AppsV1().StatefulSets(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return recreation.Input{}, err
	}
	quotas, err := t.Clients.CoreV1().ResourceQuotas(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return recreation.Input{}, err
	}
	return recreation.Input{ReplicaSets: sets.Items, StatefulSets: stateful.Items, Quotas: quotas.Items}, nil
}

// pools are the MachineConfigPools of the cluster.
func (t *trial) pools() []machineconfigurationv1.MachineConfigPool {
	var found []machineconfigurationv1.MachineConfigPool
	for _, name := range []string{"infra", "worker"} {
		pool := machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{poolLabel: name}}
		if t.chance(30) {
			pool.Spec.MaxUnavailable = new(intstr.FromInt32(2))
		}
		found = append(found, pool)
	}
	return found
}

// ownersOf are the controllers of pods, by the names of the pods; the name of a pod without
// one.
func ownersOf(pods []corev1.Pod) map[string]string {
	found := map[string]string{}
	for i := range pods {
		found[pods[i].Name] = pods[i].Name
		if controller := metav1.GetControllerOfNoCopy(&pods[i]); controller != nil {
			found[pods[i].Name] = controller.Name
		}
	}
	return found
}

// remove deletes the cluster.
func (t *trial) remove(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := t.Clients.CoreV1().Namespaces().Delete(ctx, t.namespace, now); err != nil {
		return err
	}
	for _, name := range t.nodes {
		if err := t.Clients.CoreV1().Nodes().Delete(ctx, name, now); err != nil {
			return err
		}
	}
	return nil
}
