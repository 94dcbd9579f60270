package health

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// ReasonNoUpgradeConfig is reported when the cluster has no UpgradeConfig.
//
// Cause: the managed-upgrade-operator is not installed, or no update is scheduled.
//
// Remedy: none needed.
const ReasonNoUpgradeConfig finding.Reason = "NoUpgradeConfig"

func readsUpgradeConfigs() []access.Request {
	return []access.Request{check.List("upgrade.managed.openshift.io", "upgradeconfigs")}
}

func noUpgradeConfig() []finding.Finding {
	return []finding.Finding{finding.Skipped(ReasonNoUpgradeConfig, "the cluster has no UpgradeConfig, so no managed-upgrade-operator schedules an update")}
}

func upgradeConfigObject(config *snapshot.UpgradeConfig) finding.Object {
	return finding.Object{APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Namespace: config.Namespace, Name: config.Name}
}
