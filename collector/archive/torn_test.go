package archive_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
)

// stored is YAML of an object as an API server returns it.
func stored(apiVersion, kind, name, annotations, more string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n%s  creationTimestamp: \"2026-01-01T00:00:00Z\"\n  name: %s\n  "+
		"resourceVersion: \"7\"\n  uid: u-1\n%s",
		apiVersion, kind, annotations, name, more)
}

// TestTorn cuts a file of one object at the end of each line before its last field, which leaves YAML that is not whole.
func TestTorn(t *testing.T) {
	const (
		config, mco = "config.openshift.io", "machineconfiguration.openshift.io"
		conditions  = "status:\n  conditions:\n  - status: \"True\"\n    type: Available\n  - status: \"False\"\n    type: Upgradeable\n"
		webhook     = "- admissionReviewVersions:\n  - v1\n  name: a.example.com\n  timeoutSeconds: 10\n"
		rendered    = "  annotations:\n    " + mco + "/generated-by-controller-version: v4\n"
	)
	type whole struct {
		reason  string
		of      schema.GroupVersionResource
		content string
		// end is the line from which on the file may end; empty for a file that is only read whole.
		end string
	}
	for name, tc := range map[string]whole{
		"ClusterOperator": {"without its conditions it reports nothing", operators, stored(config+"/v1", "ClusterOperator", "a", "",
			"spec: {}\n"+conditions+"  extension: null\n  versions:\n  - name: operator\n"), "  extension: null"},
		"OnlyVersions": {
			"an operator need not relate to objects", operators,
			stored(config+"/v1", "ClusterOperator", "a", "", "spec: {}\n"+conditions+"  versions: []\n"), "",
		},
		"APIRequestCount": {
			"the release that removes the API stands near its end",
			schema.GroupVersionResource{Group: "apiserver.openshift.io", Version: "v1", Resource: "apirequestcounts"},
			stored("apiserver.openshift.io/v1", "APIRequestCount", "a", "",
				"spec:\n  numberOfUsersToReport: 10\nstatus:\n  currentHour:\n    requestCount: 3\n  last24h:\n  - requestCount: 3\n  "+
					"removedInRelease: \"1.25\"\n  requestCount: 3\n"), "  requestCount: 3",
		},
		"Node": {
			"its version stands near its end", nodes,
			stored("v1", "Node", "a", "", "spec: {}\n"+conditions+"  nodeInfo:\n    kubeletVersion: v1.31.8\n"), "  nodeInfo:",
		},
		"MachineConfigPool": {"its conditions stand in its status", schema.GroupVersionResource{
			Group: mco, Version: "v1",
			Resource: "machineconfigpools",
		}, stored(mco+"/v1", "MachineConfigPool", "a", "",
			"spec:\n  paused: true\n"+conditions+"  machineCount: 0\n  updatedMachineCount: 0\n"), "  updatedMachineCount: 0"},
		"MachineConfig": {"its kernel arguments stand near its end", schema.GroupVersionResource{
			Group: mco, Version: "v1",
			Resource: "machineconfigs",
		}, stored(mco+"/v1", "MachineConfig", "a", rendered,
			"spec:\n  config:\n    ignition:\n      version: 3.4.0\n  kernelArguments:\n  - a\n  osImageURL: i\n"), "  osImageURL: i"},
		"WrittenMachineConfig": {"what people write has the fields that they want", schema.GroupVersionResource{
			Group: mco, Version: "v1",
			Resource: "machineconfigs",
		}, stored(mco+"/v1", "MachineConfig", "a", "", "spec:\n  kernelArguments:\n  - a\n"), ""},
		"Webhook": {
			"its failure policy and rules are fields of a webhook",
			schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
			stored("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a", "", "webhooks:\n"+webhook), "",
		},
		"NoWebhooks": {
			"a configuration need not have any",
			schema.GroupVersionResource{
				Group:   "admissionregistration.k8s.io",
				Version: "v1", Resource: "validatingwebhookconfigurations",
			},
			stored("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a", "", ""), "",
		},
		"Another": {"any object that was stored has a UID", widgets, stored("example.com/v1", "Widget", "a", "", ""), "  uid: u-1"},
		"Written": {
			"one that was not stored need not have", widgets,
			"apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\n", "",
		},
		"JSON": {
			"its end is never missing without an error", operators,
			`{"apiVersion":"config.openshift.io/v1","kind":"ClusterOperator","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","name":"a"}}`,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(content string) string {
				files := map[string]string{
					".git/HEAD": "ref: refs/heads/main\n",
					"cluster-scoped-resources/config.openshift.io/clusterversions.yaml":                        version,
					fmt.Sprintf("cluster-scoped-resources/%s/%s/a.yaml", groupOf(tc.of.Group), tc.of.Resource): content,
				}
				_, reached := open(t, write(t, tree(files)))
				return listed(t, reached, tc.of, "")
			}
			if got := read(tc.content); got != "complete: a" {
				t.Errorf("%s: the whole file: %q", tc.reason, got)
			}
			before, _, _ := strings.Cut(tc.content, tc.end+"\n")
			lines := strings.SplitAfter(before, "\n")
			for at := range lines[:len(lines)-1] {
				if content := strings.Join(lines[:at+1], ""); tc.end != "" && read(content) == "complete: a" {
					t.Errorf("%s: it is taken for whole where it ends with:\n%s", tc.reason, content)
				}
			}
		})
	}
}

// TestInferred halves the files of objects that nothing counts: what passes states that it counts those of the archive.
func TestInferred(t *testing.T) {
	const singles = "cluster-scoped-resources/core/nodes/"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   bool
	}{
		"Files": {
			"a file that was removed leaves no trace",
			map[string]string{".git/HEAD": "ref: refs/heads/main\n", singles + "a.yaml": node("a", "")},
			true,
		},
		"List": {
			"the API server stated that these are all",
			map[string]string{"cluster-scoped-resources/core/nodes.yaml": emptyList("v1", "NodeList")},
			false,
		},
		"Collection": {"its index counts them", map[string]string{
			singles + "a.yaml":          node("a", ""),
			"preflight-collection.json": `{"complete":["nodes"],"objects":{"nodes":1}}`,
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, reached := open(t, write(t, files(tc.files)))
			ctx, log := gap.Track(t.Context())
			gap.Prove(ctx, "a test")
			_, errList := reached.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			other, logOther := gap.Track(t.Context())
			if _, err := reached.Kubernetes.CoreV1().Nodes().Get(other, "b", metav1.GetOptions{}); errList != nil || !apierrors.IsNotFound(err) {
				t.Fatal(errList, err)
			}
			pass := finding.Pass(log.Extent(), finding.ReportedReason("R"), "m").Message
			if got := strings.HasSuffix(pass, "; this counts the objects in the archive"); got != tc.want || log.Extent().Inferred() != tc.want ||
				logOther.Extent().Inferred() != tc.want {
				t.Errorf("%s: a pass is %q", tc.reason, pass)
			}
		})
	}
}

func groupOf(group string) string {
	if group == "" {
		return "core"
	}
	return group
}
