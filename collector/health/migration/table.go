package migration

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
)

// The resources of the table.
const (
	network         = "networks.config.openshift.io"
	networkOperator = "networks.operator.openshift.io"
	kubeAPIServer   = "kubeapiservers.operator.openshift.io"
	openShiftAPI    = "openshiftapiservers.operator.openshift.io"
	authentication  = "authentications.operator.openshift.io"
	etcd            = "etcds.operator.openshift.io"
	migrator        = "kubestorageversionmigrators.operator.openshift.io"
	imageRegistry   = "configs.imageregistry.operator.openshift.io"
	storedVersions  = "storageversionmigrations.migration.k8s.io"
)

func sources() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, each := range migrations() {
		for _, sign := range each.signs {
			if source := sourceOf(sign.resource); !slices.Contains(all, source) {
				all = append(all, source)
			}
		}
	}
	return all
}

func sourceOf(resource string) schema.GroupVersionResource {
	version := "v1"
	if resource == storedVersions {
		version = "v1alpha1"
	}
	return schema.ParseGroupResource(resource).WithVersion(version)
}

const (
	// maxStated bounds the message of a condition in a message, in bytes.
	maxStated = 1024
	// progressing is the condition that several operators have without another word.
	progressing = "Progressing"
)

// migration is a kind of migrations, and how it shows.
type migration struct {
	name   string
	reason finding.Reason
	// what begins the message, as a clause.
	what    string
	actions []finding.Action
	signs   []sign
}

// sign is a condition or a field by which an object shows a migration.
type sign struct {
	resource string
	// condition is the type of the condition; empty for a field.
	condition string
	// of describes the sign; empty where the object does not have it.
	of func(r *reported.Object, condition string) string
}

func migrations() []migration {
	return []migration{
		networkMigration(), encryptionMigration(), storageVersionMigration(), registryStorage(), controlPlaneRollout(),
	}
}

func networkMigration() migration {
	return migration{
		name: nameNetworkMigration, reason: reasonNetworkMigration, what: "the network of the cluster is being migrated",
		actions: []finding.Action{finding.Read("oc get network.config cluster -o yaml"), finding.Read("oc get network.operator cluster -o yaml")},
		signs: []sign{
			// 4.15 to 4.21: cluster-network-operator pkg/controller/operconfig/migration.go,
			// initMigrationConditions; okd-project/okd#2190. When it has ended, the condition is False.
			{network, "NetworkTypeMigrationInProgress", isTrue},
			// openshift/api config/v1, NetworkMigration. The operator copies it from the field below:
			// cluster-network-operator pkg/network/cluster_config.go.
			{network, "", func(r *reported.Object, _ string) string {
				return describeChange("status.migration", r.Status[migrationField])
			}},
			// openshift/api operator/v1, NetworkMigration; cluster-network-operator README.md: the administrator
			// ends the migration of the MTU by removing it. Mode, type and features are up to 4.21.
			{networkOperator, "", func(r *reported.Object, _ string) string {
				return describeChange("spec.migration", r.Spec[migrationField])
			}},
		},
	}
}

func encryptionMigration() migration {
	of := migration{
		name: nameEncryptionMigration, reason: reasonEncryptionMigration,
		what:    "resources in etcd are being encrypted, decrypted or re-encrypted with another key",
		actions: []finding.Action{finding.Read("oc get kubeapiserver,openshiftapiserver,authentication.operator.openshift.io cluster -o yaml")},
	}
	for _, resource := range []string{kubeAPIServer, openShiftAPI, authentication} {
		of.signs = append(of.signs,
			// library-go pkg/operator/encryption/controllers/migration_controller.go, since 4.3.
			sign{resource, "EncryptionMigrationControllerProgressing", isTrue},
			// library-go pkg/operator/encryption/controllers/condition_controller.go. False alone means no encryption.
			sign{resource, "Encrypted", isFalse("EncryptionInProgress", "DecryptionInProgress")},
			// library-go pkg/operator/encryption/controllers/kms_preflight_controller.go, since 5.0.
			sign{resource, "EncryptionKMSPreflightControllerProgressing", isTrue},
		)
	}
	return of
}

func storageVersionMigration() migration {
	return migration{
		name: nameStorageVersionMigration, reason: reasonStorageVersionMigration,
		what:    "some stored objects are not migrated to their current version",
		actions: []finding.Action{finding.Read("oc get storageversionmigrations.migration.k8s.io -o yaml")},
		signs: []sign{
			// kube-storage-version-migrator USER_GUIDE.md, "Check if migration has completed".
			{storedVersions, "Succeeded", unlessTrue("Running", "Failed")},
			// library-go pkg/operator/deploymentcontroller, of cluster-kube-storage-version-migrator-operator; up
			// to 4.9 without the name.
			{migrator, "KubeStorageVersionMigratorProgressing", isTrue},
			{migrator, progressing, isTrue},
		},
	}
}

func registryStorage() migration {
	return migration{
		name: nameRegistryStorage, reason: reasonRegistryStorage, what: "the image registry is being changed",
		actions: []finding.Action{finding.Read("oc get configs.imageregistry.operator.openshift.io cluster -o yaml")},
		signs: []sign{
			// cluster-image-registry-operator pkg/operator/status.go: the rollout after a change.
			{imageRegistry, progressing, isTrue},
			// pkg/resource/generator.go, syncStorage: the operator creates storage where the spec has other than
			// the status.
			{imageRegistry, "", otherStorage},
			// pkg/storage/*, StorageChanged: Unknown until the storage is created.
			{imageRegistry, "StorageExists", storageUnknown},
			// pkg/operator/azurepathfixcontroller.go, 4.14 to 4.16: a Job moves the images.
			{imageRegistry, "AzurePathFixProgressing", isTrue},
		},
	}
}

func controlPlaneRollout() migration {
	return migration{
		name: nameControlPlaneRollout, reason: reasonControlPlaneRollout, what: "the control plane is rolling out another revision",
		actions: []finding.Action{finding.Read("oc get etcd,kubeapiserver cluster -o yaml")},
		signs: []sign{
			// library-go pkg/operator/condition/condition.go: new certificates, keys and settings are a revision.
			{kubeAPIServer, "NodeInstallerProgressing", isTrue},
			{etcd, "NodeInstallerProgressing", isTrue},
			// cluster-etcd-operator pkg/operator/etcdmemberscontroller: a member has not started.
			{etcd, "EtcdMembersProgressing", isTrue},
		},
	}
}

// isTrue is the sign of a condition that is True. One that is Unknown counts, since the operator could not
// determine it.
func isTrue(r *reported.Object, kind string) string {
	if c, ok := r.Condition(kind); ok && c.Status != metav1.ConditionFalse {
		return describe(c)
	}
	return ""
}

// isFalse is the sign of a condition that is False for one of the reasons.
func isFalse(reasons ...string) func(*reported.Object, string) string {
	return func(r *reported.Object, kind string) string {
		if c, ok := r.Condition(kind); ok && c.Status == metav1.ConditionFalse && slices.Contains(reasons, c.Reason) {
			return describe(c)
		}
		return ""
	}
}

// unlessTrue is the sign of one of several conditions that is True, while another one is not.
func unlessTrue(kinds ...string) func(*reported.Object, string) string {
	return func(r *reported.Object, end string) string {
		if c, ok := r.Condition(end); ok && c.Status == metav1.ConditionTrue {
			return ""
		}
		for _, kind := range kinds {
			if text := isTrue(r, kind); text != "" {
				return text
			}
		}
		return ""
	}
}

// storageUnknown is the sign that the operator of the image registry has seen another configuration of its
// storage: the reason is one of several words.
func storageUnknown(r *reported.Object, kind string) string {
	if c, ok := r.Condition(kind); ok && c.Status == metav1.ConditionUnknown && strings.HasSuffix(c.Reason, "Configuration Changed") {
		return describe(c)
	}
	return ""
}

// otherStorage is the sign that the spec of the image registry has another type of storage than its status.
func otherStorage(r *reported.Object, _ string) string {
	before, after := storageOf(r.Status["storage"]), storageOf(r.Spec["storage"])
	if r.Spec["managementState"] != "Managed" || len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		return ""
	}
	return fmt.Sprintf("spec.storage has %s, and status.storage still has %s", words.External(after[0]), words.External(before[0]))
}

func storageOf(storage any) []string {
	fields, _ := storage.(map[string]any)
	var types []string
	for name := range fields {
		if name != "managementState" {
			types = append(types, name)
		}
	}
	return types
}

// migrationField is the field of the spec and of the status of a Network.
const migrationField = "migration"

// describeChange describes a migration of the network in a field; empty where the field is not set, or has nothing.
func describeChange(field string, value any) string {
	change, _ := value.(map[string]any)
	var parts []string
	for _, name := range []string{"networkType", "mode"} {
		if text, _ := change[name].(string); text != "" {
			parts = append(parts, name+" "+words.External(text))
		}
	}
	if mtu, _ := change["mtu"].(map[string]any); len(mtu) > 0 {
		parts = append(parts, "mtu")
	}
	if len(parts) == 0 {
		return ""
	}
	return field + " has " + strings.Join(parts, ", ")
}

func describe(c reported.Condition) string {
	return c.Type + " is " + words.Condition(c.Status, words.External(c.Reason), words.Line(c.Message, maxStated))
}

var (
	nameMigrations = finding.NewName("Migrations",
		"Checks for migrations of the cluster itself that are in progress, according to the operators' singleton objects "+
			"(config.openshift.io, operator.openshift.io, imageregistry.operator.openshift.io) and to StorageVersionMigrations. The "+
			"findings are NetworkMigration, EncryptionMigration, StorageVersionMigration, ImageRegistryChange and ControlPlaneRollout. "+
			"It concerns every update of every OpenShift cluster, and only warns; it is Unknown if such an object may not be read.")

	reasonNothingReports = finding.NewReason("NothingReportsMigrations", finding.Explanation{
		Meaning: "The cluster has no object in which an operator reports a migration.",
		Cause:   "The APIs of these operators are not served, as on some hosted clusters.",
	})
	reasonNetworkMigration = finding.NewReason("NetworkMigrationInProgress", finding.Explanation{
		Meaning: "The network of the cluster is being migrated to another network type or another MTU. The migration reboots nodes, " +
			"whose networks differ meanwhile. Since 4.16 the cluster-network-operator does not let the cluster leave its minor version " +
			"during a live migration.",
		Cause: "An administrator started the migration and it has not finished, or spec.migration of the Network \"cluster\" of " +
			"operator.openshift.io was not removed afterwards.",
		Remedy: "Let the migration finish, then remove spec.migration of the Network of operator.openshift.io, and update: `oc get " +
			"network.config cluster -o yaml` shows its state.",
	})
	reasonEncryptionMigration = finding.NewReason("EncryptionMigrationInProgress", finding.Explanation{
		Meaning: "The API servers are encrypting or decrypting the resources in etcd, or re-encrypting them with another key.",
		Cause:   "spec.encryption of the APIServer \"cluster\" was changed, or a key was rotated, as the operators do each week.",
		Remedy:  "Wait until the condition EncryptionMigrationControllerProgressing of each operator is False, then update.",
		Command: "oc get kubeapiserver,openshiftapiserver,authentication.operator.openshift.io cluster -o yaml",
	})
	reasonStorageVersionMigration = finding.NewReason("StorageVersionMigrationInProgress", finding.Explanation{
		Meaning: "Stored objects are being migrated to their current version, or such a migration has failed. An API server that does " +
			"not know the earlier version cannot read objects that are left in it.",
		Cause: "A release changed the version in which objects are stored, or their encryption changed.",
		Remedy: "Wait until every StorageVersionMigration has succeeded, then update. If one failed, fix the cause in its message and " +
			"create it again.",
		Command: "oc get storageversionmigrations.migration.k8s.io -o yaml",
	})
	reasonRegistryStorage = finding.NewReason("ImageRegistryChanging", finding.Explanation{
		Meaning: "The operator of the image registry is moving it to other storage, or rolling out another configuration.",
		Cause:   "The Config \"cluster\" of imageregistry.operator.openshift.io was changed, or a rollout does not complete.",
		Remedy:  "Wait until the condition Progressing is False, or fix the cause in its message, then update.",
		Command: "oc get configs.imageregistry.operator.openshift.io cluster -o yaml",
	})
	reasonControlPlaneRollout = finding.NewReason("ControlPlaneRolloutInProgress", finding.Explanation{
		Meaning: "The pods of the API server or of etcd are rolling out another revision, one node after the other, or a member of " +
			"etcd has not started.",
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
