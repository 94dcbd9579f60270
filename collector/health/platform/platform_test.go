package platform_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/health/platform"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

type fields = map[string]any

// kind is a kind that the cluster has.
type kind struct {
	group, name, plural string
	// status are the fields of the status in its schema; conditions where there are none.
	status fields
	// users is true for a kind that the release does not ship.
	users bool
}

func (k kind) resource() string { return k.plural + "." + k.group }

func (k kind) definition() fields {
	annotations := fields{"include.release.openshift.io/self-managed-high-availability": "true"}
	if k.users {
		annotations = fields{}
	}
	status := k.status
	if status == nil {
		status = fields{"conditions": fields{"type": "array"}}
	}
	return fields{
		"metadata": fields{"name": k.resource(), "annotations": annotations},
		"spec": fields{
			"group": k.group, "names": fields{"kind": k.name, "plural": k.plural},
			"versions": []fields{{
				"name": "v1", "served": true, "storage": true,
				"schema": fields{"openAPIV3Schema": fields{"properties": fields{"status": fields{"properties": status}}}},
			}},
		},
	}
}

// since is the age of a condition.
type since time.Duration

const (
	now   = since(10 * time.Second)
	hour  = since(time.Hour)
	hours = since(5 * time.Hour)
)

func condition(kind, status, reason, message string, age since) fields {
	return fields{
		"type": kind, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": time.Now().Add(-time.Duration(age)).UTC().Format(time.RFC3339),
	}
}

func object(namespace, name string, conditions ...fields) fields {
	return fields{"metadata": fields{"namespace": namespace, "name": name}, "status": fields{"conditions": conditions}}
}

func with(of fields, more fields) fields {
	merged := maps.Clone(of)
	maps.Copy(merged, more)
	return merged
}

// cluster is what an API server has: kinds, with their objects by the resource. Nil objects may not be read.
type cluster struct {
	kinds   []kind
	objects map[string][]fields
}

func (c cluster) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	out.Header().Set("Content-Type", "application/json")
	items, code := []fields{}, http.StatusNotFound
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case strings.HasSuffix(request.URL.Path, "/infrastructures/cluster"):
		_ = json.NewEncoder(out).Encode(checktest.Infrastructure("HighlyAvailable"))
		return
	case strings.HasSuffix(request.URL.Path, "/customresourcedefinitions"):
		code = http.StatusOK
		for _, each := range c.kinds {
			items = append(items, each.definition())
		}
	case len(parts) == 4:
		found, known := c.objects[parts[3]+"."+parts[1]]
		items = append(items, found...)
		switch {
		case known && found == nil:
			code = http.StatusForbidden
		case known, parts[3] == "clusteroperators":
			code = http.StatusOK
		}
	}
	if code != http.StatusOK {
		out.WriteHeader(code)
		reason := map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden"}[code]
		_ = json.NewEncoder(out).Encode(fields{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
			"message": reason,
		})
		return
	}
	_ = json.NewEncoder(out).Encode(fields{
		"kind": listKind(parts), "apiVersion": parts[1] + "/" + parts[2], "metadata": fields{},
		"items": typed(items, c.kinds, parts),
	})
}

func listKind(parts []string) string {
	if parts[3] == "clusteroperators" {
		return "ClusterOperatorList"
	}
	return "List"
}

// typed sets the kinds of objects.
func typed(items []fields, kinds []kind, parts []string) []fields {
	var all []fields
	for _, item := range items {
		of := fields{"apiVersion": parts[1] + "/" + parts[2], "kind": "CustomResourceDefinition"}
		for _, each := range kinds {
			if each.plural == parts[3] && each.group == parts[1] {
				of["kind"] = each.name
			}
		}
		if parts[3] == "clusteroperators" {
			of["kind"] = "ClusterOperator"
		}
		all = append(all, with(item, of))
	}
	return all
}

const (
	machineConfiguration = "machineconfiguration.openshift.io"
	config               = "config.openshift.io"
	operator             = "operator.openshift.io"
)

var (
	ingress   = kind{group: operator, name: "IngressController", plural: "ingresscontrollers"}
	apiServer = kind{group: operator, name: "KubeAPIServer", plural: "kubeapiservers"}
	pools     = kind{group: machineConfiguration, name: "MachineConfigPool", plural: "machineconfigpools"}
	builds    = kind{group: machineConfiguration, name: "MachineOSBuild", plural: "machineosbuilds"}
	operators = kind{group: config, name: "ClusterOperator", plural: "clusteroperators"}
	records   = kind{
		group: "ingress.operator.openshift.io", name: "DNSRecord", plural: "dnsrecords",
		status: fields{"zones": fields{"items": fields{"properties": fields{"conditions": fields{}}}}},
	}
	machines = kind{
		group: "machine.openshift.io", name: "Machine", plural: "machines",
		status: fields{"phase": fields{}, "errorMessage": fields{}},
	}
)

// of is a cluster with the objects of one kind.
func of(k kind, objects ...fields) cluster {
	return cluster{kinds: []kind{k}, objects: map[string][]fields{k.resource(): objects}}
}

// and is the cluster with those of another.
func (c cluster) and(other cluster) cluster {
	both := cluster{kinds: append(append([]kind{}, c.kinds...), other.kinds...), objects: map[string][]fields{}}
	for _, each := range []cluster{c, other} {
		maps.Copy(both.objects, each.objects)
	}
	return both
}

// clusterOperator names an IngressController as its own.
func clusterOperator(conditions ...fields) fields {
	return fields{"metadata": fields{"name": "ingress"}, "status": fields{
		"conditions":     conditions,
		"relatedObjects": []fields{{"group": operator, "resource": "ingresscontrollers", "namespace": "openshift-ingress-operator", "name": ""}},
	}}
}

func created(age since, of fields) fields {
	//nolint:forcetypeassert,errcheck // it is made above
	of["metadata"].(fields)["creationTimestamp"] = time.Now().Add(-time.Duration(age)).UTC().Format(time.RFC3339)
	return of
}

func TestPlatformConditions(t *testing.T) {
	const check, canary = "PlatformConditions", "PlatformConditions-IngressController.openshift-ingress-operator.default"
	router := func(conditions ...fields) cluster {
		return of(ingress, object("openshift-ingress-operator", "default", conditions...))
	}
	failing := condition("CanaryChecksSucceeding", "False", "CanaryChecksRepetitiveFailures",
		"Canary route checks for the default ingress controller are failing", hours)
	for name, tc := range map[string]struct {
		reason  string
		cluster cluster
		// want is the name of the finding that warns; empty for none.
		want, why string
		message   []string
		silent    string
	}{
		"Canary": {
			reason:  "report 108: the ClusterOperator is healthy",
			cluster: router(failing).and(of(operators, clusterOperator(condition("Degraded", "False", "", "", hours)))), want: canary,
			message: []string{"CanaryChecksSucceeding is False (CanaryChecksRepetitiveFailures)", "since "},
		},
		"SaidByOperator": {
			reason:  "the ClusterOperator that names it as its own says so already",
			cluster: router(failing).and(of(operators, clusterOperator(condition("Degraded", "True", "", "", hours)))),
		},
		"Operators": {
			reason: "a condition of any name that ends in Degraded", cluster: of(apiServer, object("", "cluster",
				condition("NodeControllerDegraded", "True", "MasterNodesReady", "node is down", hour))), want: check + "-KubeAPIServer.cluster",
			message: []string{"NodeControllerDegraded is True"},
		},
		"Healthy": {reason: "no condition is against it", cluster: router(condition("Available", "True", "", "", hours),
			condition("Degraded", "False", "", "", hours), condition("DeploymentRollingOut", "False", "", "", hours))},
		"Build": {
			reason: "report 105: the pool is Updated", cluster: of(pools, object("", "worker", condition("ImageBuildDegraded",
				"True", "BuildFailed", "no space", hours), condition("Updated", "True", "", "", hours), condition("Degraded", "False", "", "", hours))),
			want: check + "-MachineConfigPool.worker", message: []string{"ImageBuildDegraded is True (BuildFailed): no space"},
		},
		"BuildFailed": {
			reason: "report 105: the build of the configuration that the pool has", cluster: of(builds, created(hours, object("",
				"worker-1", condition("Failed", "True", "Failed", "exit 1", hours), condition("Succeeded", "False", "", "", hours)))),
			want: check + "-MachineOSBuild.worker-1",
		},
		"BuildReplaced": {reason: "a later build of the same owner has succeeded", cluster: of(builds, created(hours, object("", "worker-1",
			condition("Failed", "True", "", "", hours), condition("Succeeded", "False", "", "", hours))),
			created(hour, object("", "worker-2", condition("Failed", "False", "", "", hours), condition("Succeeded", "True", "", "", hours))))},
		"Installer": {
			reason: "report 111: two revisions, and the installer fails", want: check + "-KubeAPIServer.cluster",
			message: []string{"revision 8 failed 14 times on master-0 (InstallerFailed): no space left"},
			cluster: of(apiServer, fields{"metadata": fields{"name": "cluster"}, "status": fields{"nodeStatuses": []fields{
				{
					"nodeName": "master-0", "currentRevision": 7, "lastFailedRevision": 8, "lastFailedCount": 14, "lastFailedReason": "InstallerFailed",
					"lastFailedRevisionErrors": []string{"no space left"},
				},
				{"nodeName": "master-1", "currentRevision": 8, "lastFailedRevision": 6},
			}}}),
		},
		"InstallerElsewhere": {reason: "the check Migrations says so while a rollout is in progress", cluster: of(apiServer,
			fields{"metadata": fields{"name": "cluster"}, "status": fields{"conditions": []fields{condition("NodeInstallerProgressing", "True", "",
				"", hours)}, "nodeStatuses": []fields{{"nodeName": "a", "currentRevision": 7, "lastFailedRevision": 8}}}})},
		"Slow": {
			reason: "report 111: the ClusterOperator progresses for five hours", cluster: of(operators, object("",
				"kube-apiserver", condition("Progressing", "True", "NodeInstaller", "2 nodes are at revision 7", hours))),
			want: check + "-ClusterOperator.kube-apiserver", why: "ProgressingForHours", message: []string{"Progressing is True"},
		},
		"Progress": {
			reason:  "a rollout takes an hour",
			cluster: of(operators, object("", "kube-apiserver", condition("Progressing", "True", "", "", hour))),
		},
		"OperatorElsewhere": {reason: "the check ClusterOperatorHealth has it", cluster: of(operators,
			object("", "dns", condition("Degraded", "True", "", "", hours), condition("Progressing", "True", "", "", hours)))},
		"OwnSignal": {
			reason:  "the preflight's own ClusterOperator never counts",
			cluster: of(operators, object("", "update-preflight", condition("Progressing", "True", "", "", hours))),
		},
		"PoolElsewhere": {reason: "the gate MachineConfigPool has it", cluster: of(pools, object("", "worker", condition("Degraded", "True",
			"", "", hours), condition("NodeDegraded", "True", "", "", hours), condition("Updating", "True", "", "", hours)))},
		"Fresh": {
			reason:  "operators pass a condition on after two minutes",
			cluster: router(condition("Degraded", "True", "", "", now)),
		},
		"NoTime": {
			reason: "a condition without a time holds", cluster: router(fields{"type": "Degraded", "status": "True"}),
			want: canary,
		},
		"Undetermined": {reason: "Unknown is for neither", cluster: router(condition("Available", "Unknown", "", "", hours))},
		"Negated": {
			reason: "NotReady is the opposite of Ready", cluster: router(condition("NotReady", "True", "", "", hours)),
			want: canary,
		},
		"NegatedGood": {
			reason:  "NotReady is False where all is well",
			cluster: router(condition("NotReady", "False", "", "", hours), condition("NoFailures", "True", "", "", hours)),
		},
		"Unclear": {reason: "whether it is good does not follow from the type", cluster: router(condition("Upgradeable", "False", "",
			"", hours), condition("Encrypted", "True", "", "", hours)), silent: "Encrypted, Upgradeable"},
		"Removed": {reason: "an operator that is removed has nothing to be healthy", cluster: of(ingress,
			with(object("openshift-ingress-operator", "default", failing), fields{"spec": fields{"managementState": "Removed"}}))},
		"OfUsers": {reason: "an object in a namespace of users", cluster: of(ingress, object("shop", "default", failing))},
		"KindOfUsers": {
			reason:  "a kind that the release does not ship",
			cluster: of(kind{group: "acme.com", name: "Widget", plural: "widgets", users: true}, object("openshift-ingress", "default", failing)),
		},
		"KindOfOperator": {
			reason: "a kind that an operator brings itself, and names as its own",
			cluster: of(kind{group: operator, name: "IngressController", plural: "ingresscontrollers", users: true},
				object("openshift-ingress-operator", "default", failing)).and(of(operators, clusterOperator())), want: canary,
		},
		"OLM": {
			reason: "the check Subscriptions reads what is of users",
			cluster: of(kind{group: "operators.coreos.com", name: "InstallPlan", plural: "installplans"}, object("openshift-operators", "a",
				condition("Installed", "False", "", "", hours), condition("ResolutionFailed", "True", "", "", hours))),
		},
		"Nested": {
			reason: "conditions of the items of a list", cluster: of(records,
				fields{
					"metadata": fields{"namespace": "openshift-ingress-operator", "name": "default-wildcard"},
					"status":   fields{"zones": []fields{{"conditions": []fields{condition("Failed", "True", "ProviderError", "access denied", hours)}}}},
				}),
			want:    check + "-DNSRecord.openshift-ingress-operator.default-wildcard",
			message: []string{"in status.zones, Failed is True (ProviderError): access denied"},
		},
		"Phase": {
			reason: "a machine that cannot be made", cluster: of(machines,
				fields{"metadata": fields{"namespace": "openshift-machine-api", "name": "a"}, "status": fields{
					"phase":        "Failed",
					"errorMessage": "quota exceeded",
				}}), want: check + "-Machine.openshift-machine-api.a",
			message: []string{"its phase is Failed", `status.errorMessage is "quota exceeded"`},
		},
		"PhaseRunning": {reason: "another phase", cluster: of(machines,
			fields{"metadata": fields{"namespace": "openshift-machine-api", "name": "a"}, "status": fields{"phase": "Running"}})},
		"Forbidden": {
			reason:  "what may not be read is named, and what was read is reported besides",
			cluster: router(failing).and(cluster{kinds: []kind{machines}, objects: map[string][]fields{machines.resource(): nil}}), want: canary,
			message: []string{"could not list the Machine"},
		},
		"NotServed": {reason: "a definition whose kind is not served yet has no objects", cluster: cluster{kinds: []kind{ingress}}},
		"NoConditions": {reason: "a list of another shape has none", cluster: of(ingress,
			fields{
				"metadata": fields{"namespace": "openshift-ingress-operator", "name": "default"},
				"status":   fields{"conditions": []any{"text", fields{"status": "False"}}},
			})},
		"HostileText": {reason: "a message is shown on one line", cluster: router(condition("Degraded", "True", "Bad\nReason",
			"a\x1b[2J\nb", hours)), want: canary, message: []string{"(Bad Reason): a b"}},
		"OtherObjectOfCO": {reason: "the ClusterOperator that is degraded does not name this object", cluster: of(apiServer, object("",
			"cluster", condition("NodeControllerDegraded", "True", "", "", hour))).and(of(operators,
			clusterOperator(condition("Degraded", "True", "", "", hours)))), want: check + "-KubeAPIServer.cluster"},
		"ConditionAsField": {reason: "Progressing of a pool member", cluster: router(condition("Progressing", "False", "", "", hours))},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.cluster)
			t.Cleanup(server.Close)
			findings := checktest.Run(t, platform.Check(), checktest.Connect(&rest.Config{Host: server.URL}).Snapshot(t),
				checktest.Update(t, "4.18.3", "4.18.9"))
			warned := map[string]string{}
			for _, each := range findings {
				if each.Outcome == preflight.Warn && each.Name != check && each.Name != "" {
					warned[each.Name] = each.Reason
				}
				if each.Outcome == preflight.Fail || each.Outcome == preflight.Unknown {
					t.Errorf("%s: %+v", tc.reason, each)
				}
			}
			want := map[string]string{}
			if tc.want != "" {
				want[tc.want] = cmp.Or(tc.why, "ReportsFailure")
			}
			if diff := gocmp.Diff(want, warned); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\nin full: %+v", tc.reason, diff, findings)
			}
			checktest.Contains(t, tc.reason, checktest.Messages(findings), append(tc.message, tc.silent))
		})
	}
}

// Every kind of openshift/api whose objects report anything is of a group that roles permit to read, or another check
// reads it.
func TestGroups(t *testing.T) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output() //nolint:noctx // it ends by itself
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "*", "*", "zz_generated.crd-manifests", "*.yaml"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d definitions, %v", len(files), err)
	}
	// Not of a cluster: examples, and what an aggregated API serves.
	others := map[string]bool{"example.openshift.io": true, "apiserver.openshift.io": true}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatal(err)
		}
		need := access.Request{Verb: "list", Group: definition.Spec.Group, Resource: definition.Spec.Names.Plural}
		if reports(&definition) && !others[need.Group] && !permitted(need) {
			t.Errorf("no role permits to read %s", definition.Name)
		}
	}
}

func permitted(need access.Request) bool {
	for _, each := range check.Reads([]check.Check{platform.Check()}).Optional {
		if access.Includes(each, need) {
			return true
		}
	}
	return false
}

func reports(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, version := range definition.Spec.Versions {
		for name := range version.Schema.OpenAPIV3Schema.Properties["status"].Properties {
			if slices.Contains([]string{"conditions", "phase", "errorMessage", "failureMessage"}, name) {
				return true
			}
		}
	}
	return false
}
