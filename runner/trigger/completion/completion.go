// Package completion answers: has this cluster completed the update to the release that it runs, and has it been
// healthy since?
//
// Call [Read] for the objects of the cluster, then [Of], which is pure, for the condition Updated of an
// UpdatePreflight.
//
// The cluster-version operator (CVO) reports the end of an update hours before the nodes of all pools are updated. An
// operator or CVO that is not healthy for a short time has not failed. Package settling defines the limits, and when an
// operator and a pool are updated.
package completion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/hypershift/hostedcondition"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// maxNames bounds the names in a message.
const maxNames = 3

// Cluster is the state of a cluster.
type Cluster struct {
	// Now is the time by the clock of the cluster.
	Now       time.Time
	Version   *configv1.ClusterVersion
	Operators []configv1.ClusterOperator
	Pools     []machineconfigurationv1.MachineConfigPool
	// Hosted is the hosted cluster of a guest, in place of Pools; nil for other clusters.
	Hosted *hypershift.State
	// Unread is why the operators or pools could not be read; empty if they could.
	Unread string
}

// Of is the condition Updated, without its times.
func Of(cluster Cluster) metav1.Condition {
	for _, step := range []func() (reason, message string){
		cluster.failing, cluster.updating, cluster.unread, cluster.pools, cluster.nodePools,
		cluster.operators, cluster.hosted,
	} {
		if reason, message := step(); reason != "" {
			status := metav1.ConditionFalse
			if reason == v1alpha1.ReasonNotRead {
				status = metav1.ConditionUnknown
			}
			return metav1.Condition{Type: v1alpha1.ConditionUpdated, Status: status, Reason: reason, Message: message}
		}
	}
	message := fmt.Sprintf("the cluster runs %s, and its pools and operators have settled",
		words.External(cluster.Version.Status.Desired.Version))
	if paused := cluster.paused(); len(paused) > 0 {
		message += "; paused pools are skipped: " + words.List(paused, maxNames)
	}
	if leftOut := cluster.rollout().LeftOut; len(leftOut) > 0 {
		message += "; NodePools that the rollout does not update are skipped: " + words.List(leftOut, maxNames)
	}
	return metav1.Condition{Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpdated, Message: message}
}

// condition is a condition of ClusterVersion or a ClusterOperator; nil for none.
func condition(all []configv1.ClusterOperatorStatusCondition,
	kind configv1.ClusterStatusConditionType,
) *configv1.ClusterOperatorStatusCondition {
	i := slices.IndexFunc(all, func(each configv1.ClusterOperatorStatusCondition) bool { return each.Type == kind })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// has reports whether a condition has a status, and for how long.
func (c Cluster) has(all []configv1.ClusterOperatorStatusCondition, kind configv1.ClusterStatusConditionType,
	status configv1.ConditionStatus,
) (is bool, took time.Duration) {
	found := condition(all, kind)
	if found == nil || found.Status != status {
		return false, 0
	}
	return true, c.Now.Sub(found.LastTransitionTime.Time)
}

// typeFailing is the condition by which CVO reports that it cannot apply a release.
const typeFailing configv1.ClusterStatusConditionType = "Failing"

func (c Cluster) failing() (reason, message string) {
	if is, took := c.has(c.Version.Status.Conditions, typeFailing, configv1.ConditionTrue); is && took > baseline.MaxFailing {
		return v1alpha1.ReasonUpdateFailing, "the cluster-version operator reports: " +
			words.External(condition(c.Version.Status.Conditions, typeFailing).Message)
	}
	return "", ""
}

func (c Cluster) updating() (reason, message string) {
	status := c.Version.Status
	progressing, _ := c.has(status.Conditions, configv1.OperatorProgressing, configv1.ConditionTrue)
	failing, _ := c.has(status.Conditions, typeFailing, configv1.ConditionTrue)
	incomplete := len(status.History) == 0 || status.History[0].State != configv1.CompletedUpdate ||
		status.History[0].Image != status.Desired.Image
	switch {
	case failing:
		return v1alpha1.ReasonSettling, "the cluster-version operator has reported a failure for less than " + baseline.MaxFailing.String()
	case progressing || incomplete:
		return v1alpha1.ReasonUpdating, fmt.Sprintf("the cluster-version operator is updating to %s", words.External(status.Desired.Version))
	}
	return "", ""
}

func (c Cluster) unread() (reason, message string) {
	if c.Unread != "" {
		return v1alpha1.ReasonNotRead, words.External(c.Unread)
	}
	return "", ""
}

func (c Cluster) paused() []string {
	var names []string
	for i := range c.Pools {
		if c.Pools[i].Spec.Paused {
			names = append(names, c.Pools[i].Name)
		}
	}
	return names
}

func (c Cluster) pools() (reason, message string) {
	var degraded, updating []string
	for i := range c.Pools {
		pool := &c.Pools[i]
		outdated := settling.Outdated(pool)
		switch {
		case isDegraded(pool):
			degraded = append(degraded, pool.Name)
		case !pool.Spec.Paused && outdated != "":
			updating = append(updating, outdated)
		}
	}
	switch {
	case len(degraded) > 0:
		return v1alpha1.ReasonPoolDegraded, "degraded MachineConfigPools: " + words.List(degraded, maxNames)
	case len(updating) > 0:
		return v1alpha1.ReasonPoolsUpdating, "MachineConfigPools that are not updated: " + words.List(updating, maxNames)
	}
	return "", ""
}

func isDegraded(pool *machineconfigurationv1.MachineConfigPool) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(each machineconfigurationv1.MachineConfigPoolCondition) bool {
		return each.Type == machineconfigurationv1.MachineConfigPoolDegraded && each.Status == corev1.ConditionTrue
	})
}

func (c Cluster) operators() (reason, message string) {
	var failed, unsettled []string
	for i := range c.Operators {
		operator := &c.Operators[i]
		down, downFor := c.has(operator.Status.Conditions, configv1.OperatorAvailable, configv1.ConditionFalse)
		degraded, degradedFor := c.has(operator.Status.Conditions, configv1.OperatorDegraded, configv1.ConditionTrue)
		switch {
		case downFor > baseline.MaxUnavailable || degradedFor > baseline.MaxDegraded:
			failed = append(failed, operator.Name)
		case down || degraded || settling.Behind(operator, c.Version.Status.Desired.Version) || settling.Progressing(operator):
			unsettled = append(unsettled, operator.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return v1alpha1.ReasonOperatorUnhealthy, "ClusterOperators that are unavailable or degraded: " + words.List(failed, maxNames)
	case len(unsettled) > 0:
		return v1alpha1.ReasonSettling, "ClusterOperators that have not settled: " + words.List(unsettled, maxNames)
	}
	return "", ""
}

// Read returns the state of a cluster with that ClusterVersion: for a guest with the hosted cluster in its management
// cluster, which is nil for other clusters. It includes the causes of everything that could not be read, or that an
// archive lacks. A guest alone was not read: its NodePools are in the management cluster.
func Read(ctx context.Context, present *snapshot.Cluster, of *hypershift.State, version *configv1.ClusterVersion, now time.Time) Cluster {
	read := Cluster{Now: now, Version: version, Hosted: of}
	ctx, gaps := gap.Track(ctx)
	topology, err := present.Topology(ctx)
	switch {
	case err != nil:
		read.Unread = fmt.Sprintf("could not read where the control plane runs: %v", err)
		return read
	case topology == snapshot.HyperShift && of == nil:
		read.Unread = "the NodePools of a hosted cluster are in its management cluster, so it is unknown whether its " +
			"nodes are updated"
		return read
	}
	var operatorsErr, poolsErr error
	read.Operators, operatorsErr = present.ClusterOperators(ctx)
	if of == nil {
		read.Pools, poolsErr = present.MachineConfigPools(ctx)
	} else {
		poolsErr = of.PoolsError
	}
	err = errors.Join(operatorsErr, poolsErr, missing(gaps))
	if err == nil && (len(read.Operators) == 0 || len(read.Pools) == 0 && of == nil) {
		err = errors.New("there are none, although every OpenShift cluster has some")
	}
	if err != nil {
		read.Unread = "could not read the operators and pools of the cluster: " + err.Error()
	}
	return read
}

// missing is the error about what an archive lacks; nil where it lacks nothing.
func missing(gaps *gap.Log) error {
	var all []error
	for _, each := range gaps.All() {
		all = append(all, fmt.Errorf("the archive has %s", each))
	}
	return errors.Join(all...)
}

// Since returns since when [Of] has been True for a cluster, as far as its objects contain times: the end of the
// update, or the last change of a condition on which it depends. It is zero if the end of the update has no time.
func Since(cluster Cluster) time.Time {
	history := cluster.Version.Status.History
	if len(history) == 0 || history[0].CompletionTime.IsZero() {
		return time.Time{}
	}
	times := []time.Time{history[0].CompletionTime.Time}
	times = append(times, changes(cluster.Version.Status.Conditions, typeFailing, configv1.OperatorProgressing)...)
	for i := range cluster.Operators {
		times = append(times, changes(cluster.Operators[i].Status.Conditions, configv1.OperatorAvailable, configv1.OperatorDegraded,
			configv1.OperatorProgressing)...)
	}
	for i := range cluster.Pools {
		times = append(times, poolChanges(&cluster.Pools[i])...)
	}
	times = append(times, cluster.hostedChanges()...)
	return slices.MaxFunc(times, time.Time.Compare)
}

// changes are the times of the last changes of these conditions.
func changes(all []configv1.ClusterOperatorStatusCondition, kinds ...configv1.ClusterStatusConditionType) []time.Time {
	var times []time.Time
	for _, kind := range kinds {
		if found := condition(all, kind); found != nil {
			times = append(times, found.LastTransitionTime.Time)
		}
	}
	return times
}

// poolChanges are the times of the last changes of the conditions on which a pool depends.
func poolChanges(pool *machineconfigurationv1.MachineConfigPool) []time.Time {
	var times []time.Time
	for _, each := range pool.Status.Conditions {
		if each.Type == machineconfigurationv1.MachineConfigPoolUpdated || each.Type == machineconfigurationv1.MachineConfigPoolDegraded {
			times = append(times, each.LastTransitionTime.Time)
		}
	}
	return times
}

// rollout are the NodePools in the rollout of the release that the cluster runs.
func (c Cluster) rollout() settling.NodePools {
	desired := c.Version.Status.Desired
	return settling.NodePoolsOf(c.Hosted, configv1.Release{Version: desired.Version, Image: desired.Image}, c.Now)
}

// nodePools is about the NodePools that follow the control plane.
func (c Cluster) nodePools() (reason, message string) {
	if c.Hosted == nil {
		return "", ""
	}
	var failed []string
	for i := range c.Hosted.Pools {
		pool := &c.Hosted.Pools[i]
		for _, condition := range hostedcondition.UnmetOfPool(pool) {
			if condition.Reason == hostedcondition.InPlaceFailed {
				failed = append(failed, pool.Name)
				break
			}
		}
	}
	outdated := c.rollout().Outdated
	switch {
	case len(failed) > 0:
		return v1alpha1.ReasonPoolDegraded, "NodePools whose update in place has failed: " + words.List(failed, maxNames)
	case len(outdated) > 0:
		return v1alpha1.ReasonPoolsUpdating, "NodePools that are not updated: " + words.List(outdated, maxNames)
	}
	return "", ""
}

// hosted is about the conditions of the HostedCluster and of the NodePools that were updated: the ClusterOperators of a guest do
// not have the health of its control plane.
func (c Cluster) hosted() (reason, message string) {
	if c.Hosted == nil {
		return "", ""
	}
	var failed, unsettled []string
	sort := func(object string, unmet []metav1.Condition) {
		for _, condition := range unmet {
			text := fmt.Sprintf("%s (%s)", object, condition.Type)
			if condition.Status != "" && c.Now.Sub(condition.LastTransitionTime.Time) > baseline.MaxDegraded {
				failed = append(failed, text)
			} else {
				unsettled = append(unsettled, text)
			}
		}
	}
	sort("HostedCluster "+c.Hosted.Cluster.Name, hostedcondition.Unmet(c.Hosted.Cluster))
	for _, pool := range c.rollout().Updated {
		sort("NodePool "+pool.Name, hostedcondition.UnmetOfPool(pool))
	}
	switch {
	case len(failed) > 0:
		return v1alpha1.ReasonOperatorUnhealthy,
			"unhealthy for more than " + baseline.MaxDegraded.String() + ": " + words.List(failed, maxNames)
	case len(unsettled) > 0:
		return v1alpha1.ReasonSettling, "not settled: " + words.List(unsettled, maxNames)
	}
	return "", ""
}

// hostedChanges are the times of the last changes of the conditions on which a hosted cluster depends.
func (c Cluster) hostedChanges() []time.Time {
	if c.Hosted == nil {
		return nil
	}
	var times []time.Time
	for _, each := range hostedcondition.OfControlPlane() {
		if found := meta.FindStatusCondition(c.Hosted.Cluster.Status.Conditions, each.Condition); found != nil {
			times = append(times, found.LastTransitionTime.Time)
		}
	}
	for _, pool := range c.rollout().Updated {
		times = append(times, settling.UpdateEnd(pool))
	}
	return times
}
