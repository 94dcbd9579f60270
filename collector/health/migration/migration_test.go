package migration_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/migration"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The paths of the objects.
const (
	infrastructure = "/apis/config.openshift.io/v1/infrastructures/cluster"
	networks       = "/apis/config.openshift.io/v1/networks"
	operators      = "/apis/operator.openshift.io/v1/"
	registry       = "/apis/imageregistry.operator.openshift.io/v1/configs/cluster"
	versions       = "/apis/migration.k8s.io/v1alpha1/storageversionmigrations"
)

type fields = map[string]any

// world is what an API server has, by path. A nil object may not be read; a path that is absent is not served.
type world map[string]fields

// with is the world with other objects.
func (w world) with(other world) world {
	changed := maps.Clone(w)
	maps.Copy(changed, other)
	return changed
}

func (w world) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	object, known := w[request.URL.Path]
	if one, ok := w[request.URL.Path+"/cluster"]; ok && !known { // a list of the one object
		if object, known = one, true; one != nil {
			object = fields{"kind": "List", "apiVersion": one["apiVersion"], "metadata": fields{}, "items": []fields{one}}
		}
	}
	code := http.StatusOK
	switch {
	case !known:
		code, object = http.StatusNotFound, failure(metav1.StatusReasonNotFound, http.StatusNotFound)
	case object == nil:
		code, object = http.StatusForbidden, failure(metav1.StatusReasonForbidden, http.StatusForbidden)
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(object) // the client reports what is missing
}

func failure(reason metav1.StatusReason, code int) fields {
	return fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": string(reason)}
}

func serve(t *testing.T, w world) checktest.View {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	return checktest.Connect(&rest.Config{Host: server.URL}).Snapshot(t)
}

// of is an object with a part of it.
func of(apiVersion, kind, name string, parts fields) fields {
	object := fields{"apiVersion": apiVersion, "kind": kind, "metadata": fields{"name": name}}
	maps.Copy(object, parts)
	return object
}

func operator(kind string, parts fields) fields {
	return of("operator.openshift.io/v1", kind, "cluster", parts)
}

// condition is a status with one condition.
func condition(kind, status, reason, message string) fields {
	return fields{"status": fields{"conditions": conditions(kind, status, reason, message)}}
}

func conditions(kind, status, reason, message string) []fields {
	return []fields{{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-11-25T10:00:00Z"}}
}

func list(apiVersion, kind string, items ...fields) fields {
	return fields{"apiVersion": apiVersion, "kind": kind + "List", "metadata": fields{}, "items": items}
}

func network(parts fields) fields {
	return list("config.openshift.io/v1", "Network", of("config.openshift.io/v1", "Network", "cluster", parts))
}

func storedVersion(parts fields) fields {
	return list("migration.k8s.io/v1alpha1", "StorageVersionMigration",
		of("migration.k8s.io/v1alpha1", "StorageVersionMigration", "flowschemas", parts))
}

func imageRegistry(parts fields) fields {
	return of("imageregistry.operator.openshift.io/v1", "Config", "cluster", parts)
}

// idle is a cluster in which no migration is in progress, as must-gathers of 4.8 and 4.9 have it.
func idle() world {
	encryption := func(kind string) fields {
		return operator(kind, fields{"status": fields{"conditions": []fields{
			{"type": "EncryptionMigrationControllerProgressing", "status": "False"},
			{"type": "Encrypted", "status": "False"},
			{"type": "NodeInstallerProgressing", "status": "False", "reason": "AllNodesAtLatestRevision"},
		}}})
	}
	return world{
		infrastructure: of("config.openshift.io/v1", "Infrastructure", "cluster",
			fields{"status": fields{"controlPlaneTopology": "HighlyAvailable"}}),
		networks: network(fields{"status": fields{"networkType": "OVNKubernetes", "conditions": []fields{
			{"type": "NetworkTypeMigrationInProgress", "status": "False", "reason": "NetworkTypeMigrationCompleted"},
			{"type": "NetworkTypeMigrationMTUReady", "status": "Unknown", "reason": "NetworkTypeMigrationNotInProgress"},
		}}}),
		operators + "networks/cluster":                    operator("Network", fields{"spec": fields{"migration": fields{}}}),
		operators + "kubeapiservers/cluster":              encryption("KubeAPIServer"),
		operators + "openshiftapiservers/cluster":         encryption("OpenShiftAPIServer"),
		operators + "authentications/cluster":             encryption("Authentication"),
		operators + "etcds/cluster":                       operator("Etcd", condition("EtcdMembersProgressing", "False", "AsExpected", "")),
		operators + "kubestorageversionmigrators/cluster": operator("KubeStorageVersionMigrator", condition("Progressing", "False", "", "")),
		registry: imageRegistry(fields{
			"spec": fields{"managementState": "Managed", "storage": fields{"managementState": "Managed", "s3": fields{"bucket": "a"}}},
			"status": fields{
				"storage":    fields{"s3": fields{"bucket": "a"}, "managementState": "Managed"},
				"conditions": []fields{{"type": "StorageExists", "status": "True"}, {"type": "Progressing", "status": "False", "reason": "Ready"}},
			},
		}),
		versions: storedVersion(condition("Succeeded", "True", "", "")),
	}
}

func one(name string, outcome preflight.Outcome, reason string) map[string]checktest.Result {
	return map[string]checktest.Result{name: {Outcome: outcome, Reason: reason}}
}

func TestMigrations(t *testing.T) {
	const name, live = "Migrations", "NetworkTypeMigrationInProgress"
	network4 := one("NetworkMigration", preflight.Warn, "NetworkMigrationInProgress")
	encryption := one("EncryptionMigration", preflight.Warn, "EncryptionMigrationInProgress")
	stored := one("StorageVersionMigration", preflight.Warn, "StorageVersionMigrationInProgress")
	image := one("ImageRegistryChange", preflight.Warn, "ImageRegistryChanging")
	rollout := one("ControlPlaneRollout", preflight.Warn, "ControlPlaneRolloutInProgress")
	unread := one(name, preflight.Unknown, "Forbidden")
	changed := func(path string, object fields) world { return idle().with(world{path: object}) }
	storage := func(spec, status string) fields {
		return imageRegistry(fields{
			"spec":   fields{"managementState": "Managed", "storage": fields{spec: fields{}}},
			"status": fields{"storage": fields{status: fields{}}},
		})
	}
	both := maps.Clone(encryption)
	both[name] = checktest.Result{Outcome: preflight.Unknown, Reason: "Forbidden"}
	for name, tc := range map[string]struct {
		reason  string
		world   world
		want    map[string]checktest.Result
		message []string
		absent  string // part of no message
	}{
		"Idle": {
			reason: "no operator reports a migration", world: idle(), want: one(name, preflight.Pass, "AsExpected"),
			message: []string{"9 objects"},
		},
		"LiveMigration": {
			reason: "okd#2190", want: network4,
			message: []string{
				`Network "cluster": NetworkTypeMigrationInProgress is True (NetworkTypeMigrationStarted): Network type migration is started`,
				"status.migration has networkType OVNKubernetes",
			},
			world: changed(networks, network(fields{"status": fields{
				"migration":  fields{"networkType": "OVNKubernetes"},
				"conditions": conditions(live, "True", "NetworkTypeMigrationStarted", "Network type migration is started"),
			}})),
		},
		"MTU": {
			reason: "the administrator has not ended the migration", want: network4, message: []string{"status.migration has mtu"},
			world: changed(networks, network(fields{"status": fields{"migration": fields{"mtu": fields{"network": fields{
				"from": 1400,
				"to":   1354,
			}}}}})),
		},
		"Mode": {
			reason: "the operator has not started yet", want: network4, message: []string{"spec.migration has networkType OVNKubernetes, mode Live"},
			world: changed(operators+"networks/cluster",
				operator("Network", fields{"spec": fields{"migration": fields{"mode": "Live", "networkType": "OVNKubernetes"}}})),
		},
		"Undetermined": {
			reason: "a condition that is Unknown does not state that nothing is in progress",
			world:  changed(networks, network(condition(live, "Unknown", "", ""))), want: network4,
		},
		"Encryption": {
			reason: "resources are migrated to a new key", want: encryption,
			message: []string{`KubeAPIServer "cluster": EncryptionMigrationControllerProgressing is True (Migrating): migrating resources`},
			world: changed(operators+"kubeapiservers/cluster", operator("KubeAPIServer",
				condition("EncryptionMigrationControllerProgressing", "True", "Migrating", "migrating resources to a new write key: [core/secrets]"))),
		},
		"Decryption": {
			reason: "not yet all resources are decrypted", want: encryption, message: []string{"Encrypted is False (DecryptionInProgress)"},
			world: changed(operators+"openshiftapiservers/cluster",
				operator("OpenShiftAPIServer", condition("Encrypted", "False", "DecryptionInProgress", ""))),
		},
		"Encrypted": {reason: "an encryption that is complete is none in progress", world: changed(operators+"authentications/cluster",
			operator("Authentication", condition("Encrypted", "True", "EncryptionCompleted", ""))), want: one(name, preflight.Pass, "AsExpected")},
		"Running": {reason: "objects are being written again", world: changed(versions, storedVersion(condition("Running", "True", "",
			""))), want: stored, message: []string{`StorageVersionMigration "flowschemas": Running is True`}},
		"Failed": {reason: "objects stay in the earlier version", world: changed(versions,
			storedVersion(condition("Failed", "True", "StorageVersionMigrationFailed", "conflict"))), want: stored, message: []string{"conflict"}},
		"Migrator": {reason: "the migrator is rolled out", world: changed(operators+"kubestorageversionmigrators/cluster",
			operator("KubeStorageVersionMigrator", condition("KubeStorageVersionMigratorProgressing", "True", "Deploying", ""))), want: stored},
		"OtherStorage": {
			reason: "the registry still has the former storage", world: changed(registry, storage("pvc", "s3")), want: image,
			message: []string{"spec.storage has pvc, and status.storage still has s3"},
		},
		"SameStorage": {
			reason: "the registry has the storage of the spec", world: changed(registry, storage("s3", "s3")),
			want: one(name, preflight.Pass, "AsExpected"),
		},
		"StorageChange": {
			reason: "the operator has seen another configuration",
			world:  changed(registry, imageRegistry(condition("StorageExists", "Unknown", "S3 Configuration Changed", ""))), want: image,
		},
		"StorageError": {reason: "storage that cannot be read is no change", world: changed(registry,
			imageRegistry(condition("StorageExists", "Unknown", "Unknown Error Occurred", ""))), want: one(name, preflight.Pass, "AsExpected")},
		"Rollout": {
			reason: "the registry is rolled out",
			world:  changed(registry, imageRegistry(condition("Progressing", "True", "DeploymentNotCompleted", ""))), want: image,
		},
		"Revision": {
			reason: "one node after the other restarts", want: rollout, message: []string{"3 nodes are at revision 3"},
			world: changed(operators+"etcds/cluster", operator("Etcd",
				condition("NodeInstallerProgressing", "True", "", "3 nodes are at revision 3; 0 nodes have achieved new revision 4"))),
		},
		"Installer": {
			reason: "waiting ends nothing where the installer of the revision fails", want: rollout,
			message: []string{"revision 4 failed on master-1 (InstallerFailed): no space left on device"},
			world: changed(operators+"etcds/cluster", operator("Etcd", fields{"status": fields{
				"conditions": conditions("NodeInstallerProgressing", "True", "", ""),
				"nodeStatuses": []any{fields{
					"nodeName": "master-1", "targetRevision": 4, "lastFailedRevision": 4,
					"lastFailedReason": "InstallerFailed", "lastFailedRevisionErrors": []any{"no space left on device"},
				}},
			}})),
		},
		"InstallerBefore": {
			reason: "an earlier revision that failed is passed by", want: rollout, absent: "failed on",
			world: changed(operators+"etcds/cluster", operator("Etcd", fields{"status": fields{
				"conditions": conditions("NodeInstallerProgressing", "True", "", ""),
				"nodeStatuses": []any{
					fields{"nodeName": "master-1", "targetRevision": 5, "lastFailedRevision": 4},
					fields{"nodeName": "master-2", "currentRevision": 5, "lastFailedRevision": 4},
				},
			}})),
		},
		"Forbidden": {
			reason: "what may not be read may be in progress", world: changed(operators+"kubeapiservers/cluster", nil),
			want: unread, message: []string{"kubeapiservers.operator.openshift.io"},
		},
		"ForbiddenList": {reason: "also where it is a list", world: changed(networks, nil), want: unread},
		"ForbiddenOther": {reason: "what was read is reported besides", world: changed(operators+"etcds/cluster", nil).with(world{operators +
			"authentications/cluster": operator("Authentication", condition("Encrypted", "False", "EncryptionInProgress", ""))}), want: both},
		"Malformed": {
			reason: "an object that cannot be decoded may report a migration",
			world:  changed(operators+"etcds/cluster", operator("Etcd", fields{"status": "text"})), want: one(name, preflight.Unknown, "Error"),
		},
		"Hosted": {
			reason: "the control plane of a hosted cluster has other operators", want: one(name, preflight.Pass, "AsExpected"),
			message: []string{"1 object"},
			world: world{infrastructure: of("config.openshift.io/v1", "Infrastructure", "cluster",
				fields{"status": fields{"controlPlaneTopology": "External"}}), networks: network(nil)},
		},
		"NoOperators": {
			reason: "nothing is served", world: world{infrastructure: idle()[infrastructure]},
			want: one(name, preflight.Skipped, "NothingReportsMigrations"),
		},
		"Kubernetes": {reason: "a cluster that is not OpenShift", world: world{}, want: one(name, preflight.Skipped, "PlainKubernetes")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, to := range []string{"4.18.9", "4.19.0"} {
				findings := checktest.Run(t, migration.Check(), serve(t, tc.world), checktest.Update(t, "4.18.3", to))
				if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
					t.Errorf("%s, to %s: -want, +got:\n%s\nin full: %+v", tc.reason, to, diff, findings)
				}
				checktest.Contains(t, tc.reason, checktest.Messages(findings), tc.message)
				if tc.absent != "" && strings.Contains(checktest.Messages(findings), tc.absent) {
					t.Errorf("%s, to %s: %s", tc.reason, to, checktest.Messages(findings))
				}
			}
		})
	}
}

// An archive that lacks one of the objects is no proof that nothing is in progress.
func TestMigrationsNotInArchive(t *testing.T) {
	dir := t.TempDir()
	for file, object := range map[string]fields{
		"infrastructures": list("config.openshift.io/v1", "Infrastructure", idle()[infrastructure]),
		"clusterversions": list("config.openshift.io/v1", "ClusterVersion",
			of("config.openshift.io/v1", "ClusterVersion", "version", fields{"spec": fields{"clusterID": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"}})),
		"networks": network(condition("NetworkTypeMigrationInProgress", "False", "", "")),
	} {
		path := filepath.Join(dir, "cluster-scoped-resources", "config.openshift.io", file+".yaml")
		content, err := json.Marshal(object)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte("openshift/must-gather\n4.19.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := archive.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.Connect(opened.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	subject := check.Subject{Cluster: snapshot.Of(api), Update: checktest.Update(t, "4.18.3", "4.18.9")}
	findings := collector.Collect(t.Context(), collector.Bind(subject, []check.Check{migration.Check()}),
		func(collector.Source, []finding.Finding) {}).Findings
	if diff := cmp.Diff(one("Migrations", preflight.Unknown, "NotInArchive"), checktest.Results(findings)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if message := checktest.Messages(findings); !strings.Contains(message, "kubeapiservers.operator.openshift.io") {
		t.Errorf("the message does not name what is missing: %s", message)
	}
}
