package migration

import "github.com/openshift/update-preflight/collector/finding"

var (
	nameMigrations = finding.NewName("Migrations",
		"The check for migrations of the cluster itself that are in progress, by what its operators report in the objects "+
			"of which there is one each (config.openshift.io, operator.openshift.io, imageregistry.operator.openshift.io) and "+
			"by StorageVersionMigrations: a finding for each of NetworkMigration, EncryptionMigration, "+
			"StorageVersionMigration, ImageRegistryChange and ControlPlaneRollout. It concerns every update of every "+
			"OpenShift cluster, and only warns; it is Unknown where such an object may not be read.")

	reasonNothingReports = finding.NewReason("NothingReportsMigrations", finding.Explanation{
		Meaning: "Reported when the cluster has no object by which an operator reports a migration.",
		Cause:   "The APIs of these operators are not served, as on some hosted clusters.",
	})
	reasonNetworkMigration = finding.NewReason("NetworkMigrationInProgress", finding.Explanation{
		Meaning: "Reported while the network of the cluster is migrated: to another network type or another MTU. Nodes are " +
			"rebooted for it, and the network of some differs from that of others meanwhile. Since 4.16 the " +
			"cluster-network-operator does not let the cluster leave its minor version during a live migration.",
		Cause: "An administrator has started the migration, and it has not ended, or spec.migration of the Network " +
			"\"cluster\" of operator.openshift.io was not removed at its end.",
		Remedy: "Let the migration end, then remove spec.migration of the Network of operator.openshift.io, and update: `oc " +
			"get network.config cluster -o yaml` has its state.",
	})
	reasonEncryptionMigration = finding.NewReason("EncryptionMigrationInProgress", finding.Explanation{
		Meaning: "Reported while the API servers encrypt or decrypt the resources in etcd, or move them to another key.",
		Cause:   "Spec.encryption of the APIServer \"cluster\" was changed, or a key was replaced, as the operators do each week.",
		Remedy:  "Wait until the condition EncryptionMigrationControllerProgressing of each operator is False, then update.",
		Command: "oc get kubeapiserver,openshiftapiserver,authentication.operator.openshift.io cluster -o yaml",
	})
	reasonStorageVersionMigration = finding.NewReason("StorageVersionMigrationInProgress", finding.Explanation{
		Meaning: "Reported while stored objects are migrated to their present version, or when such a migration has failed. An API " +
			"server that does not know the earlier version cannot read objects that are left in it.",
		Cause: "A release has changed the version in which objects are stored, or their encryption.",
		Remedy: "Wait until every StorageVersionMigration has succeeded, then update. Fix what the message of a failed one names, " +
			"and create it again.",
		Command: "oc get storageversionmigrations.migration.k8s.io -o yaml",
	})
	reasonRegistryStorage = finding.NewReason("ImageRegistryChanging", finding.Explanation{
		Meaning: "Reported while the operator of the image registry moves it to other storage, or rolls out another configuration.",
		Cause:   "The Config \"cluster\" of imageregistry.operator.openshift.io was changed, or a rollout does not complete.",
		Remedy:  "Wait until the condition Progressing is False, or fix what its message names, then update.",
		Command: "oc get configs.imageregistry.operator.openshift.io cluster -o yaml",
	})
	reasonControlPlaneRollout = finding.NewReason("ControlPlaneRolloutInProgress", finding.Explanation{
		Meaning: "Reported while the pods of the API server or of etcd are moved to another revision, one node after the other, " +
			"or a member of etcd has not started.",
		Cause:   "Certificates, keys or settings were changed, a node of the control plane was replaced, or an update is in progress.",
		Remedy:  "Wait until all nodes are at the latest revision, then update.",
		Command: "oc get etcd,kubeapiserver cluster -o yaml",
	})

	nameNetworkMigration        = reasonNetworkMigration.Names("NetworkMigration")
	nameEncryptionMigration     = reasonEncryptionMigration.Names("EncryptionMigration")
	nameStorageVersionMigration = reasonStorageVersionMigration.Names("StorageVersionMigration")
	nameRegistryStorage         = reasonRegistryStorage.Names("ImageRegistryChange")
	nameControlPlaneRollout     = reasonControlPlaneRollout.Names("ControlPlaneRollout")
)
