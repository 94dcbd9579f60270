package completion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/completion"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/apiserver"
)

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
		"Updated": {reason: "the pool that requests another release is left out, and named", want: v1alpha1.ReasonUpdated, stated: "left out: stable (it requests another release, and has 4.18.1)", since: 80 * time.Minute},
		"Health":  {reason: "etcd has been available again for less than the nodes have been updated", change: set(after.HostedCluster(), "EtcdAvailable", "True", "AsExpected", 20*time.Minute), want: v1alpha1.ReasonUpdated, since: 20 * time.Minute},
		"Outdated": {reason: "its nodes have the release from before", want: v1alpha1.ReasonPoolsUpdating, stated: "workers", change: func(w *after.World) {
			w.Put(after.Workers(), "status.version", after.From)
			w.Condition(after.Workers(), "UpdatingVersion", "True", "AsExpected", time.Hour)
		}},
		"InPlaceFailed": {reason: "HyperShift continues no more", want: v1alpha1.ReasonPoolDegraded, stated: "workers", change: func(w *after.World) {
			w.Put(after.Workers(), "status.version", after.From)
			w.Condition(after.Workers(), "UpdatingVersion", "False", "InplaceUpgradeFailed", time.Hour)
		}},
		"Etcd":          {reason: "it has not been available for long", change: set(after.HostedCluster(), "EtcdAvailable", "False", "QuorumLost", time.Hour), want: v1alpha1.ReasonOperatorUnhealthy, stated: "HostedCluster example (EtcdAvailable)"},
		"EtcdLately":    {reason: "it may be available soon", change: set(after.HostedCluster(), "EtcdAvailable", "False", "QuorumLost", time.Minute), want: v1alpha1.ReasonSettling, stated: "HostedCluster example (EtcdAvailable)"},
		"NoCondition":   {reason: "HyperShift does not state it", change: func(w *after.World) { w.Put(after.HostedCluster(), "status.conditions", []any{}) }, want: v1alpha1.ReasonSettling, stated: "HostedCluster example (Available)"},
		"Machine":       {reason: "a machine of the pool that was updated is not ready", change: set(after.Workers(), "AllMachinesReady", "False", "Provisioning", time.Minute), want: v1alpha1.ReasonSettling, stated: "NodePool workers (AllMachinesReady)"},
		"MachineBeside": {reason: "the pool is no part of the rollout", change: set(after.Stable(), "AllMachinesReady", "False", "Provisioning", time.Hour), want: v1alpha1.ReasonUpdated, since: 80 * time.Minute},
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
