package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan"
)

// duration estimates the update to a version from what the checks read; nil where the nodes
// or their pools could not be read. Paused pools are not updated.
func (v view) duration(ctx context.Context, version string) *report.Duration {
	kind := update.Kind(v.kind(version))
	if kind != update.Patch && kind != update.Minor && kind != update.Major {
		return nil
	}
	if _, err := v.snapshot.Kubelets(ctx); err != nil {
		return nil
	}
	nodes := v.rollout(ctx, func(string, ...any) {})
	if nodes.Model.Masters == 0 && len(nodes.Pools) == 0 {
		return nil
	}
	var pools []rollout.Pool
	for _, pool := range nodes.Pools {
		if pool.Paused {
			nodes.Basis = append(nodes.Basis, fmt.Sprintf("The pool %s is paused and not included.", pool.Name))
			continue
		}
		pools = append(pools, rollout.Pool{Name: pool.Name, Nodes: pool.Nodes, Parallel: pool.Parallel})
	}
	estimate := nodes.Model.Estimate([]update.Kind{kind}, pools)
	return &report.Duration{ControlPlane: report.RangeOf(estimate.ControlPlane[0]), Total: report.RangeOf(estimate.Total), Basis: nodes.Basis}
}

// calibrated adds to rollout what only a plan reads: the MachineConfigNodes and the
// DaemonSets.
func (v view) calibrated(ctx context.Context, miss func(string, ...any)) updateplan.Rollout {
	on := v.rollout(ctx, miss)
	parallel := map[string]int{}
	for _, pool := range on.Pools {
		parallel[pool.Name] = pool.Parallel
	}
	resource := machineconfigurationv1.GroupVersion.WithResource("machineconfignodes")
	nodes, err := snapshot.List[machineconfigurationv1.MachineConfigNode](ctx, v.snapshot, resource)
	if err != nil && !apierrors.IsNotFound(err) {
		miss("how long nodes took in the last roll-out: could not list the MachineConfigNodes: %v", err)
	}
	took := rollout.NodeTimes(nodes, func(pool string) int { return parallel[pool] })
	if model, ok := on.Model.Calibrated(took); ok {
		on.Model = model
		on.Basis = append(on.Basis, fmt.Sprintf("%s for a node: the last roll-out of this cluster by its MachineConfigNodes (n=%d).",
			report.RangeOf(model.Node), len(took)))
	}
	on.ProlongedBy = v.prolongedBy(ctx, miss)
	return on
}

// maxCauses bounds the objects of one kind that are named as what prolongs updates.
const maxCauses = 10

// prolongedBy are the DaemonSets and PodDisruptionBudgets that prolong updates.
func (v view) prolongedBy(ctx context.Context, miss func(string, ...any)) []string {
	var causes []string
	if all, err := v.snapshot.DaemonSets(ctx); err != nil {
		miss("DaemonSets that prolong updates: %v", err)
	} else {
		var slow []string
		for _, each := range rollout.SlowDaemonSets(all) {
			slow = append(slow, each.String())
		}
		causes = firstCauses(slow, "DaemonSets that replace one pod at a time")
	}
	budgets, err := v.snapshot.PodDisruptionBudgets(ctx)
	if err != nil {
		miss("PodDisruptionBudgets that prolong updates: %v", err)
		return causes
	}
	return append(causes, firstCauses(health.Undrainable(budgets), "PodDisruptionBudgets that allow no disruption")...)
}

// firstCauses are at most maxCauses, and how many more there are of that kind.
func firstCauses(all []string, kind string) []string {
	named := slices.Clone(all[:min(len(all), maxCauses)])
	if more := len(all) - maxCauses; more > 0 {
		named = append(named, fmt.Sprintf("%d more %s", more, kind))
	}
	return named
}

// documented is where the default durations come from.
func documented(model rollout.Model) string {
	return fmt.Sprintf("The numbers are those of the documentation: 60 to 120 minutes for a minor update, %.0f to %.0f minutes for a node.",
		model.Node.Low.Minutes(), model.Node.High.Minutes())
}

// rollout is what the durations and reboots depend on.
func (v view) rollout(ctx context.Context, miss func(string, ...any)) updateplan.Rollout {
	masters, pools, known := v.pools(ctx, miss)
	var platform configv1.PlatformType
	infrastructure, err := v.snapshot.Infrastructure(ctx)
	switch {
	case err != nil:
		miss("the platform: %v", err)
	case infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode:
		masters = 0
	case infrastructure.Status.PlatformStatus != nil:
		platform = infrastructure.Status.PlatformStatus.Type
	}
	model := rollout.Documented(masters, platform)
	model.History = rollout.History(v.version.Status.History)
	basis := []string{documented(model)}
	for _, kind := range slices.Sorted(maps.Keys(model.History)) {
		basis = append(basis, fmt.Sprintf("The control plane in a %s update: the history of this cluster (n=%d).", strings.ToLower(string(kind)), len(model.History[kind])))
	}
	made := updateplan.Rollout{Model: model, Basis: basis, Pools: pools}
	if known && len(pools) == 0 {
		made.Notices = []string{withoutPools(masters)}
	}
	return made
}

// withoutPools is what follows for a cluster without a pool beside the control plane.
func withoutPools(masters int) string {
	switch masters {
	case 0:
		return "no MachineConfigPool has nodes, and pausing saves no reboot"
	case 1:
		return "single node: the cluster is not available while its node reboots, and pausing saves no reboot"
	}
	return "compact cluster: the control plane nodes run the workload, no other pool has nodes, and pausing saves no reboot"
}

// pools are the number of control plane nodes and the other pools; known is false where they
// could not be read.
func (v view) pools(ctx context.Context, miss func(string, ...any)) (masters int, pools []updateplan.Nodes, known bool) {
	kubelets, err := v.snapshot.Kubelets(ctx)
	if err != nil {
		miss("pools, pauses and reboots: %v; %d control plane nodes are assumed", err, defaultMasters)
		return defaultMasters, nil, false
	}
	found := map[string]*updateplan.Nodes{}
	outside := 0
	for _, group := range kubelets {
		switch group.Pool {
		case "":
			outside += len(group.Nodes)
		case "master", "arbiter":
			masters += len(group.Nodes)
		default:
			addKubelets(found, group)
		}
	}
	v.missOutside(ctx, outside, miss)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		found[name].Parallel = v.parallel(ctx, *found[name], miss)
		pools = append(pools, *found[name])
	}
	return masters, pools, true
}

// missOutside records the nodes that MachineConfigPools do not update: outside is their
// number, without the RHEL nodes, which pools select.
func (v view) missOutside(ctx context.Context, outside int, miss func(string, ...any)) {
	nodes, err := v.snapshot.Nodes(ctx)
	if err != nil {
		return // Kubelets has returned the error
	}
	windows, rhel := 0, 0
	for i := range nodes {
		switch {
		case nodes[i].Labels[corev1.LabelOSStable] == string(corev1.Windows):
			windows++
		case isRHEL(nodes[i].Status.NodeInfo.OSImage):
			rhel++
		}
	}
	if windows > 0 {
		miss("Windows nodes (%d): the Windows Machine Config Operator updates them, not a MachineConfigPool", windows)
	}
	if rhel > 0 {
		miss("RHEL nodes (%d): their administrator updates them; as nodes of their pool they are part of its duration", rhel)
	}
	if outside > windows {
		miss("nodes that no MachineConfigPool updates (%d)", outside-windows)
	}
}

// isRHEL reports whether the operating system is Red Hat Enterprise Linux, and not CoreOS.
func isRHEL(image string) bool {
	return strings.HasPrefix(image, "Red Hat Enterprise Linux") && !strings.Contains(image, "CoreOS")
}

// addKubelets adds nodes to their pool; a version that cannot be read is the oldest.
func addKubelets(found map[string]*updateplan.Nodes, group snapshot.Kubelets) {
	var minor uint64
	if version, err := semver.ParseTolerant(group.Version); err == nil {
		minor = version.Minor
	}
	pool := found[group.Pool]
	if pool == nil {
		pool = &updateplan.Nodes{Name: group.Pool, Paused: group.Paused, Kubelet: minor}
		found[group.Pool] = pool
	}
	pool.Nodes += len(group.Nodes)
	pool.Kubelet = min(pool.Kubelet, minor)
}

// parallel is how many nodes of a pool are updated at a time.
func (v view) parallel(ctx context.Context, pool updateplan.Nodes, miss func(string, ...any)) int {
	all, err := v.snapshot.MachineConfigPools(ctx)
	i := slices.IndexFunc(all, func(each machineconfigurationv1.MachineConfigPool) bool { return each.Name == pool.Name })
	number := 1
	if err == nil && i >= 0 {
		number, err = rollout.Parallel(all[i].Spec.MaxUnavailable, pool.Nodes)
	}
	if err != nil {
		miss("how many nodes of pool %s are updated at a time: %v; 1 is assumed", pool.Name, err)
		return 1
	}
	return number
}

// defaultMasters is the number of control plane nodes that a plan without a cluster
// assumes.
const defaultMasters = 3
