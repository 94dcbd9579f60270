package completion_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/completion"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/apiserver"
)

const (
	version = "4.19.12"
	image   = "quay.io/release@sha256:1111111111111111111111111111111111111111111111111111111111111111"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func since(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus,
	ago time.Duration,
) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{
		Type: kind, Status: status, LastTransitionTime: metav1.NewTime(noon().Add(-ago)),
		Message: "cause",
	}
}

// updated is a cluster that has completed its update and settled.
func updated() completion.Cluster {
	release := configv1.Release{Version: version, Image: image}
	pool := machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 3, 3
	pool.Status.Conditions = []machineconfigurationv1.MachineConfigPoolCondition{{
		Type:   machineconfigurationv1.MachineConfigPoolUpdated,
		Status: corev1.ConditionTrue,
	}}
	operator := configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}
	operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{since(configv1.OperatorAvailable, configv1.ConditionTrue,
		time.Hour), since(configv1.OperatorDegraded, configv1.ConditionFalse, time.Hour)}
	operator.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}, {Name: "etcd", Version: "3.5"}}
	return completion.Cluster{
		Now: noon(),
		Version: &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
			Desired: release, History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: version, Image: image}},
			Conditions: []configv1.ClusterOperatorStatusCondition{since(configv1.OperatorProgressing, configv1.ConditionFalse, time.Hour)},
		}},
		Operators: []configv1.ClusterOperator{operator},
		Pools:     []machineconfigurationv1.MachineConfigPool{pool},
	}
}

func TestOf(t *testing.T) {
	operator := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, ago time.Duration) func(*completion.Cluster) {
		return func(c *completion.Cluster) {
			c.Operators[0].Status.Conditions = []configv1.ClusterOperatorStatusCondition{since(kind, status, ago)}
		}
	}
	cvo := func(kind configv1.ClusterStatusConditionType, ago time.Duration) func(*completion.Cluster) {
		return func(c *completion.Cluster) {
			c.Version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{since(kind, configv1.ConditionTrue, ago)}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*completion.Cluster)
		want   string
		text   string
	}{
		"Updated":     {"everything has settled", func(*completion.Cluster) {}, v1alpha1.ReasonUpdated, version},
		"Progressing": {"CVO applies manifests", cvo(configv1.OperatorProgressing, time.Hour), v1alpha1.ReasonUpdating, version},
		"Partial": {
			"the newest entry of the history is not complete",
			func(c *completion.Cluster) { c.Version.Status.History[0].State = configv1.PartialUpdate }, v1alpha1.ReasonUpdating, "",
		},
		"OtherRelease": {
			"the completed entry is of another release",
			func(c *completion.Cluster) { c.Version.Status.History[0].Image = "other" }, v1alpha1.ReasonUpdating, "",
		},
		"NoHistory": {
			"a new cluster has none", func(c *completion.Cluster) { c.Version.Status.History = nil }, v1alpha1.ReasonUpdating,
			"",
		},
		"FailingShortly": {"CVO recovers from many failures", cvo("Failing", 20*time.Minute), v1alpha1.ReasonSettling, "20m"},
		"Failing":        {"CVO does not recover", cvo("Failing", 21*time.Minute), v1alpha1.ReasonUpdateFailing, "cause"},
		"PoolUpdating": {
			"CVO is done hours before the nodes", func(c *completion.Cluster) { c.Pools[0].Status.UpdatedMachineCount = 1 },
			v1alpha1.ReasonPoolsUpdating, "worker (1 of 3 nodes)",
		},
		"PoolNotReported": {
			"the pool has not noticed its new configuration", func(c *completion.Cluster) { c.Pools[0].Status.Conditions = nil },
			v1alpha1.ReasonPoolsUpdating, "worker",
		},
		"PoolOld": {
			"the status of the pool is of the configuration before the update",
			func(c *completion.Cluster) { c.Pools[0].Generation = 1 }, v1alpha1.ReasonPoolsUpdating, "worker (3 of 3 nodes)",
		},
		"PoolPaused": {"a paused pool never settles", func(c *completion.Cluster) {
			c.Pools[0].Spec.Paused,
				c.Pools[0].Status.UpdatedMachineCount = true, 0
		}, v1alpha1.ReasonUpdated, "paused pools are skipped: worker"},
		"PoolDegraded": {"a node could not be updated", func(c *completion.Cluster) {
			c.Pools[0].Status.Conditions[0].Type = machineconfigurationv1.MachineConfigPoolDegraded
		}, v1alpha1.ReasonPoolDegraded, "worker"},
		"DownShortly": {
			"an operator restarts", operator(configv1.OperatorAvailable, configv1.ConditionFalse, 20*time.Minute),
			v1alpha1.ReasonSettling, "etcd",
		},
		"Down": {
			"an operator does not come back", operator(configv1.OperatorAvailable, configv1.ConditionFalse, 21*time.Minute),
			v1alpha1.ReasonOperatorUnhealthy, "etcd",
		},
		"DegradedShortly": {
			"degraded conditions flap after an update",
			operator(configv1.OperatorDegraded, configv1.ConditionTrue, 40*time.Minute), v1alpha1.ReasonSettling, "etcd",
		},
		"Degraded": {
			"an operator stays degraded", operator(configv1.OperatorDegraded, configv1.ConditionTrue, 41*time.Minute),
			v1alpha1.ReasonOperatorUnhealthy, "etcd",
		},
		"Behind": {
			"an operator may stay at the former version without an error",
			func(c *completion.Cluster) { c.Operators[0].Status.Versions[0].Version = "4.19.3" }, v1alpha1.ReasonSettling, "etcd",
		},
		"RollingOut": {
			"an operator states the release before its rollout ends",
			operator(configv1.OperatorProgressing, configv1.ConditionTrue, time.Hour), v1alpha1.ReasonSettling, "etcd",
		},
		"Own": {"the ClusterOperator of the preflight has the version of its controller", func(c *completion.Cluster) {
			c.Operators[0].Name, c.Operators[0].Status.Versions[0].Version = "update-preflight", "v0.1.0"
			c.Operators[0].Status.Conditions = append(c.Operators[0].Status.Conditions,
				since(configv1.OperatorProgressing, configv1.ConditionTrue, time.Minute))
		}, v1alpha1.ReasonUpdated, ""},
		"Unread": {
			"what could not be read may not have settled", func(c *completion.Cluster) { c.Unread, c.Operators = "timeout", nil },
			v1alpha1.ReasonNotRead, "timeout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := updated()
			tc.change(&cluster)
			got := completion.Of(cluster)
			status := map[string]metav1.ConditionStatus{
				v1alpha1.ReasonUpdated: metav1.ConditionTrue,
				v1alpha1.ReasonNotRead: metav1.ConditionUnknown,
			}[tc.want]
			if status == "" {
				status = metav1.ConditionFalse
			}
			if got.Reason != tc.want || got.Status != status || !strings.Contains(got.Message, tc.text) {
				t.Errorf("%s: want %s %s with %q, got %s %s: %s", tc.reason, status, tc.want, tc.text, got.Status, got.Reason, got.Message)
			}
		})
	}
}

// Without a controller that has watched the cluster, the soak begins at the last change of what it depends on.
func TestSince(t *testing.T) {
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: noon().Add(-ago)} }
	for name, tc := range map[string]struct {
		reason string
		change func(*completion.Cluster)
		want   time.Time
	}{
		"Operator": {"an operator became available an hour ago, after the update", func(*completion.Cluster) {}, noon().Add(-time.Hour)},
		"Pool": {"its nodes were updated after the operators", func(c *completion.Cluster) {
			c.Pools[0].Status.Conditions[0].LastTransitionTime = *at(time.Minute)
		}, noon().Add(-time.Minute)},
		"Rollout": {"an operator has rolled out after it became available", func(c *completion.Cluster) {
			c.Operators[0].Status.Conditions = append(c.Operators[0].Status.Conditions,
				since(configv1.OperatorProgressing, configv1.ConditionFalse, 2*time.Minute))
		}, noon().Add(-2 * time.Minute)},
		"Update": {
			"the release did not change a condition",
			func(c *completion.Cluster) { c.Version.Status.History[0].CompletionTime = at(time.Second) }, noon().Add(-time.Second),
		},
		"NoTime": {"the end is unknown", func(c *completion.Cluster) { c.Version.Status.History[0].CompletionTime = nil }, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := updated()
			cluster.Version.Status.History[0].CompletionTime = at(3 * time.Hour)
			tc.change(&cluster)
			if got := completion.Since(cluster); !got.Equal(tc.want) {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// A guest is updated when its control plane and the NodePools that follow it are, and the HostedCluster is as it should be.
func TestHostedCluster(t *testing.T) {
	set := func(ref after.Ref, kind, status, reason string, since time.Duration) func(*after.World) {
		return func(w *after.World) { w.Condition(ref, kind, status, reason, since) }
	}
	for name, tc := range map[string]struct {
		reason string
		change func(w *after.World)
		// want is the reason of the condition, and stated a part of its message.
		want, stated string
		since        time.Duration
	}{
		"Updated": {
			reason: "the pool that requests another release is left out, and named", want: v1alpha1.ReasonUpdated,
			stated: "skipped: stable (it requests another release, but runs 4.18.1)", since: 80 * time.Minute,
		},
		"Health": {reason: "etcd has been available again for less than the nodes have been updated", change: set(after.HostedCluster(),
			"EtcdAvailable", "True", "AsExpected", 20*time.Minute), want: v1alpha1.ReasonUpdated, since: 20 * time.Minute},
		"Outdated": {
			reason: "its nodes have the release from before", want: v1alpha1.ReasonPoolsUpdating, stated: "workers",
			change: func(w *after.World) {
				w.Put(after.Workers(), "status.version", after.From)
				w.Condition(after.Workers(), "UpdatingVersion", "True", "AsExpected", time.Hour)
			},
		},
		"InPlaceFailed": {
			reason: "HyperShift continues no more", want: v1alpha1.ReasonPoolDegraded, stated: "workers",
			change: func(w *after.World) {
				w.Put(after.Workers(), "status.version", after.From)
				w.Condition(after.Workers(), "UpdatingVersion", "False", "InplaceUpgradeFailed", time.Hour)
			},
		},
		"Etcd": {reason: "it has not been available for long", change: set(after.HostedCluster(), "EtcdAvailable", "False", "QuorumLost",
			time.Hour), want: v1alpha1.ReasonOperatorUnhealthy, stated: "HostedCluster example (EtcdAvailable)"},
		"EtcdLately": {reason: "it may be available soon", change: set(after.HostedCluster(), "EtcdAvailable", "False", "QuorumLost",
			time.Minute), want: v1alpha1.ReasonSettling, stated: "HostedCluster example (EtcdAvailable)"},
		"NoCondition": {reason: "HyperShift does not state it", change: func(w *after.World) {
			w.Put(after.HostedCluster(), "status.conditions",
				[]any{})
		}, want: v1alpha1.ReasonSettling, stated: "HostedCluster example (Available)"},
		"Machine": {reason: "a machine of the pool that was updated is not ready", change: set(after.Workers(), "AllMachinesReady", "False",
			"Provisioning", time.Minute), want: v1alpha1.ReasonSettling, stated: "NodePool workers (AllMachinesReady)"},
		"MachineBeside": {reason: "the pool is no part of the rollout", change: set(after.Stable(), "AllMachinesReady", "False", "Provisioning",
			time.Hour), want: v1alpha1.ReasonUpdated, since: 80 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := after.NewHosted(after.Noon())
			w.UpdateHosted()
			if tc.change != nil {
				tc.change(w)
			}
			read := readHosted(t, w.Server(t), (*hosted.ControlPlane).State)
			got := completion.Of(read)
			if got.Reason != tc.want || !strings.Contains(got.Message, tc.stated) {
				t.Errorf("%s: %s (%s), want %s with %q", tc.reason, got.Reason, got.Message, tc.want, tc.stated)
			}
			if since := after.Noon().Sub(completion.Since(read)); tc.want == v1alpha1.ReasonUpdated && since != tc.since {
				t.Errorf("%s: it has been so for %s, want %s", tc.reason, since, tc.since)
			}
		})
	}
}

// What is unknown about the NodePools is not updated.
func TestHostedClusterThatIsNotRead(t *testing.T) {
	for name, tc := range map[string]struct {
		state func(*hosted.ControlPlane) *hypershift.State
		deny  bool
	}{
		"WithoutManagement": {state: func(*hosted.ControlPlane) *hypershift.State { return nil }},
		"Forbidden":         {state: (*hosted.ControlPlane).State, deny: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := after.NewHosted(after.Noon())
			w.UpdateHosted()
			server := w.Server(t)
			if tc.deny {
				server.Deny(func(_ string, request apiserver.Request) bool { return request.Resource == "nodepools" })
			}
			if got := completion.Of(readHosted(t, server, tc.state)); got.Status != "Unknown" || got.Reason != v1alpha1.ReasonNotRead {
				t.Errorf("%+v, want NotRead", got)
			}
		})
	}
}

func readHosted(t *testing.T, server *apiserver.Server, state func(*hosted.ControlPlane) *hypershift.State) completion.Cluster {
	t.Helper()
	connected, err := cluster.ConnectAt(server.Config(), "test", after.Noon())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := hosted.Open(t.Context(), connected, after.HostedCluster().Namespace, after.HostedCluster().Name)
	if err != nil {
		t.Fatal(err)
	}
	present := snapshot.Of(connected)
	version, err := present.ClusterVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return completion.Read(t.Context(), present, state(opened), version, after.Noon())
}
