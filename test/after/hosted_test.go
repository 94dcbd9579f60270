package after_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/test/after"
)

// The update of a control plane is judged with its HostedCluster and its NodePools.
func TestHostedCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// before changes the cluster before its update, and change after it.
		before, change func(w *after.World)
		want           afterupdate.Decision
		// worse are the regressions, and stated is a part of the message or of a notice.
		worse  []string
		stated string
	}{
		"Good": {
			reason: "its nodes have other names, and the pool that stays is named", want: afterupdate.Good,
			stated: "pools that the rollout does not update are left out: stable (it requests another release, but runs 4.18.1)",
		},
		"Progressing": {reason: "HyperShift does not complete the update", change: condition(after.HostedCluster(), "Progressing", "True",
			"Progressing"), want: afterupdate.Regressed, worse: []string{"HostedCluster clusters/example NotUpdated"}},
		"Blocked": {reason: "another condition keeps HyperShift from completing it", change: condition(after.HostedCluster(), "Progressing",
			"False", "Blocked"), want: afterupdate.Regressed, worse: []string{"HostedCluster clusters/example NotReconciled"}},
		"Override": {
			reason: "spec.release is not the release of the control plane, by choice", want: afterupdate.Good,
			change: func(w *after.World) {
				w.Put(after.HostedCluster(), "spec.controlPlaneRelease", map[string]any{"image": "quay.io/other:1"})
				w.Condition(after.HostedCluster(), "Progressing", "True", "Progressing", 100*time.Minute)
			},
		},
		"Etcd": {
			reason: "etcd has no quorum", change: condition(after.HostedCluster(), "EtcdAvailable", "False", "QuorumLost"),
			want: afterupdate.Regressed, worse: []string{"HostedCluster clusters/example Unavailable"},
		},
		"Degraded": {reason: "a component has unavailable replicas", change: condition(after.HostedCluster(), "Degraded", "True",
			"UnavailableReplicas"), want: afterupdate.Regressed, worse: []string{"HostedCluster clusters/example Degraded"}},
		"Connection": {
			reason: "the nodes do not reach the control plane", change: condition(after.HostedCluster(),
				"DataPlaneConnectionAvailable", "False", "NoWorker"), want: afterupdate.Regressed,
			worse: []string{"HostedCluster clusters/example NotConnected"},
		},
		"Paused": {
			reason: "a pause is a decision", change: condition(after.HostedCluster(), "ReconciliationActive", "False", "Paused"),
			want: afterupdate.Good,
		},
		"BadBefore": {
			reason: "it was degraded before", before: condition(after.HostedCluster(), "Degraded", "True", "UnavailableReplicas"),
			want: afterupdate.Good,
		},
		"Replacing": {
			reason: "machines are replaced, the last one lately", want: afterupdate.Settling,
			stated: "NodePools that are not updated: workers", change: func(w *after.World) {
				w.Put(after.Workers(), "status.version", after.From)
				w.Condition(after.Workers(), "UpdatingVersion", "True", "AsExpected", 100*time.Minute)
				w.Condition(after.Workers(), "AllMachinesReady", "False", "Provisioning", 90*time.Minute)
				w.Put(after.Ref{Kind: "Node", Name: "next-2"}, "metadata.creationTimestamp", w.At(10*time.Minute))
			},
		},
		"Stuck": {
			reason: "no machine was replaced for an hour", want: afterupdate.Regressed,
			worse: []string{"NodePool clusters/workers NotUpdated"}, change: func(w *after.World) {
				w.Put(after.Workers(), "status.version", after.From)
				w.Condition(after.Workers(), "UpdatingVersion", "True", "AsExpected", 100*time.Minute)
			},
		},
		"InPlaceFailed": {
			reason: "the update of a node in place has failed", want: afterupdate.Regressed,
			worse: []string{"NodePool clusters/workers Degraded"}, change: func(w *after.World) {
				w.Put(after.Workers(), "status.version", after.From)
				w.Condition(after.Workers(), "UpdatingVersion", "False", "InplaceUpgradeFailed", 100*time.Minute)
			},
		},
		"Machines": {reason: "a machine is not ready after the update", change: condition(after.Workers(), "AllMachinesReady", "False",
			"InstanceTerminated"), want: afterupdate.Regressed, worse: []string{"NodePool clusters/workers MachinesNotReady"}},
		"Skew": {reason: "the control plane has left the pool behind", change: condition(after.Stable(), "SupportedVersionSkew", "False",
			"UnsupportedSkew"), want: afterupdate.Regressed, worse: []string{"NodePool clusters/stable VersionSkew"}},
		"Refused": {reason: "HyperShift refuses the release of the pool", change: condition(after.Stable(), "ValidReleaseImage", "False",
			"InvalidImage"), want: afterupdate.Regressed, worse: []string{"NodePool clusters/stable NotReconciled"}},
		"Scaled": {reason: "the machine that its owner added is not ready", want: afterupdate.Good, change: func(w *after.World) {
			w.Put(after.Stable(), "spec.replicas", 4)
			w.Condition(after.Stable(), "AllMachinesReady", "False", "NoCapacity", 100*time.Minute)
		}},
		"PoolPaused": {
			reason: "its administrator has paused it during its update", want: afterupdate.Good, stated: "workers (paused)",
			change: func(w *after.World) {
				w.Put(after.Workers(), "status.version", after.From)
				w.Put(after.Workers(), "spec.pausedUntil", "true")
				w.Condition(after.Workers(), "UpdatingVersion", "True", "AsExpected", 100*time.Minute)
			},
		},
		"OnDelete": {
			reason: "its machines are replaced by hand", want: afterupdate.Good,
			stated: "workers (it replaces a machine only when the machine is deleted)", change: func(w *after.World) {
				w.Put(after.Workers(), "status.version", after.From)
				w.Put(after.Workers(), "spec.management.replace.strategy", "OnDelete")
			},
		},
		"NodesByHand": {
			reason: "HyperShift sets the version of the pool alone", want: afterupdate.Good,
			stated: "workers (its nodes are updated by hand)", change: func(w *after.World) {
				w.Put(after.Workers(), "spec.platform.type", "None")
				w.Put(after.Workers(), "status.nodesInfo",
					map[string]any{"nodeVersions": []any{map[string]any{"ocpVersion": after.From, "readyNodeCount": int64(3)}}})
			},
		},
		"PoolDeleted": {
			reason: "an administrator deleted a pool", change: func(w *after.World) { w.Delete(after.Stable()) },
			want: afterupdate.Good, stated: "no longer exist in namespace clusters, deleted by the release or by their owner: NodePool stable",
		},
		"WithoutManagement": {
			reason: "the guest does not show whether its nodes are updated", change: func(w *after.World) { w.Alone(true) },
			want: afterupdate.Undecided, stated: "with --hosted-cluster",
		},
		"BaselineWithoutManagement": {
			reason: "the baseline does not state whether the HostedCluster was good", want: afterupdate.Undecided,
			stated: "HostedCluster, in the baseline", before: func(w *after.World) { w.Alone(true) }, change: func(w *after.World) {
				w.Alone(false)
				w.Condition(after.HostedCluster(), "Degraded", "True", "UnavailableReplicas", 100*time.Minute)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := after.NewHosted(after.Noon())
			if tc.before != nil {
				tc.before(w)
			}
			before := w.Baseline(t)
			w.UpdateHosted()
			if tc.change != nil {
				tc.change(w)
			}
			made := w.Judge(t, before)
			if got := problems(made.Regressions); made.Decision != tc.want || !slices.Equal(got, tc.worse) {
				t.Errorf("%s: %s (%s), regressions %q, want %s with %q; pending %q", tc.reason, made.Decision, made.Message, got, tc.want, tc.worse,
					problems(made.Pending))
			}
			if text := strings.Join(append(append(made.Notices, made.Unread...), made.Message), "\n"); !strings.Contains(text, tc.stated) {
				t.Errorf("%s: %q is not stated:\n%s", tc.reason, tc.stated, text)
			}
		})
	}
}

// condition sets a condition of an object since before the end of the update.
func condition(ref after.Ref, kind, status, reason string) func(*after.World) {
	return func(w *after.World) { w.Condition(ref, kind, status, reason, 130*time.Minute) }
}
