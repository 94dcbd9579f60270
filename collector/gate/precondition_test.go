package gate_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/gate"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestRollback(t *testing.T) {
	const name = "ClusterVersionRollback"
	low := one(name, preflight.Fail, "LowDesiredVersion")
	try(t, gate.Rollback, map[string]row{
		"Forward": {reason: "a later release", cluster: at("4.18.3"), to: "4.18.9", want: one(name, preflight.Pass, "NotBefore"), message: []string{"4.18.9 is not before 4.18.3"}},
		"Previous": {
			reason: "the release before, in the same minor version", cluster: at("4.18.9", "4.18.3"), to: "4.18.3",
			want: one(name, preflight.Warn, "PreviousRelease"),
		},
		"Older": {
			reason: "not the release before", cluster: at("4.18.9", "4.18.5", "4.18.3"), to: "4.18.3", want: low,
			message: []string{"4.18.3 is less than the current target 4.18.9", pullSpec("4.18.5")}, remedy: []string{"oc preflight targets", "--force"},
		},
		"Minor":    {reason: "across a minor version", cluster: at("4.18.3", "4.17.9"), to: "4.17.9", want: low},
		"Oldest":   {reason: "the CVO of 4.15 allows none", cluster: at("4.15.9", "4.15.3"), to: "4.15.3", want: low},
		"Between":  {reason: "some releases of 4.16 allow it", cluster: at("4.16.9", "4.16.3"), to: "4.16.3", want: one(name, preflight.Unknown, "LowDesiredVersion")},
		"Retarget": {reason: "before what the cluster is on its way to, though ahead of what it runs", cluster: toward("4.18.3", "4.18.9"), to: "4.18.5", want: low},
	})
}

func TestGiantHop(t *testing.T) {
	const name = "ClusterVersionGiantHop"
	many := one(name, preflight.Fail, "MultipleMinorVersionsUpdate")
	pass := one(name, preflight.Pass, "OneHop")
	try(t, gate.GiantHop, map[string]row{
		"Patch": {reason: "no hop", cluster: at("4.20.3"), to: "4.20.9", want: pass},
		"Minor": {reason: "one hop", cluster: at("4.20.3"), to: "4.21.0", want: pass},
		"Two": {
			reason: "the way, and what has to be looked at on it", cluster: at("4.19.3"), to: "4.22.0", want: many,
			message: []string{"(4.22 > 4.(19+1))", "hop by hop"}, remedy: []string{"Update to 4.20, then 4.21, then 4.22", "oc preflight targets"},
		},
		"Unchecked": {
			reason: "the rule is older than the precondition", cluster: at("4.16.3"), to: "4.18.0", want: many, message: []string{"does not check that by itself yet"},
		},
		"Partly":   {reason: "some CVOs of 4.18 look", cluster: at("4.18.3"), to: "4.20.0", want: many, message: []string{"Some releases"}},
		"SkipIn5":  {reason: "skip-level is blocked today", cluster: at("5.0.3"), to: "5.2.0", want: many},
		"Far":      {reason: "too far to list", cluster: at("4.19.3"), to: "4.99.0", want: many, remedy: []string{"minor versions between"}},
		"Major":    {reason: "to 5.0", cluster: at("4.22.3"), to: "5.0.0", want: pass},
		"Major5.1": {reason: "not to 5.1", cluster: at("4.23.3"), to: "5.1.0", want: one(name, preflight.Fail, "MajorVersionUpdate")},
		"Early":    {reason: "nor from a CVO that does not know 5.0", cluster: at("4.20.3"), to: "5.0.0", want: one(name, preflight.Fail, "MajorVersionUpdate")},
		"Retarget": {reason: "measured from where the cluster is going", cluster: toward("4.19.3", "4.20.2"), to: "4.21.1", want: pass},
	})
}

func TestUpgradeable(t *testing.T) {
	const name = "ClusterVersionUpgradeable"
	ack := func(cluster *configv1.ClusterVersion) *configv1.ClusterVersion {
		return with(cluster, configv1.OperatorUpgradeable, configv1.ConditionFalse, "AdminAckRequired", "Kubernetes 1.33 removes an API.\nSee https://example.com/kb.")
	}
	skipped := one(name, preflight.Skipped, "NotConcerned")
	old := with(at("4.14.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons",
		"Cluster should not be upgraded between minor versions for multiple reasons: AdminAckRequired,ClusterVersionOverridesSet")
	old = with(old, "UpgradeableAdminAckRequired", configv1.ConditionFalse, "AdminAckRequired", "Acknowledge the removal.")
	old = with(old, "UpgradeableClusterVersionOverrides", configv1.ConditionFalse, "ClusterVersionOverridesSet", "Remove the overrides.")
	multiple := "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* Acknowledge the removal.\n* Wait."
	try(t, gate.Upgradeable, map[string]row{
		"Absent": {reason: "CVO removes it when all is well", cluster: at("4.18.3"), to: "4.19.0", want: one(name, preflight.Pass, "Upgradeable")},
		"True":   {reason: "all is well", cluster: with(at("4.18.3"), configv1.OperatorUpgradeable, configv1.ConditionTrue, "", ""), to: "4.19.0", want: one(name, preflight.Pass, "Upgradeable")},
		"False": {
			reason: "in the words of CVO", cluster: ack(at("4.18.3")), to: "4.19.0", want: one(name, preflight.Fail, "AdminAckRequired"),
			message: []string{"Kubernetes 1.33 removes an API.\nSee https://example.com/kb."}, remedy: []string{"leave 4.18", "--force"},
		},
		"Patch": {reason: "patch updates are not blocked", cluster: ack(at("4.18.3")), to: "4.18.9", want: skipped, message: []string{"Upgradeable=False", "within 4.18"}},
		"Unknown": {
			reason:  "CVO passes what it could not evaluate, and we do not",
			cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionUnknown, "EvaluationFailed", "Could not list."), to: "5.1.0",
			want: one(name, preflight.Unknown, "EvaluationFailed"), message: []string{"Could not list."},
		},
		"UnknownPatch": {reason: "nor is a patch update concerned", cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionUnknown, "", ""), to: "5.0.9", want: skipped},
		"PartsOfTheirOwn": {
			reason: "up to 4.22 the parts are conditions of their own, and none is lost", cluster: old, to: "4.15.0", want: one(name, preflight.Fail, "UpgradeableFalse"),
			message: []string{"multiple reasons: AdminAckRequired,ClusterVersionOverridesSet\n* AdminAckRequired: Acknowledge the removal.\n* ClusterVersionOverridesSet: Remove the overrides."},
		},
		"PartsInTheMessage": {
			reason: "since they are in the message, and are not said twice", to: "5.1.0", want: one(name, preflight.Fail, "UpgradeableFalse"), message: []string{multiple + "\n"},
			cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons", multiple),
		},
		"Wordless": {
			reason: "no reason and no message", cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "", ""), to: "5.1.0",
			want: one(name, preflight.Fail, "Unexplained"), message: []string{"does not say why"},
		},
		"Retarget":    {reason: "4.7.z to 4.7.z+n while 4.6 to 4.7.z is in progress", cluster: ack(toward("4.18.3", "4.19.2")), to: "4.19.5", want: skipped},
		"OldRetarget": {reason: "which CVO refused up to 4.16", cluster: ack(toward("4.15.3", "4.16.2")), to: "4.16.5", want: one(name, preflight.Fail, "AdminAckRequired")},
		"Maybe":       {reason: "and in some releases of 4.17", cluster: ack(toward("4.16.3", "4.17.2")), to: "4.17.5", want: one(name, preflight.Unknown, "AdminAckRequired"), message: []string{"some releases"}},
		"Next":        {reason: "to 4.8 while 4.6 to 4.7 is in progress", cluster: ack(toward("4.18.3", "4.19.2")), to: "4.20.5", want: one(name, preflight.Fail, "AdminAckRequired")},
	})
}

func TestOverrides(t *testing.T) {
	const name = "ClusterVersionOverrides"
	override := func(cluster *configv1.ClusterVersion, unmanaged ...bool) *configv1.ClusterVersion {
		for _, unmanaged := range unmanaged {
			cluster.Spec.Overrides = append(cluster.Spec.Overrides, configv1.ComponentOverride{
				Kind: "Deployment", Group: "apps", Namespace: "openshift-monitoring", Name: "operator" + string(rune('a'+len(cluster.Spec.Overrides))), Unmanaged: unmanaged,
			})
		}
		return cluster
	}
	pass := one(name, preflight.Pass, "NothingUnmanaged")
	cluster := override(at("4.18.3"))
	cluster.Spec.Overrides = []configv1.ComponentOverride{{Kind: "ClusterRole", Group: "rbac.authorization.k8s.io", Name: "reader", Unmanaged: true}}
	const unset = "ClusterVersionOverridesSet"
	try(t, gate.Overrides, map[string]row{
		"None":    {reason: "nothing overridden", cluster: at("4.18.3"), to: "4.19.0", want: pass},
		"Managed": {reason: "an override that leaves it managed is none", cluster: override(at("4.18.3"), false), to: "4.19.0", want: pass},
		"Unmanaged": {
			reason: "names them, and the command that ends it", cluster: override(at("4.18.3"), false, true, true), to: "4.19.0", want: one(name, preflight.Fail, unset),
			message: []string{"2 objects", "Deployment openshift-monitoring/operatorb, Deployment openshift-monitoring/operatorc", "leave 4.18"},
			remedy:  []string{`oc patch clusterversion version --type json --patch '[{"op":"remove","path":"/spec/overrides"}]'`, "--force"},
		},
		"ClusterScoped": {reason: "without a namespace", cluster: cluster, to: "4.19.0", want: one(name, preflight.Fail, unset), message: []string{"ClusterRole reader"}},
		"Many": {
			reason: "the first ten are enough in a sentence", cluster: override(at("4.18.3"), true, true, true, true, true, true, true, true, true, true, true, true), to: "4.19.0",
			want: one(name, preflight.Fail, unset), message: []string{"12 objects", "and 2 more"},
		},
		"OldPatch": {reason: "up to 4.21 CVO refuses patch updates too", cluster: override(at("4.21.3"), true), to: "4.21.9", want: one(name, preflight.Fail, unset), message: []string{"up to 4.21"}},
		"Patch":    {reason: "since it warns", cluster: override(at("4.22.3"), true), to: "4.22.9", want: one(name, preflight.Warn, unset), message: []string{"does not block updates within 4.22"}},
	})
}

func TestUpdating(t *testing.T) {
	const name = "ClusterVersionUpdating"
	busy, next := one(name, preflight.Fail, "UpdateInProgress"), one(name, preflight.Warn, "MinorVersionClusterUpdateInProgress")
	quiet := without(toward("4.18.3", "4.19.2"), configv1.OperatorProgressing)
	installing := without(at("4.18.3"), configv1.OperatorProgressing)
	try(t, gate.Updating, map[string]row{
		"Idle":        {reason: "no update in progress", cluster: at("4.18.3"), to: "4.19.0", want: one(name, preflight.Pass, "NotUpdating")},
		"NoCondition": {reason: "CVO takes an absent condition for no update, and the history agrees", cluster: installing, to: "4.19.0", want: one(name, preflight.Pass, "NotUpdating")},
		"Next": {
			reason: "4.6.z to 4.7.z', then 4.8.z\" before 4.7.z' is complete", cluster: toward("4.6.9", "4.7.2"), to: "4.8.1", want: busy,
			message: []string{"the update from 4.6.9 to 4.7.2 is in progress (Working towards 4.7.2", "4.8.1 would leave 4.7", "updates within 4.7 are not blocked"},
			remedy:  []string{"Let it finish", "oc adm upgrade", "--force"},
		},
		"NextAfterRetarget": {
			reason: "4.6.z to 4.7.z to 4.7.z+n to 4.8.z, when 4.7.z was never complete", cluster: toward("4.6.9", "4.7.2", "4.7.5"), to: "4.8.1", want: busy,
			message: []string{"from 4.6.9 to 4.7.5"},
		},
		"PatchThenMinor":  {reason: "a patch update in progress keeps from leaving the minor version too", cluster: toward("4.14.15", "4.14.35"), to: "4.15.29", want: busy},
		"Retarget":        {reason: "4.7.z to 4.7.z+n is not inhibited", cluster: toward("4.18.3", "4.19.2"), to: "4.19.5", want: next, message: []string{"would be retargeted to 4.19.5"}, remedy: []string{"--allow-upgrade-with-warnings --to 4.19.5"}},
		"RetargetMajor":   {reason: "nor across a major version", cluster: toward("4.22.3", "5.0.1"), to: "5.0.2", want: one(name, preflight.Warn, "MajorVersionClusterUpdateInProgress")},
		"RetargetPatch":   {reason: "nor of a patch update", cluster: toward("4.18.3", "4.18.5"), to: "4.18.6", want: one(name, preflight.Warn, "PatchVersionUpdateInProgress")},
		"Same":            {reason: "the update that is asked about", cluster: toward("4.18.3", "4.19.2"), to: "4.19.2", want: one(name, preflight.Warn, "UpdateInProgress"), message: []string{"it is the one"}},
		"PartialHistory":  {reason: "the history tells of it where the condition does not", cluster: quiet, to: "4.20.0", want: busy, message: []string{"Partial"}},
		"ReallyCompleted": {reason: "4.7.z+n is complete, so 4.8.z is the next hop", cluster: at("4.7.5", "4.7.2", "4.6.9"), to: "4.8.1", want: one(name, preflight.Pass, "NotUpdating")},
	})
}

func TestDeletion(t *testing.T) {
	const name = "ResourceDeletionInProgress"
	const old = "Cluster minor level upgrades are not allowed while resource deletions are in progress; resources=service \"a/b\""
	const since = "Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"c/d\",pod \"e/f\""
	deleting := one(name, preflight.Fail, "ResourceDeletesInProgress")
	own := with(at("4.18.3"), "UpgradeableDeletesInProgress", configv1.ConditionFalse, "ResourceDeletesInProgress", old)
	try(t, gate.Deletion, map[string]row{
		"None":    {reason: "no word of it", cluster: at("4.18.3"), to: "4.19.0", want: one(name, preflight.Pass, "NothingDeleted")},
		"Own":     {reason: "up to 4.22 it has a condition of its own", cluster: own, to: "4.19.0", want: deleting, message: []string{`service "a/b"`, "leave 4.18"}, remedy: []string{"finalizer", "--force"}},
		"Alone":   {reason: "since it is in Upgradeable", cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, name, since), to: "5.1.0", want: deleting, message: []string{`pod "e/f"`}},
		"Among":   {reason: "or one of its parts", cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons", "for multiple reasons:\n* "+since+"\n* Wait."), to: "5.1.0", want: deleting},
		"Other":   {reason: "another cause is none of it", cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "AdminAckRequired", "Do it."), to: "5.1.0", want: one(name, preflight.Pass, "NothingDeleted")},
		"Unknown": {reason: "CVO could not tell, so it may not tell of this", cluster: with(at("5.0.3"), configv1.OperatorUpgradeable, configv1.ConditionUnknown, "EvaluationFailed", ""), to: "5.1.0", want: one(name, preflight.Unknown, "EvaluationFailed")},
		"Patch":   {reason: "patch updates are not blocked", cluster: own.DeepCopy(), to: "4.18.9", want: one(name, preflight.Skipped, "NotConcerned")},
	})
}
