package clusterversion_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestRollback(t *testing.T) {
	const name = "ClusterVersionRollback"
	low := one(name, preflight.Fail, "LowDesiredVersion")
	runRows(t, clusterversion.Rollback, map[string]row{
		"Forward": {
			reason: "a later release is no rollback", cluster: checktest.At("4.18.3"), to: "4.18.9",
			want: one(name, preflight.Pass, "NotBefore"), message: []string{"4.18.9 is not before 4.18.3"},
		},
		"Previous": {
			reason: "the previous release, in the same minor version", cluster: checktest.At("4.18.9", "4.18.3"), to: "4.18.3",
			want: one(name, preflight.Warn, "PreviousRelease"),
		},
		"Older": {
			reason: "an earlier release than the previous one", cluster: checktest.At("4.18.9", "4.18.5", "4.18.3"), to: "4.18.3", want: low,
			message: []string{"4.18.3 is less than the current target 4.18.9", checktest.PullSpec("4.18.5")}, remedy: []string{"Targets"},
		},
		"Minor": {
			reason: "the previous release, in another minor version", cluster: checktest.At("4.18.3", "4.17.9"), to: "4.17.9",
			want: low,
		},
		"Oldest": {
			reason: "the CVO of 4.13 allows no rollback", cluster: checktest.At("4.13.9", "4.13.3"), to: "4.13.3", want: low,
			message: []string{"rollbacks and downgrades are not recommended"},
		},
		"Early": {
			reason: "the CVO of 4.14 allows it since January 2024", cluster: checktest.At("4.14.7", "4.14.3"), to: "4.14.3",
			want: one(name, preflight.Unknown, "LowDesiredVersion"),
		},
		"In4.14": {
			reason: "the CVO of 4.14 allows it since January 2024", cluster: checktest.At("4.14.12", "4.14.3"), to: "4.14.3",
			want: one(name, preflight.Warn, "PreviousRelease"),
		},
		"In4.15": {
			reason: "the CVO of 4.15 allows it since the first release", cluster: checktest.At("4.15.9", "4.15.3"), to: "4.15.3",
			want: one(name, preflight.Warn, "PreviousRelease"),
		},
		"Between": {
			reason: "some releases of the CVO of 4.16 allow it", cluster: checktest.At("4.16.9", "4.16.3"), to: "4.16.3",
			want: one(name, preflight.Unknown, "LowDesiredVersion"),
		},
		"Retarget": {
			reason:  "earlier than the release in progress, although later than the completed one",
			cluster: checktest.Toward("4.18.3", "4.18.9"), to: "4.18.5", want: low,
		},
	})
}

func TestGiantHop(t *testing.T) {
	const name = "ClusterVersionGiantHop"
	many := one(name, preflight.Fail, "MultipleMinorVersionsUpdate")
	pass := one(name, preflight.Pass, "OneHop")
	runRows(t, clusterversion.GiantHop, map[string]row{
		"Patch": {reason: "a patch update is no hop", cluster: checktest.At("4.20.3"), to: "4.20.9", want: pass},
		"Minor": {reason: "the next minor version is one hop", cluster: checktest.At("4.20.3"), to: "4.21.0", want: pass},
		"Two": {
			reason: "the remedy lists the hops, and the message what to check at each", cluster: checktest.At("4.19.3"), to: "4.22.0", want: many,
			message: []string{"(4.22 > 4.(19+1))", "hop by hop"}, remedy: []string{"Update to 4.20, then 4.21, then 4.22", "Targets"},
		},
		"Unchecked": {
			reason: "the rule is older than the precondition", cluster: checktest.At("4.16.3"), to: "4.18.0", want: many,
			message: []string{"does not check this yet"},
		},
		"Partly": {
			reason: "some releases of the CVO of 4.18 check it", cluster: checktest.At("4.18.3"), to: "4.20.0", want: many,
			message: []string{"Some releases"},
		},
		"SkipIn5": {reason: "CVO blocks skip-level updates", cluster: checktest.At("5.0.3"), to: "5.2.0", want: many},
		"Far": {
			reason: "too many hops to list", cluster: checktest.At("4.19.3"), to: "4.99.0", want: many,
			remedy: []string{"minor versions in between"},
		},
		"Major": {reason: "4.22 can be updated to 5.0", cluster: checktest.At("4.22.3"), to: "5.0.0", want: pass},
		"Major5.1": {
			reason: "no 4.y can be updated to 5.1", cluster: checktest.At("4.23.3"), to: "5.1.0",
			want: one(name, preflight.Fail, "MajorVersionUpdate"),
		},
		"Early": {
			reason: "the CVO of 4.20 does not know 5.0", cluster: checktest.At("4.20.3"), to: "5.0.0",
			want: one(name, preflight.Fail, "MajorVersionUpdate"),
		},
		"Retarget": {
			reason: "the hop is measured from the release in progress", cluster: checktest.Toward("4.19.3", "4.20.2"), to: "4.21.1",
			want: pass,
		},
	})
}

func TestUpgradeable(t *testing.T) {
	const name = "ClusterVersionUpgradeable"
	ack := func(cluster *configv1.ClusterVersion) *configv1.ClusterVersion {
		return checktest.With(cluster, configv1.OperatorUpgradeable, configv1.ConditionFalse, "AdminAckRequired",
			"Kubernetes 1.33 removes an API.\nSee https://example.com/kb.")
	}
	skipped := one(name, preflight.Skipped, "NotConcerned")
	old := checktest.With(checktest.At("4.14.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons",
		"Cluster should not be upgraded between minor versions for multiple reasons: AdminAckRequired,ClusterVersionOverridesSet")
	old = checktest.With(old, "UpgradeableAdminAckRequired", configv1.ConditionFalse, "AdminAckRequired", "Acknowledge the removal.")
	old = checktest.With(old, "UpgradeableClusterVersionOverrides", configv1.ConditionFalse, "ClusterVersionOverridesSet",
		"Remove the overrides.")
	multiple := "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* Acknowledge the removal.\n* Wait."
	runRows(t, clusterversion.Upgradeable, map[string]row{
		"Absent": {
			reason: "CVO removes the condition when nothing blocks", cluster: checktest.At("4.18.3"), to: "4.19.0",
			want: one(name, preflight.Pass, "Upgradeable"),
		},
		"True": {reason: "the condition is True", cluster: checktest.With(checktest.At("4.18.3"), configv1.OperatorUpgradeable,
			configv1.ConditionTrue, "", ""), to: "4.19.0", want: one(name, preflight.Pass, "Upgradeable")},
		"False": {
			reason: "the reason and the message are CVO's", cluster: ack(checktest.At("4.18.3")), to: "4.19.0",
			want:    one(name, preflight.Fail, "AdminAckRequired"),
			message: []string{"Kubernetes 1.33 removes an API.\nSee https://example.com/kb."}, remedy: []string{"leave 4.18"},
		},
		"Patch": {
			reason: "patch updates are not blocked", cluster: ack(checktest.At("4.18.3")), to: "4.18.9", want: skipped,
			message: []string{"Upgradeable=False", "within 4.18"},
		},
		"Unknown": {
			reason: "CVO accepts the update, but the check is inconclusive",
			cluster: checktest.With(checktest.At("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionUnknown, "EvaluationFailed",
				"Could not list."), to: "5.1.0",
			want: one(name, preflight.Unknown, "EvaluationFailed"), message: []string{"Could not list."},
		},
		"UnknownPatch": {reason: "patch updates are not concerned", cluster: checktest.With(checktest.At("5.0.3"), configv1.OperatorUpgradeable,
			configv1.ConditionUnknown, "", ""), to: "5.0.9", want: skipped},
		"SeparateConditions": {
			reason: "up to 4.22 the causes are separate conditions, and all are in the message", cluster: old, to: "4.15.0",
			want: one(name, preflight.Fail, "UpgradeableFalse"),
			message: []string{"multiple reasons: AdminAckRequired,ClusterVersionOverridesSet\n* AdminAckRequired: Acknowledge the " +
				"removal.\n* ClusterVersionOverridesSet: Remove the overrides."},
		},
		"CausesInTheMessage": {
			reason: "later the causes are in the message, and are not repeated", to: "5.1.0", want: one(name, preflight.Fail, "UpgradeableFalse"),
			message: []string{multiple + "\n"},
			cluster: checktest.With(checktest.At("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons", multiple),
		},
		"Unexplained": {
			reason:  "a condition without a reason and a message",
			cluster: checktest.With(checktest.At("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "", ""), to: "5.1.0",
			want: one(name, preflight.Fail, "Unexplained"), message: []string{"without a message"},
		},
		"Retarget": {
			reason:  "4.7.z to 4.7.z+n while 4.6 to 4.7.z is in progress is not blocked",
			cluster: ack(checktest.Toward("4.18.3", "4.19.2")), to: "4.19.5", want: skipped,
		},
		"OldRetarget": {
			reason: "up to 4.16 CVO refuses the retarget", cluster: ack(checktest.Toward("4.15.3", "4.16.2")), to: "4.16.5",
			want: one(name, preflight.Fail, "AdminAckRequired"),
		},
		"Uncertain": {
			reason: "some releases of the CVO of 4.17 refuse the retarget", cluster: ack(checktest.Toward("4.16.3", "4.17.2")),
			to: "4.17.5", want: one(name, preflight.Unknown, "AdminAckRequired"), message: []string{"some releases"},
		},
		"Next": {
			reason: "4.7 to 4.8 while 4.6 to 4.7 is in progress", cluster: ack(checktest.Toward("4.18.3", "4.19.2")), to: "4.20.5",
			want: one(name, preflight.Fail, "AdminAckRequired"),
		},
	})
}

func TestOverrides(t *testing.T) {
	const name = "ClusterVersionOverrides"
	override := func(cluster *configv1.ClusterVersion, unmanaged ...bool) *configv1.ClusterVersion {
		for _, unmanaged := range unmanaged {
			cluster.Spec.Overrides = append(cluster.Spec.Overrides, configv1.ComponentOverride{
				Kind: "Deployment", Group: "apps", Namespace: "openshift-monitoring", Name: "operator" + string(rune('a'+len(cluster.Spec.Overrides))),
				Unmanaged: unmanaged,
			})
		}
		return cluster
	}
	pass := one(name, preflight.Pass, "NothingUnmanaged")
	cluster := override(checktest.At("4.18.3"))
	cluster.Spec.Overrides = []configv1.ComponentOverride{{
		Kind: "ClusterRole", Group: "rbac.authorization.k8s.io", Name: "reader",
		Unmanaged: true,
	}}
	const set = "ClusterVersionOverridesSet"
	runRows(t, clusterversion.Overrides, map[string]row{
		"None": {reason: "no overrides", cluster: checktest.At("4.18.3"), to: "4.19.0", want: pass},
		"Managed": {
			reason: "an override that leaves the object managed", cluster: override(checktest.At("4.18.3"), false), to: "4.19.0",
			want: pass,
		},
		"Unmanaged": {
			reason:  "the message names the objects, and the remedy removes the overrides",
			cluster: override(checktest.At("4.18.3"), false, true, true), to: "4.19.0", want: one(name, preflight.Fail, set),
			message: []string{"2 objects", "Deployment openshift-monitoring/operatorb, Deployment openshift-monitoring/operatorc", "leave 4.18"},
			remedy:  []string{`oc patch clusterversion version --type json --patch '[{"op":"remove","path":"/spec/overrides"}]'`},
		},
		"ClusterScoped": {
			reason: "an object without a namespace", cluster: cluster, to: "4.19.0", want: one(name, preflight.Fail, set),
			message: []string{`ClusterRole "reader"`},
		},
		"Many": {
			reason:  "the message names ten, and counts the others",
			cluster: override(checktest.At("4.18.3"), true, true, true, true, true, true, true, true, true, true, true, true), to: "4.19.0",
			want: one(name, preflight.Fail, set), message: []string{"12 objects", "and 2 more"},
		},
		"OldPatch": {
			reason: "up to 4.21 CVO refuses patch updates too", cluster: override(checktest.At("4.21.3"), true), to: "4.21.9",
			want: one(name, preflight.Fail, set), message: []string{"up to 4.21"},
		},
		"Patch": {
			reason: "from 4.22 on CVO warns of patch updates", cluster: override(checktest.At("4.22.3"), true), to: "4.22.9",
			want: one(name, preflight.Warn, set), message: []string{"does not block updates within 4.22"},
		},
	})
}

func TestUpdating(t *testing.T) {
	const name = "ClusterVersionUpdating"
	busy, next := one(name, preflight.Fail, "UpdateInProgress"), one(name, preflight.Warn, "MinorVersionClusterUpdateInProgress")
	unreported := without(checktest.Toward("4.18.3", "4.19.2"), configv1.OperatorProgressing)
	installing := without(checktest.At("4.18.3"), configv1.OperatorProgressing)
	installation := checktest.With(checktest.At("4.18.3"), configv1.OperatorProgressing, configv1.ConditionTrue, "",
		"Working towards 4.18.3: 113 of 902 done (12% complete)")
	installation.Status.History[0].State = configv1.PartialUpdate
	runRows(t, clusterversion.Updating, map[string]row{
		"Idle": {
			reason: "no update in progress", cluster: checktest.At("4.18.3"), to: "4.19.0",
			want: one(name, preflight.Pass, "NotUpdating"),
		},
		"NoCondition": {
			reason: "CVO treats an absent condition as no update, and the history has none", cluster: installing, to: "4.19.0",
			want: one(name, preflight.Pass, "NotUpdating"),
		},
		"Next": {
			reason: "4.6.z to 4.7.z', then 4.8.z\" before 4.7.z' is complete", cluster: checktest.Toward("4.6.9", "4.7.2"), to: "4.8.1", want: busy,
			message: []string{
				"the update from 4.6.9 to 4.7.2 is in progress (Working towards 4.7.2", "4.8.1 would leave 4.7",
				"updates within 4.7 are not blocked",
			},
			remedy: []string{"Let the update complete", "oc adm upgrade"},
		},
		"NextAfterRetarget": {
			reason: "4.6.z to 4.7.z to 4.7.z+n to 4.8.z, without 4.7.z completed", cluster: checktest.Toward("4.6.9", "4.7.2", "4.7.5"), to: "4.8.1",
			want:    busy,
			message: []string{"from 4.6.9 to 4.7.5"},
		},
		"PatchThenMinor": {
			reason:  "a patch update in progress blocks the next minor version too",
			cluster: checktest.Toward("4.14.15", "4.14.35"), to: "4.15.29", want: busy,
		},
		"Retarget": {
			reason: "4.7.z to 4.7.z+n is not blocked", cluster: available(checktest.Toward("4.18.3", "4.19.2"),
				configv1.Release{Version: "4.19.5", Image: "quay.io/a@sha256:1"}), to: "4.19.5", want: next,
			message: []string{"would be retargeted to 4.19.5"}, remedy: []string{"the update to 4.19.5 retargets it"},
		},
		"RetargetMajor": {
			reason: "a retarget across a major version is not blocked", cluster: checktest.Toward("4.22.3", "5.0.1"), to: "5.0.2",
			want: one(name, preflight.Warn, "MajorVersionClusterUpdateInProgress"),
		},
		"RetargetPatch": {
			reason: "a retarget of a patch update is not blocked", cluster: checktest.Toward("4.18.3", "4.18.5"), to: "4.18.6",
			want: one(name, preflight.Warn, "PatchVersionUpdateInProgress"),
		},
		"Same": {
			reason: "the update in progress is the one to the target", cluster: checktest.Toward("4.18.3", "4.19.2"), to: "4.19.2",
			want: one(name, preflight.Warn, "UpdateInProgress"), message: []string{"leads to the target"},
		},
		"Installing": {
			reason: "no release is complete", cluster: installation, to: "4.19.0", want: busy,
			message: []string{"the installation of 4.18.3 is in progress (", "4.19.0 would leave 4.18"},
		},
		"OtherImage": {
			reason: "the release in progress has the version of the completed one", cluster: checktest.Toward("4.18.3", "4.18.3"),
			to: "4.19.0", want: busy, message: []string{"the update to another image of 4.18.3 is in progress"},
		},
		"PartialHistory": {
			reason: "the history reports the update, the condition does not", cluster: unreported, to: "4.20.0", want: busy,
			message: []string{"Partial"},
		},
		"Completed": {
			reason: "4.7.z+n is complete, so 4.8.z is the next hop", cluster: checktest.At("4.7.5", "4.7.2", "4.6.9"), to: "4.8.1",
			want: one(name, preflight.Pass, "NotUpdating"),
		},
	})
}

func TestDeletion(t *testing.T) {
	const name = "ResourceDeletionInProgress"
	const old = "Cluster minor level upgrades are not allowed while resource deletions are in progress; resources=service \"a/b\""
	const since = "Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job " +
		"\"c/d\",pod \"e/f\""
	deleting := one(name, preflight.Fail, "ResourceDeletesInProgress")
	own := checktest.With(checktest.At("4.18.3"), "UpgradeableDeletesInProgress", configv1.ConditionFalse, "ResourceDeletesInProgress", old)
	runRows(t, clusterversion.Deletion, map[string]row{
		"None": {
			reason: "no condition reports a deletion", cluster: checktest.At("4.18.3"), to: "4.19.0",
			want: one(name, preflight.Pass, "NothingDeleted"),
		},
		"Own": {
			reason: "up to 4.22 CVO has a separate condition", cluster: own, to: "4.19.0", want: deleting,
			message: []string{`service "a/b"`, "leave 4.18"}, remedy: []string{"finalizer", "Run oc -n a get service b -o yaml"},
		},
		"Alone": {reason: "later the deletion is in Upgradeable", cluster: checktest.With(checktest.At("5.0.3"), configv1.OperatorUpgradeable,
			configv1.ConditionFalse, name, since), to: "5.1.0", want: deleting, message: []string{`pod "e/f"`}},
		"Among": {reason: "the deletion is one of several causes", cluster: checktest.With(checktest.At("5.0.3"), configv1.OperatorUpgradeable,
			configv1.ConditionFalse, "MultipleReasons", "for multiple reasons:\n* "+since+"\n* Wait."), to: "5.1.0", want: deleting},
		"Other": {reason: "another cause is no deletion", cluster: checktest.With(checktest.At("5.0.3"), configv1.OperatorUpgradeable,
			configv1.ConditionFalse, "AdminAckRequired", "Do it."), to: "5.1.0", want: one(name, preflight.Pass, "NothingDeleted")},
		"Unknown": {
			reason: "ClusterVersionUpgradeable reports that CVO could not evaluate it", cluster: checktest.With(checktest.At("5.0.3"),
				configv1.OperatorUpgradeable, configv1.ConditionUnknown, "EvaluationFailed", ""), to: "5.1.0",
			want: one(name, preflight.Skipped, "EvaluationFailed"),
		},
		"Patch": {
			reason: "patch updates are not blocked", cluster: own.DeepCopy(), to: "4.18.9",
			want: one(name, preflight.Skipped, "NotConcerned"),
		},
	})
}
