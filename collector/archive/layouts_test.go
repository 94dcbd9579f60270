package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
)

// tree has these files.
func tree(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return all
}

// object is YAML of an object; its namespace may be empty.
func object(apiVersion, kind, namespace, name, more string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  namespace: %q\n%s", apiVersion, kind, name, namespace, more)
}

// emptyList is YAML of a list that states that it has all objects.
func emptyList(apiVersion, kind string) string {
	return "apiVersion: " + apiVersion + "\nitems: []\nkind: " + kind + "\nmetadata:\n  resourceVersion: \"9\"\n"
}

// discovery is YAML of aggregated discovery with these groups.
func discovery(groups string) string {
	return "apiVersion: apidiscovery.k8s.io/v2\nitems:\n" + groups + "kind: APIGroupDiscoveryList\n"
}

func node(name, more string) string { return object("v1", "Node", "", name, more) }

// listed is what a list of a resource is answered with: the names, and "complete", "partial" or the
// reason of the error.
func listed(t *testing.T, c *cluster.Cluster, of schema.GroupVersionResource, namespace string) string {
	t.Helper()
	ctx, log := gap.Track(t.Context())
	got, err := c.Dynamic.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	extent := "complete"
	if len(log.All()) > 0 {
		extent = "partial"
	}
	names := []string{extent + ":"}
	for _, each := range got.Items {
		names = append(names, each.GetName())
	}
	return strings.Join(names, " ")
}

var (
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	budgetsV1   = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	operators   = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "clusteroperators"}
	flowSchemas = schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "flowschemas"}
	machineSets = schema.GroupVersionResource{Group: "machine.openshift.io", Version: "v1beta1", Resource: "machinesets"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

func TestLayouts(t *testing.T) {
	const (
		clusterVersion = `{"metadata":{"name":"version"},"spec":{"clusterID":"a"}}`
		image, second  = "must-gather/quay-io-one-sha256-1/", "must-gather/quay-io-two-sha256-2/"
		versions       = "cluster-scoped-resources/config.openshift.io/clusterversions.yaml"
		core           = "- metadata: {}\n  versions:\n  - resources:\n    - resource: pods\n    version: v1\n"
		config         = "- metadata:\n    name: config.openshift.io\n  versions:\n  - resources:\n    - resource: clusterversions\n    " +
			"version: v1\n"
	)
	singular := object("config.openshift.io/v1", "ClusterVersion", "", "version", "spec:\n  clusterID: a\n")
	type question struct {
		of        schema.GroupVersionResource
		namespace string
		want      string
	}
	for name, tc := range map[string]struct {
		reason    string
		files     map[string]string
		questions []question
		leftOut   string
	}{
		"Insights": {reason: "objects get their type from the directory, and gatherers say what is complete", files: map[string]string{
			"config/version.json":            clusterVersion,
			"insights-operator/gathers.json": `{"status_reports":[{"name":"clusterconfig/nodes","records_count":1,"errors":[]},{"name":"clusterconfig/operators","records_count":7,"errors":[]}]}`,
			"config/node/n.json":             `{"metadata":{"name":"n1"}}`, "config/clusteroperator/etcd.json": `{"metadata":{"name":"etcd"}}`,
			"config/clusteroperator/operator.openshift.io/etcd/cluster.json": `{"apiVersion":"operator.openshift.io/v1","kind":"Etcd","name":"cluster","spec":{}}`,
			"config/pdbs/openshift-etcd/guard.json":                          `{"metadata":{"name":"guard","namespace":"openshift-etcd"}}`,
		}, questions: []question{
			{nodes, "", "complete: n1"},
			{operators, "", "complete: etcd"},
			{budgetsV1, "", "partial: guard"},
			{pods, "", "NotInArchive"},
		}},
		"InsightsHalved": {
			reason: "the archive states how many nodes it has recorded, and of machine sets that there are none",
			files: map[string]string{
				"config/version.json": clusterVersion, "config/node/n.json": `{"metadata":{"name":"n1"}}`,
				"insights-operator/gathers.json": `{"status_reports":[{"name":"clusterconfig/nodes","records_count":2,"errors":[]},{"name":"clusterconfig/machine_sets","records_count":0,"errors":[]}]}`,
			}, questions: []question{{nodes, "", "partial: n1"}, {machineSets, "", "complete:"}, {operators, "", "NotInArchive"}},
		},
		"InsightsFailed": {reason: "the archive states that its gatherer failed", files: map[string]string{
			"config/version.json": clusterVersion, "config/node/n.json": `{"metadata":{"name":"n1"}}`,
			"insights-operator/gathers.json": `{"status_reports":[{"name":"clusterconfig/nodes","errors":["timeout"]}]}`,
		}, questions: []question{{nodes, "", "partial: n1"}}},
		"Lists": {reason: "a file that is named by its resource has all objects, unless they are of one namespace", files: map[string]string{
			"cv.yaml": singular, "nodes.yaml": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\nkind: " +
				"List\nmetadata:\n  resourceVersion: \"\"\n",
			"pods.json": `{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ns"}}]}`,
			"some.yaml": object("policy/v1", "PodDisruptionBudget", "ns", "b", ""),
		}, questions: []question{
			{nodes, "", "complete: n1"},
			{pods, "", "partial: p"},
			{pods, "ns", "complete: p"},
			{budgetsV1, "ns", "partial: b"},
			{operators, "", "NotInArchive"},
		}},
		"Resourcewatch": {reason: "it writes each object of what it watches", files: map[string]string{
			".git/HEAD": "ref: refs/heads/main\n", "cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml": singular,
			"cluster-scoped-resources/core/nodes/n1.yaml": node("n1", ""),
		}, questions: []question{{nodes, "", "complete: n1"}, {budgetsV1, "", "NotInArchive"}}},
		"Guest": {reason: "the cluster of a dump of HyperShift is the hosted one", files: map[string]string{
			versions: strings.Replace(version, "clusterID: a", "clusterID: b", 1),
			"cluster-scoped-resources/core/nodes/management.yaml":            node("management", ""),
			"hostedcluster-x/" + versions:                                    version,
			"hostedcluster-x/cluster-scoped-resources/core/nodes/guest.yaml": node("guest", ""),
		}, questions: []question{{nodes, "", "partial: guest"}}},
		"Discovered": {reason: "aggregated discovery proves that an API is not served", files: map[string]string{
			versions: version, "aggregated-discovery-api.yaml": discovery(core), "aggregated-discovery-apis.yaml": discovery(config),
		}, questions: []question{{widgets, "", "NotFound"}, {pods, "", "NotInArchive"}}},
		"HalfDiscovered": {reason: "one of its files proves nothing", files: map[string]string{
			versions: version, "aggregated-discovery-api.yaml": discovery(core),
		}, questions: []question{{widgets, "", "NotInArchive"}}},
		"TornDiscovery": {reason: "what follows in the file is not known", files: map[string]string{
			versions: version, "aggregated-discovery-api.yaml": discovery(core),
			"aggregated-discovery-apis.yaml": strings.TrimSuffix(discovery(config), "kind: APIGroupDiscoveryList\n"),
		}, questions: []question{{widgets, "", "NotInArchive"}}, leftOut: "aggregated-discovery-apis.yaml: it ends before the kind of its list"},
		"OtherDiscovery": {reason: "a list of another kind is not that of all groups", files: map[string]string{
			versions: version, "aggregated-discovery-api.yaml": discovery(core),
			"aggregated-discovery-apis.yaml": strings.Replace(discovery(config), "APIGroupDiscoveryList", "List", 1),
		}, questions: []question{{widgets, "", "NotInArchive"}}, leftOut: `it has the kind "List"`},
		"StaleDiscovery": {reason: "the API server of a group did not answer", files: map[string]string{
			versions: version, "aggregated-discovery-api.yaml": discovery(core),
			"aggregated-discovery-apis.yaml": discovery(config +
				"- metadata:\n    name: example.com\n  versions:\n  - freshness: Stale\n    version: v1\n"),
		}, questions: []question{{widgets, "", "NotInArchive"}, {machineSets, "", "NotFound"}}},
		"WrongKind": {reason: "a Secret is no node", files: map[string]string{
			versions: version, "cluster-scoped-resources/core/nodes/x.yaml": object("v1", "Secret", "", "x", ""),
			"cluster-scoped-resources/core/nodes/n1.yaml": node("n1", ""),
		}, questions: []question{{nodes, "", "partial: n1"}}, leftOut: "x.yaml: it has the kind Secret, where nodes are expected"},
		"WrongList": {reason: "no Secrets are not no nodes", files: map[string]string{
			versions: version, "cluster-scoped-resources/core/nodes.yaml": emptyList("v1", "SecretList"),
		}, questions: []question{{nodes, "", "NotInArchive"}}, leftOut: "nodes.yaml: its list has the kind SecretList, where nodes are expected"},
		"WrongGroup": {
			reason: "groups have kinds of one name", files: map[string]string{
				versions: version, "cluster-scoped-resources/core/nodes.yaml": emptyList("example.com/v1", "NodeList"),
				"cluster-scoped-resources/example.com/widgets.yaml": emptyList("example.org/v1", "WidgetList"),
			}, questions: []question{{nodes, "", "NotInArchive"}, {widgets, "", "NotInArchive"}},
			leftOut: "its list has the kind WidgetList.example.org, where widgets.example.com are expected",
		},
		"WrongItem": {reason: "a list of kubectl has objects of any kind", files: map[string]string{
			versions: version, "cluster-scoped-resources/core/nodes.yaml": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Secret\n  " +
				"metadata:\n    name: x\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
		}, questions: []question{{nodes, "", "NotInArchive"}}, leftOut: "the kind Secret, where nodes"},
		"Plurals": {reason: "each has the name of its resource", files: map[string]string{
			versions: version, "namespaces/ns/core/endpoints.yaml": emptyList("v1", "EndpointsList"),
			"namespaces/ns/discovery.k8s.io/endpointslices.yaml": emptyList("discovery.k8s.io/v1", "EndpointSliceList"),
			"cluster-scoped-resources/security.openshift.io/securitycontextconstraints.yaml": emptyList("security.openshift.io/v1",
				"SecurityContextConstraintsList"),
			"cluster-scoped-resources/config.openshift.io/dnses.yaml":     emptyList("config.openshift.io/v1", "DNSList"),
			"cluster-scoped-resources/config.openshift.io/proxies.yaml":   emptyList("config.openshift.io/v1", "ProxyList"),
			"cluster-scoped-resources/config.openshift.io/ingresses.yaml": emptyList("config.openshift.io/v1", "IngressList"),
			"cluster-scoped-resources/gateway.networking.k8s.io/gateways.yaml": emptyList("gateway.networking.k8s.io/v1",
				"GatewayList"),
			"cluster-scoped-resources/metrics.k8s.io/nodes.yaml": emptyList("metrics.k8s.io/v1beta1", "NodeMetricsList"),
			"cluster-scoped-resources/example.com/indices.yaml":  emptyList("example.com/v1", "IndexList"),
		}, questions: []question{
			{schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}, "ns", "complete:"},
			{schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, "ns", "complete:"},
			{schema.GroupVersionResource{Group: "security.openshift.io", Version: "v1", Resource: "securitycontextconstraints"}, "", "complete:"},
			{schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "dnses"}, "", "complete:"},
			{schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "proxies"}, "", "complete:"},
			{schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "ingresses"}, "", "complete:"},
			{schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}, "", "complete:"},
			{schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}, "", "complete:"},
			{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "indices"}, "", "complete:"},
		}},
		"ListOfOthers": {reason: "the content of a file is not what its name says", files: map[string]string{
			"cv.yaml": singular, "pods.yaml": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\nkind: " +
				"List\nmetadata:\n  resourceVersion: \"\"\n",
			"widgets.example.com.yaml": emptyList("example.com/v1", "GadgetList"),
		}, questions: []question{{pods, "", "NotInArchive"}, {nodes, "", "partial: n1"}, {widgets, "", "NotInArchive"}}},
		"ListOfMore": {reason: "a file of several resources need not have all of one", files: map[string]string{
			"cv.yaml": singular, "nodes.yaml": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\n- " +
				"apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p\n    namespace: ns\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
		}, questions: []question{{nodes, "", "partial: n1"}, {pods, "ns", "partial: p"}}},
		"EmptyLists": {
			reason: "kubectl and the API server state that there are none, also where the file names no group",
			files: map[string]string{
				"cv.yaml": singular, "nodes.yaml": "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
				"pods.yaml": emptyList("v1", "PodList"), "widgets.yaml": emptyList("example.com/v1", "WidgetList"),
			}, questions: []question{{nodes, "", "complete:"}, {pods, "", "complete:"}, {widgets, "", "complete:"}},
		},
		"UnreadVersion": {
			reason: "a tree whose ClusterVersion cannot be read may be of another cluster", files: map[string]string{
				image + versions: version, second + versions: "apiVersion: config.openshift.io/v1\nitems:\n",
				second + "cluster-scoped-resources/example.com/widgets.yaml": emptyList("example.com/v1", "WidgetList"),
			}, questions: []question{{widgets, "", "NotInArchive"}},
			leftOut: "quay-io-two-sha256-2: it is not known to belong to the cluster: " + second + versions + " cannot be read",
		},
		"UnreadFile": {
			reason: "the path of a file has the root of its tree once", files: map[string]string{
				image + versions: version, image + "cluster-scoped-resources/core/nodes/n1.yaml": "kind: No",
			}, questions: []question{{nodes, "", "NotInArchive"}},
			leftOut: "archive/" + image + "cluster-scoped-resources/core/nodes/n1.yaml: it ends within a line",
		},
		"SecondImage": {reason: "of another image, only what the first lacks is read", files: map[string]string{
			image + versions: version, image + "cluster-scoped-resources/core/nodes/n1.yaml": node("n1", ""),
			second + "cluster-scoped-resources/core/nodes/old.yaml": node("old", ""), second +
				"cluster-scoped-resources/example.com/widgets.yaml": "apiVersion: example.com/v1\nitems:\n- apiVersion: example.com/v1\n  " +
				"kind: Widget\n  metadata:\n    name: w\nkind: WidgetList\nmetadata:\n  resourceVersion: \"9\"\n",
		}, questions: []question{{nodes, "", "partial: n1"}, {widgets, "", "complete: w"}}},
		"InspectBeside": {reason: "the fallback of must-gather is of the same cluster", files: map[string]string{
			image + versions: version, image + "cluster-scoped-resources/core/nodes/n1.yaml": node("n1", ""),
			"must-gather/inspect.local.1/" + versions:                                                        version,
			"must-gather/inspect.local.1/cluster-scoped-resources/config.openshift.io/clusteroperators.yaml": "apiVersion: config.openshift.io/v1\nitems:\n- apiVersion: config.openshift.io/v1\n  kind: ClusterOperator\n  metadata:\n    name: etcd\nkind: ClusterOperatorList\nmetadata:\n  resourceVersion: \"9\"\n",
		}, questions: []question{{nodes, "", "partial: n1"}, {operators, "", "complete: etcd"}}},
		"Cleaned": {reason: "nodes of one name are not one node", files: map[string]string{
			versions: version, "cluster-scoped-resources/core/nodes/a.yaml": node("xxx", "  uid: one\n"),
			"cluster-scoped-resources/core/nodes/b.yaml": node("xxx", "  uid: two\n"),
		}, questions: []question{{nodes, "", "partial: xxx"}}},
		"Newest": {reason: "of an object that is there twice, the larger resourceVersion counts", files: map[string]string{
			versions: version, "cluster-scoped-resources/example.com/widgets.yaml": "apiVersion: example.com/v1\nitems:\n- apiVersion: " +
				"example.com/v1\n  kind: Widget\n  metadata:\n    name: w\n    resourceVersion: \"100\"\nkind: WidgetList\nmetadata:\n  " +
				"resourceVersion: \"9\"\n",
			"cluster-scoped-resources/example.com/widgets/w.yaml": object("example.com/v1", "Widget", "", "w",
				"  resourceVersion: \"99\"\nspec: old\n"),
		}, questions: []question{{widgets, "", "complete: w"}}},
		"Groups": {reason: "two groups have a resource of one name", files: map[string]string{
			versions: version, "cluster-scoped-resources/example.com/widgets/w.yaml": object("example.com/v1", "Widget", "", "w", ""),
			"cluster-scoped-resources/example.org/widgets/other.yaml": object("example.org/v1", "Widget", "", "other", ""),
		}, questions: []question{{widgets, "", "partial: w"}}},
		"FileForDirectory": {reason: "a file is where a directory is expected", files: map[string]string{
			versions: version, "namespaces/ns/policy.yaml": "kind: x\n", "cluster-scoped-resources/core": "text",
		}, questions: []question{{budgetsV1, "ns", "NotInArchive"}, {nodes, "", "NotInArchive"}}},
		"Alias": {reason: "aliases are refused", files: map[string]string{
			versions: version, "cluster-scoped-resources/core/nodes/n.yaml": "apiVersion: &v v1\nkind: Node\nmetadata:\n  name: n1\n  " +
				"generateName: *v\n",
		}, questions: []question{{nodes, "", "NotInArchive"}}},
		"Conversion": {reason: "what cannot be converted is missing, and the rest is there", files: map[string]string{
			versions: version,
			"cluster-scoped-resources/flowcontrol.apiserver.k8s.io/flowschemas.yaml": "apiVersion: flowcontrol.apiserver.k8s.io/v1\nitems:\n" +
				"- apiVersion: flowcontrol.apiserver.k8s.io/v1beta1\n  kind: FlowSchema\n  metadata:\n    name: old\n- apiVersion: " +
				"flowcontrol.apiserver.k8s.io/v9\n  kind: FlowSchema\n  metadata:\n    name: new\nkind: FlowSchemaList\n",
		}, questions: []question{{flowSchemas, "", "partial: old"}}},
	} {
		t.Run(name, func(t *testing.T) {
			opened, reached := open(t, write(t, tree(tc.files)))
			for _, each := range tc.questions {
				if got := listed(t, reached, each.of, each.namespace); got != each.want {
					t.Errorf("%s: %s of %q: got %q, want %q", tc.reason, each.of.Resource, each.namespace, got, each.want)
				}
			}
			if left := strings.Join(opened.About().LeftOut, "\n"); !strings.Contains(left, tc.leftOut) {
				t.Errorf("%s: left out %q, want %q", tc.reason, left, tc.leftOut)
			}
		})
	}
}

// What an archive names and does not have is missing: "complete" comes from the collection, which
// states that it has all nodes and all budgets.
func TestNotRead(t *testing.T) {
	const directory, nodesOf = "cluster-scoped-resources/core/nodes", "cluster-scoped-resources/core/nodes/"
	link := func(name string, kind byte, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: kind, Linkname: target}
	}
	regular := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	for name, tc := range map[string]struct {
		reason         string
		entries        []tar.Header
		nodes, budgets string
		leftOut        string
	}{
		"Nothing": {reason: "all is there", nodes: "complete: n1", budgets: "complete: b"},
		"SymbolicLink": {
			reason: "a link is not followed", entries: []tar.Header{link(nodesOf+"n2.yaml", tar.TypeSymlink, "n1.yaml")},
			nodes: "partial: n1", budgets: "complete: b", leftOut: "n2.yaml: it is a symbolic link",
		},
		"HardLink": {
			reason: "the file was read before", entries: []tar.Header{link(nodesOf+"again.yaml", tar.TypeLink, nodesOf+"n1.yaml")},
			nodes: "complete: n1", budgets: "complete: b",
		},
		"LostHardLink": {reason: "the file is not in the archive", entries: []tar.Header{link(nodesOf+"n2.yaml", tar.TypeLink,
			"elsewhere.yaml")}, nodes: "partial: n1", budgets: "complete: b", leftOut: "n2.yaml: it is a hard link"},
		"Pipe": {
			reason: "it has no content", entries: []tar.Header{link(nodesOf+"n2.yaml", tar.TypeFifo, "")}, nodes: "partial: n1",
			budgets: "complete: b", leftOut: "n2.yaml: it is not a regular file",
		},
		"Outside": {
			reason: "a path out of the archive is not followed", entries: []tar.Header{regular("../" + nodesOf + "n2.yaml")},
			nodes: "partial: n1", budgets: "complete: b", leftOut: "n2.yaml: its path leads out",
		},
		"LinkedNodes": {
			reason: "a link may lead to a directory", entries: []tar.Header{link(directory, tar.TypeSymlink, "elsewhere")},
			nodes: "partial: n1", budgets: "complete: b", leftOut: "nodes: it is a symbolic link",
		},
		"LinkedGroup": {reason: "with all resources of a group", entries: []tar.Header{link("cluster-scoped-resources/core", tar.TypeSymlink,
			"x")}, nodes: "partial: n1", budgets: "complete: b", leftOut: "core: it is a symbolic link"},
		"LinkedSpace": {
			reason: "with all resources of a namespace", entries: []tar.Header{link("namespaces/other", tar.TypeSymlink, "x")},
			nodes: "complete: n1", budgets: "partial: b", leftOut: "other: it is a symbolic link",
		},
		"LinkedSpaces": {
			reason: "with all namespaces", entries: []tar.Header{link("namespaces", tar.TypeSymlink, "x")}, nodes: "complete: n1",
			budgets: "partial: b", leftOut: "namespaces: it is a symbolic link",
		},
		"LinkedLog": {reason: "logs have no objects", entries: []tar.Header{link("namespaces/ns/pods/p/c/c/logs/current.log", tar.TypeSymlink,
			"x")}, nodes: "complete: n1", budgets: "complete: b"},
		"LongPath": {
			reason: "a path is bounded", entries: []tar.Header{regular(nodesOf + strings.Repeat("a", 5000) + ".yaml")},
			nodes: "partial: n1", budgets: "complete: b", leftOut: "nodes: the path of a file is too long",
		},
		"InnerArchive": {
			reason: "it may have objects", entries: []tar.Header{regular("must-gather.tar.gz")}, nodes: "complete: n1",
			budgets: "complete: b", leftOut: "must-gather.tar.gz: an archive within the archive",
		},
		"InsightsInner": {
			reason: "every must-gather has one", entries: []tar.Header{regular("insights-data/insights.tar.gz")},
			nodes: "complete: n1", budgets: "complete: b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.tar")
			if err := os.WriteFile(path, collected(t, tc.entries), 0o600); err != nil {
				t.Fatal(err)
			}
			opened, reached := open(t, path)
			if diff := cmp.Diff([]string{tc.nodes, tc.budgets},
				[]string{listed(t, reached, nodes, ""), listed(t, reached, budgetsV1, "")}); diff != "" {
				t.Errorf("%s; -want, +got:\n%s", tc.reason, diff)
			}
			left := strings.Join(opened.About().LeftOut, "\n")
			if (left == "") != (tc.leftOut == "") || !strings.Contains(left, tc.leftOut) {
				t.Errorf("%s: left out %q, want %q", tc.reason, left, tc.leftOut)
			}
		})
	}
}

// A key that encoding/json takes for another one proves nothing, and an object of another namespace is not one of that of
// its directory.
func TestForged(t *testing.T) {
	const stated = `"complete":["nodes","poddisruptionbudgets.policy"],"objects":{"nodes":1,"poddisruptionbudgets.policy":1}`
	for name, tc := range map[string]struct{ reason, collection, budget, budgets, leftOut string }{
		"Nothing": {reason: "all is there", collection: "{" + stated + "}", budget: budget, budgets: "complete: b"},
		"Case": {
			reason:     "the last of two keys would count",
			collection: `{"complete":["nodes","poddisruptionbudgets.policy"],"objects":{"poddisruptionbudgets.policy":2},"Objects":{"poddisruptionbudgets.policy":1}}`, budget: budget,
			budgets: "partial: b", leftOut: "preflight-collection.json",
		},
		"OnlyCase": {
			reason: "no program writes it", collection: strings.Replace("{"+stated+"}", `"complete"`, `"Complete"`, 1), budget: budget,
			budgets: "partial: b", leftOut: "preflight-collection.json",
		},
		"Duplicate": {
			reason: "the last of two keys would count", collection: `{"objects":{"poddisruptionbudgets.policy":2},` + stated + "}",
			budget: budget, budgets: "partial: b", leftOut: "preflight-collection.json",
		},
		"Namespace": {
			reason: "the object is of another namespace", collection: "{" + stated + "}",
			budget: object("policy/v1", "PodDisruptionBudget", "other", "b", ""), budgets: "NotInArchive", leftOut: "b.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened, reached := open(t, write(t, tree(map[string]string{
				"preflight-collection.json": tc.collection, "cluster-scoped-resources/config.openshift.io/clusterversions.yaml": version,
				"cluster-scoped-resources/core/nodes/n1.yaml": node("n1", ""), "namespaces/ns/policy/poddisruptionbudgets/b.yaml": tc.budget,
			})))
			if got := listed(t, reached, budgetsV1, ""); got != tc.budgets {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.budgets)
			}
			if left := strings.Join(opened.About().LeftOut, "\n"); (left == "") != (tc.leftOut == "") || !strings.Contains(left, tc.leftOut) {
				t.Errorf("%s: left out %q, want %q", tc.reason, left, tc.leftOut)
			}
		})
	}
}

// collected is a tar of a collection with all nodes and budgets, and with more entries without content.
func collected(t *testing.T, more []tar.Header) []byte {
	t.Helper()
	var content bytes.Buffer
	into := tar.NewWriter(&content)
	for _, each := range []struct{ name, content string }{
		{
			"preflight-collection.json",
			`{"complete":["nodes","poddisruptionbudgets.policy"],"objects":{"nodes":1,"poddisruptionbudgets.policy":1}}`,
		},
		{"cluster-scoped-resources/config.openshift.io/clusterversions.yaml", version},
		{"cluster-scoped-resources/core/nodes/n1.yaml", node("n1", "")},
		{"namespaces/ns/policy/poddisruptionbudgets/b.yaml", budget},
	} {
		err := into.WriteHeader(&tar.Header{Name: each.name, Size: int64(len(each.content)), Mode: 0o600})
		if _, writeErr := into.Write([]byte(each.content)); errors.Join(err, writeErr) != nil {
			t.Fatal(err, writeErr)
		}
	}
	for _, header := range more {
		if err := into.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// TestSeveralHosted is an error that says what was found, and how to choose.
func TestSeveralHosted(t *testing.T) {
	const versions = "/cluster-scoped-resources/config.openshift.io/clusterversions.yaml"
	dir := write(t, tree(map[string]string{
		"hostedcluster-x" + versions: version,
		"hostedcluster-y" + versions: strings.Replace(version, "clusterID: a", "clusterID: b", 1),
	}))
	_, err := archive.Open(t.Context(), dir)
	for _, want := range []string{
		"cluster a in " + dir + "/hostedcluster-x", "cluster b in " + dir + "/hostedcluster-y",
		"name the directory of one",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestLargeFile leaves a file out that is larger than a limit, and says which.
func TestLargeFile(t *testing.T) {
	const large = "cluster-scoped-resources/core/nodes/n.yaml"
	random := make([]byte, 40<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // it never fails
	for name, tc := range map[string]struct {
		reason  string
		content []byte
		size    int64
		cause   string
	}{
		"Size": {reason: "its objects take several times the memory", size: 49 << 20, cause: "it has 51380224 bytes, more than 50331648"},
		"Packed": {
			reason: "files are kept compressed", content: random, size: int64(len(random)),
			cause: "it is larger than 33554432 bytes after compression",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, files(map[string]string{large: string(tc.content), "cluster-scoped-resources/core/nodes/m.yaml": node("m", "")}))
			if err := os.Truncate(filepath.Join(dir, large), tc.size); err != nil { // without blocks on the disk
				t.Fatal(err)
			}
			opened, reached := open(t, dir)
			if got := listed(t, reached, nodes, ""); got != "partial: m" {
				t.Errorf("%s: got %q", tc.reason, got)
			}
			_, err := reached.Kubernetes.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
			if !gap.Is(err) || !strings.Contains(err.Error(), tc.cause) {
				t.Errorf("%s: a node whose file is too large: %v", tc.reason, err)
			}
			if out := opened.About().LeftOut; len(out) != 1 || !strings.Contains(out[0], large+": "+tc.cause) {
				t.Errorf("%s: left out: %q", tc.reason, out)
			}
		})
	}
}

// TestSamePath has two files of one path, as a tar of a cleaned archive can.
func TestSamePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cleaned.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	into := tar.NewWriter(file)
	for _, each := range []struct{ name, content string }{
		{"cluster-scoped-resources/config.openshift.io/clusterversions.yaml", version},
		{"cluster-scoped-resources/core/nodes/xxx.yaml", node("xxx", "  uid: one\n")},
		{"cluster-scoped-resources/core/nodes/xxx.yaml", node("xxx", "  uid: two\n")},
	} {
		err := into.WriteHeader(&tar.Header{Name: each.name, Size: int64(len(each.content)), Mode: 0o600})
		if _, writeErr := into.Write([]byte(each.content)); errors.Join(err, writeErr) != nil {
			t.Fatal(err, writeErr)
		}
	}
	if err := errors.Join(into.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	_, reached := open(t, path)
	ctx, log := gap.Track(t.Context())
	if _, err := reached.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil || len(log.All()) != 1 {
		t.Fatalf("gaps %v, %v", log.All(), err)
	}
	if diff := cmp.Diff(`only some of all nodes (several have the name "xxx", probably because names were removed)`,
		log.All()[0].String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAlerts reads alerts by the content of their file.
func TestAlerts(t *testing.T) {
	const (
		rules        = `{"status":"success","data":{"groups":[{"rules":[{"type":"alerting","alerts":[{"labels":{"alertname":"A"},"state":"pending"}]},{"type":"recording"}]}]}}`
		alerts       = `{"status":"success","data":{"alerts":[{"labels":{"alertname":"B"},"state":"firing"}]}}`
		noRoute      = `{"nonexistent":["routes.route.openshift.io openshift-monitoring/thanos-querier"]}`
		alertmanager = `[{"labels":{"alertname":"C"},"startsAt":"2021-01-01T00:00:00Z","status":{"state":"active"}}]`
	)
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		link   string
		want   string
	}{
		"Rules": {
			reason: "the rules of a Prometheus have their alerts", files: map[string]string{"monitoring/prometheus/rules.json": rules},
			want: `"alertname":"A"},"annotations":null,"state":"pending"`,
		},
		"OldRules": {
			reason: "up to 4.8 the file of the rules has the name of the alerts",
			files:  map[string]string{"monitoring/alerts.json": rules}, want: `"alertname":"A"`,
		},
		"Alerts": {reason: "the alerts themselves", files: map[string]string{"monitoring/alerts.json": alerts}, want: `"alertname":"B"`},
		"Insights": {
			reason: "those of an Alertmanager fire", files: map[string]string{"config/alerts.json": alertmanager},
			want: `"alertname":"C"},"annotations":null,"state":"firing"`,
		},
		"Torn": {
			reason: "a torn file is no list without alerts", files: map[string]string{"monitoring/prometheus/rules.json": rules[:60]},
			want: "not_in_archive",
		},
		"Failed": {
			reason: "nor is the error of a Prometheus",
			files:  map[string]string{"monitoring/prometheus/rules.json": `{"status":"error"}`}, want: "not_in_archive",
		},
		"Cases": {
			reason: "nor is a list that another hides",
			files:  map[string]string{"monitoring/alerts.json": strings.Replace(alerts, `}]}}`, `}],"Alerts":[]}}`, 1)}, want: "not_in_archive",
		},
		"None": {reason: "nor is no file", want: "not_in_archive"},
		"NoRoute": {
			reason: "the cluster has no monitoring", files: map[string]string{"preflight-collection.json": noRoute},
			want: "no_monitoring",
		},
		"Empty": {
			reason: "a file of alerts is there, so that it has monitoring",
			files:  map[string]string{"preflight-collection.json": noRoute, "monitoring/alerts.json": ""},
			want:   "the file monitoring/alerts.json of the archive cannot be read: it is empty",
		},
		"Link": {
			reason: "so may be what is behind a link", files: map[string]string{"preflight-collection.json": noRoute},
			link: "monitoring", want: "not_in_archive",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, files(tc.files))
			if tc.link != "" {
				if err := os.Symlink("elsewhere", filepath.Join(dir, tc.link)); err != nil {
					t.Fatal(err)
				}
			}
			_, reached := open(t, dir)
			got, _ := reached.Kubernetes.Discovery().RESTClient().Get().
				AbsPath("/api/v1/namespaces/openshift-monitoring/services/https:thanos-querier:web/proxy/api/v1/alerts").DoRaw(t.Context())
			if !strings.Contains(string(got), tc.want) {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestNamespacesOfACollection reads the objects of two namespaces of a resource one after the other: the first request
// must not decide which are there.
func TestNamespacesOfACollection(t *testing.T) {
	dir := write(t, files(map[string]string{
		"preflight-collection.json":                                   `{"complete":["pods"],"objects":{"pods":0}}`,
		"namespaces/openshift-config/core/configmaps/admin-acks.yaml": object("v1", "ConfigMap", "openshift-config", "admin-acks", ""),
		"namespaces/openshift-config-managed/core/configmaps/admin-gates.yaml": object("v1", "ConfigMap", "openshift-config-managed",
			"admin-gates", ""),
	}))
	_, reached := open(t, dir)
	for namespace, name := range map[string]string{"openshift-config": "admin-acks", "openshift-config-managed": "admin-gates"} {
		if _, err := reached.Kubernetes.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s/%s: %v", namespace, name, err)
		}
	}
}

func mayI(t *testing.T, c *cluster.Cluster, verb string) bool {
	t.Helper()
	asked := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "nodes"},
	}}
	answered, err := c.Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), asked, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answered.Status.Allowed
}

// TestReviews lets a client read everything and write nothing.
func TestReviews(t *testing.T) {
	_, reached := open(t, write(t, files(nil)))
	for verb, want := range map[string]bool{"get": true, "list": true, "create": false} {
		if allowed := mayI(t, reached, verb); allowed != want {
			t.Errorf("%s is allowed: %t", verb, allowed)
		}
	}
}

// TestNow is the newest time of any object: files of lists need not be named by their resource.
func TestNow(t *testing.T) {
	acceptance := object("config.openshift.io/v1", "ClusterVersion", "", "version",
		"  creationTimestamp: \"2025-06-03T08:17:40Z\"\nspec:\n  clusterID: a\n")
	for name, tc := range map[string]struct {
		reason, content string
		want            time.Time
	}{
		"AnyFile": {reason: "a list of another name", content: acceptance, want: time.Date(2025, 6, 3, 8, 17, 40, 0, time.UTC)},
		"Pieces": {reason: "a time that is in two pieces of a long line", content: strings.Replace(acceptance, "spec:",
			"data: "+strings.Repeat("a", 64<<10-20)+" time:2025-06-04T08:17:40Z\nspec:", 1), want: time.Date(2025, 6, 4, 8, 17, 40, 0, time.UTC)},
		"None": {
			reason:  "what has an end has ended",
			content: strings.Replace(acceptance, "  creationTimestamp: \"2025-06-03T08:17:40Z\"\n", "", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			opened, _ := open(t, write(t, tree(map[string]string{"what-the-customer-sent.yaml": tc.content})))
			if got := opened.Now(); !tc.want.IsZero() && !got.Equal(tc.want) || tc.want.IsZero() && got.Before(started) {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestFeatureGated are admission policies, which Kubernetes serves by a feature gate from 1.26 to 1.29.
func TestFeatureGated(t *testing.T) {
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	gates := func(set string) string {
		return object("config.openshift.io/v1", "FeatureGate", "", "cluster", "spec:\n  featureSet: "+set+"\n")
	}
	for name, tc := range map[string]struct{ reason, version, gates, want string }{
		"Before":      {reason: "no gate serves it", version: "1.25.9", want: "NotFound"},
		"Default":     {reason: "the gate is off", version: "1.29.4", gates: gates(`""`), want: "NotFound"},
		"TechPreview": {reason: "the gate may be on", version: "1.29.4", gates: gates("TechPreviewNoUpgrade"), want: "NotInArchive"},
		"Unknown":     {reason: "the feature set is not there", version: "1.29.4", want: "NotInArchive"},
		"Served":      {reason: "every server has it", version: "1.30.0", gates: gates(`""`), want: "NotInArchive"},
	} {
		t.Run(name, func(t *testing.T) {
			operator := object("config.openshift.io/v1", "ClusterOperator", "", "kube-apiserver",
				"status:\n  versions:\n  - name: kube-apiserver\n    version: "+tc.version+"\n")
			content := map[string]string{"cluster-scoped-resources/config.openshift.io/clusteroperators/kube-apiserver.yaml": operator}
			if tc.gates != "" {
				content["cluster-scoped-resources/config.openshift.io/featuregates/cluster.yaml"] = tc.gates
			}
			_, reached := open(t, write(t, files(content)))
			if got := listed(t, reached, policies, ""); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
