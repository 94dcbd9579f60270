// Package duration answers: how long does an update of this cluster take, and what prolongs it?
//
// [Of] estimates one update for a report, and [Rollout] returns the basis of a plan's estimates.
package duration

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

	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan"
)

// Of estimates an update of that kind, from the objects that the checks read; nil if the nodes or their pools
// could not be read. Paused pools are not updated.
func Of(ctx context.Context, s scene.Scene, kind update.Kind) *report.Duration {
	if kind != update.Patch && kind != update.Minor && kind != update.Major {
		return nil
	}
	if _, err := s.Snapshot.Kubelets(ctx); err != nil {
		return nil
	}
	nodes := inventory{scene: s, miss: func(string, ...any) {}}.rollout(ctx)
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

// Rollout returns the basis of the durations and the reboots of a plan, including what only a plan reads: the
// MachineConfigNodes and the DaemonSets. It calls miss with each part that could not be determined.
func Rollout(ctx context.Context, s scene.Scene, miss func(string, ...any)) updateplan.Rollout {
	i := inventory{scene: s, miss: miss}
	on := i.rollout(ctx)
	drains := i.drains(ctx, &on)
	parallel := map[string]int{}
	for _, pool := range on.Pools {
		parallel[pool.Name] = pool.Parallel
	}
	resource := machineconfigurationv1.GroupVersion.WithResource("machineconfignodes")
	nodes, err := snapshot.List[machineconfigurationv1.MachineConfigNode](ctx, s.Snapshot, resource)
	if err != nil && !apierrors.IsNotFound(err) {
		miss("how long nodes took in the last roll-out: could not list the MachineConfigNodes: %v", err)
	}
	took := rollout.NodeTimes(nodes, func(pool string) int { return parallel[pool] })
	if model, ok := on.Model.Calibrated(took); ok {
		on.Model = model
		on.Basis = append(on.Basis, fmt.Sprintf("%s for a node: the last roll-out of this cluster by its MachineConfigNodes (n=%d).",
			report.RangeOf(model.Node), len(took)))
	}
	on.ProlongedBy = append(i.slowDaemonSets(ctx), firstCauses(drains, "drains that take long")...)
	return on
}

// drains adds what the drains take by a rehearsal, and returns what prolongs them.
func (i inventory) drains(ctx context.Context, on *updateplan.Rollout) []string {
	rehearsal, err := draining.Rehearsal(ctx, i.scene.Snapshot, i.scene.Start)
	if err != nil {
		i.miss("drains that prolong updates: %v", err)
	}
	if rehearsal == nil {
		return nil
	}
	on.Model.Drains = rollout.Drains(rehearsal)
	for _, pool := range slices.Sorted(maps.Keys(on.Model.Drains)) {
		on.Basis = append(on.Basis, fmt.Sprintf("%s for the drains of pool %s beyond quick ones: a rehearsal of the drains.",
			report.RangeOf(on.Model.Drains[pool]), pool))
	}
	return draining.Prolonging(rehearsal)
}

// Assumed is the rollout of a plan without a cluster, by the documentation.
func Assumed() updateplan.Rollout {
	model := rollout.Documented(assumedMasters, "")
	return updateplan.Rollout{Model: model, Basis: []string{
		documented(model), fmt.Sprintf("The number of control plane nodes is assumed: %d.", assumedMasters),
	}}
}

// assumedMasters is the number of control plane nodes where they are not known.
const assumedMasters = 3

// inventory reads the nodes of a cluster.
type inventory struct {
	scene scene.Scene
	// miss records a part that could not be determined.
	miss func(string, ...any)
}

// maxCauses bounds the objects of one kind that are named as what prolongs updates.
const maxCauses = 10

func (i inventory) slowDaemonSets(ctx context.Context) []string {
	all, err := i.scene.Snapshot.DaemonSets(ctx)
	if err != nil {
		i.miss("DaemonSets that prolong updates: %v", err)
		return nil
	}
	var slow []string
	for _, each := range rollout.SlowDaemonSets(all) {
		slow = append(slow, each.String())
	}
	return firstCauses(slow, "DaemonSets that replace one pod at a time")
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
	return fmt.Sprintf("The numbers come from the documentation: 60 to 120 minutes for a minor update, %.0f to %.0f minutes for a node.",
		model.Node.Low.Minutes(), model.Node.High.Minutes())
}

func (i inventory) rollout(ctx context.Context) updateplan.Rollout {
	masters, pools, known := i.pools(ctx)
	var platform configv1.PlatformType
	infrastructure, err := i.scene.Snapshot.Infrastructure(ctx)
	switch {
	case err != nil:
		i.miss("the platform: %v", err)
	case infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode:
		masters = 0
	case infrastructure.Status.PlatformStatus != nil:
		platform = infrastructure.Status.PlatformStatus.Type
	}
	model := rollout.Documented(masters, platform)
	model.History = rollout.History(i.scene.Version.Status.History)
	basis := []string{documented(model)}
	for _, kind := range slices.Sorted(maps.Keys(model.History)) {
		basis = append(basis, fmt.Sprintf("The control plane in a %s update: the history of this cluster (n=%d).", strings.ToLower(string(kind)),
			len(model.History[kind])))
	}
	made := updateplan.Rollout{Model: model, Basis: basis, Pools: pools}
	if known && len(pools) == 0 {
		made.Notices = []string{withoutPools(masters)}
	}
	return made
}

// withoutPools is the rollout of a cluster without a pool beside the control plane.
func withoutPools(masters int) string {
	switch masters {
	case 0:
		return "no MachineConfigPool has nodes, and pausing saves no reboot"
	case 1:
		return "single node: the cluster is unavailable while its node reboots, and pausing saves no reboot"
	}
	return "compact cluster: the control plane nodes run the workload, no other pool has nodes, and pausing saves no reboot"
}

// pools are the number of control plane nodes and the other pools; known is false where they could not be read.
func (i inventory) pools(ctx context.Context) (masters int, pools []updateplan.Nodes, known bool) {
	kubelets, err := i.scene.Snapshot.Kubelets(ctx)
	if err != nil {
		i.miss("pools, pauses and reboots: %v; %d control plane nodes are assumed", err, assumedMasters)
		return assumedMasters, nil, false
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
	i.missOutside(ctx, outside)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		found[name].Parallel = i.parallel(ctx, *found[name])
		pools = append(pools, *found[name])
	}
	return masters, pools, true
}

// missOutside records the nodes that MachineConfigPools do not update: outside is their
// number, without the RHEL nodes, which pools select.
func (i inventory) missOutside(ctx context.Context, outside int) {
	nodes, err := i.scene.Snapshot.Nodes(ctx)
	if err != nil {
		return // Kubelets has returned the error
	}
	windows, rhel := 0, 0
	for n := range nodes {
		switch {
		case nodes[n].Labels[corev1.LabelOSStable] == string(corev1.Windows):
			windows++
		case isRHEL(nodes[n].Status.NodeInfo.OSImage):
			rhel++
		}
	}
	if windows > 0 {
		i.miss("Windows nodes (%d): the Windows Machine Config Operator updates them, not a MachineConfigPool", windows)
	}
	if rhel > 0 {
		i.miss("RHEL nodes (%d): their administrator updates them; as nodes of their pool they are part of its duration", rhel)
	}
	if outside > windows {
		i.miss("nodes that no MachineConfigPool updates (%d)", outside-windows)
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
func (i inventory) parallel(ctx context.Context, pool updateplan.Nodes) int {
	all, err := i.scene.Snapshot.MachineConfigPools(ctx)
	at := slices.IndexFunc(all, func(each machineconfigurationv1.MachineConfigPool) bool { return each.Name == pool.Name })
	number := 1
	if err == nil && at >= 0 {
		number, err = rollout.Parallel(all[at].Spec.MaxUnavailable, pool.Nodes)
	}
	if err != nil {
		i.miss("how many nodes of pool %s are updated at a time: %v; 1 is assumed", pool.Name, err)
		return 1
	}
	return number
}
