package sample_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/test/apiserver"
)

// archived is the state of the cluster of an archive.
func archived(t *testing.T, path string) baseline.State {
	t.Helper()
	return archivedAt(t, path, time.Time{})
}

// archivedAt is archived at a time; that of the archive for none.
func archivedAt(t *testing.T, path string, now time.Time) baseline.State {
	t.Helper()
	opened, err := archive.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.ConnectAt(opened.Config(), "test", opened.Now())
	if err != nil {
		t.Fatal(err)
	}
	if now.IsZero() {
		now = api.Now()
	}
	client := monitoring.New(monitoring.Querier{Config: opened.Config(), Dynamic: api.Dynamic}.Find, monitoring.DefaultTimeout)
	state, err := sample.Take(t.Context(), snapshot.Of(api), nil, client, now)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Of a must-gather it is known what was gathered, and named what was not.
func TestArchive(t *testing.T) {
	state := archived(t, "../../../examples/archive")
	want := []string{
		"ClusterServiceVersion openshift-operator-lifecycle-manager/packageserver NotSucceeded: its phase is not set",
		"MachineConfigPool master NotUpdated 2025-06-03T08:10:00Z: 2 of 3 nodes updated",
	}
	if diff := gocmp.Diff(want, problems(state)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for kind, complete := range map[baseline.Kind]bool{
		baseline.ClusterOperator: true, baseline.Node: true, baseline.Alert: true, baseline.Deployment: false, baseline.Route: false,
		baseline.CertificateSigningRequest: false,
	} {
		if cause, unread := state.Unread[kind]; unread == complete {
			t.Errorf("%s: unread %t: %s", kind, unread, cause)
		}
	}
}

// An archive has all of some namespaces, and others of which it is not known what is missing: a Service there may have endpoints.
func TestPartOfANamespace(t *testing.T) {
	dir := t.TempDir()
	for _, namespace := range []string{"openshift-whole", "openshift-part"} {
		of := "namespaces/" + namespace + "/"
		write(t, dir, of+"core/services.yaml", "{kind: ServiceList, apiVersion: v1, metadata: {resourceVersion: '5'}, items: "+
			"[{apiVersion: v1, kind: Service, metadata: {name: web, namespace: "+namespace+
			"}, spec: {selector: {app: web}, ports: [{port: 443}]}}]}")
		write(t, dir, of+"core/pods.yaml", "{kind: PodList, apiVersion: v1, metadata: {resourceVersion: '5'}, items: [{apiVersion: v1, "+
			"kind: Pod, metadata: {name: a, namespace: "+namespace+", labels: {app: web}}, status: {phase: Running}}]}")
	}
	write(t, dir, "namespaces/openshift-whole/discovery.k8s.io/endpointslices.yaml",
		"{kind: EndpointSliceList, apiVersion: discovery.k8s.io/v1, metadata: {resourceVersion: '5'}, items: []}")
	write(t, dir, "cluster-scoped-resources/config.openshift.io/clusterversions.yaml",
		"{kind: ClusterVersionList, apiVersion: config.openshift.io/v1, items: ["+version+"]}")
	const times = "2026-11-25 10:12:00.016988581 +0000 UTC m=+0.380233555\n2026-11-25 10:13:00.016988581 +0000 UTC m=+60.380233555\n"
	write(t, dir, "timestamp", times)
	state := archived(t, dir)
	if diff := gocmp.Diff([]string{"Service openshift-whole/web NoReadyEndpoints: none of its endpoints is ready"},
		problems(state)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if state.Unread[baseline.Service] == "" {
		t.Error("the Services of a part of the namespaces seem to be all")
	}
}

// An archive with what is read has the same state as its cluster, but for texts of which it has none.
func TestCollectionIsTheCluster(t *testing.T) {
	server := start(t, strings.Join([]string{
		controller("Deployment", "web", "deployment.kubernetes.io/revision: '9'", "replicas: 2, paused: true",
			"readyReplicas: 1, conditions: ["+condition("Available", "False", "")+","+condition("ReplicaFailure", "True", "")+"]") +
			pod("a", ownedBy("ReplicaSet", "web-1"), "nodeName: w1, containers: [{name: c}]",
				"phase: Running, containerStatuses: [{restartCount: 4, lastState: {terminated: {finishedAt: '2026-11-25T11:55:00Z'}}, state: "+
					"{waiting: {reason: CrashLoopBackOff}}}]"),
		controller("StatefulSet", "db", "", "replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}",
			"readyReplicas: 3, updatedReplicas: 1, updateRevision: db-5d9"),
		controller("DaemonSet", "log", "deprecated.daemonset.template.generation: '3'", "updateStrategy: {type: RollingUpdate}",
			"desiredNumberScheduled: 2, numberReady: 1"),
		"{apiVersion: v1, kind: ReplicationController, metadata: {name: cart-9, namespace: shop, annotations: " +
			"{openshift.io/deployment-config.latest-version: '9'}, " + ownedBy("DeploymentConfig", "cart") + "}, spec: {replicas: 1}}\n",
		"{apiVersion: v1, kind: Node, metadata: {name: w1, annotations: {machine.openshift.io/machine: a/b, " +
			"machineconfiguration.openshift.io/state: Degraded}}, status: {conditions: [{type: Ready, status: 'True'}], nodeInfo: {bootID: b1}}}\n",
		"{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{port: 443}]}}\n",
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: shop, labels: " +
			"{kubernetes.io/service-name: web}}, addressType: IPv4, endpoints: [{conditions: {ready: false}}]}\n",
		"{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: web, namespace: shop}, status: {ingress: [{routerName: " +
			"default, conditions: [" + condition("Admitted", "False", "") + "]}]}}\n",
		"{apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: default, namespace: " +
			"openshift-ingress-operator}, status: {conditions: [" + condition("CanaryChecksSucceeding", "False", "") + "]}}\n",
		"{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: csi-0}, spec: {nodeName: w1, source: " +
			"{persistentVolumeName: pv-1}}, status: {attachError: {time: '2026-11-25T11:00:00Z', message: x}}}\n",
		"{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: ebs.csi.aws.com}}\n",
		"{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: w1}, spec: {drivers: [{name: a}]}}\n",
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {storageClassName: gold}, status: " +
			"{phase: Pending}}\n",
		"{apiVersion: k8s.ovn.org/v1, kind: EgressIP, metadata: {name: shop}, spec: {egressIPs: [10.0.0.1]}}\n",
		"{apiVersion: k8s.ovn.org/v1, kind: EgressFirewall, metadata: {name: default, namespace: shop}, status: {status: bad}}\n",
		"{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: etcd.v1, namespace: shop}, status: " +
			"{phase: Failed}}\n",
		"{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: etcd, namespace: shop}, status: {conditions: [" +
			condition("InstallPlanFailed", "True", "") + "]}}\n",
		"{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: etcd}, status: {versions: [{name: operator, " +
			"version: 4.18.3}]}}\n",
		"{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: worker}, spec: {paused: true}, " +
			"status: {machineCount: 1}}\n",
		"{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, metadata: {name: a, namespace: openshift-machine-api}, spec: " +
			"{replicas: 3}, status: {readyReplicas: 2}}\n",
		"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr-x, creationTimestamp: " +
			"'2026-11-25T11:30:00Z'}, spec: {username: u, signerName: s}}\n",
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.apps}}\n",
		"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: policy}, webhooks: [{name: " +
			"a.b.c, clientConfig: {service: {namespace: shop, name: web}}}]}\n",
	}, "---\n"))
	for each := range strings.FieldsSeq("ClusterVersion.config ClusterOperator.config MachineConfigPool.machineconfiguration " +
		"MachineSet.machine IngressController.operator") {
		define(t, server, each+".openshift.io")
	}
	for each := range strings.FieldsSeq("EgressIP.k8s.ovn.org EgressFirewall.k8s.ovn.org ClusterServiceVersion.operators.coreos.com " +
		"Subscription.operators.coreos.com") {
		define(t, server, each)
	}
	api, err := cluster.Connect(server.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "archive")
	into, err := writing.Create(dir, now())
	if err != nil {
		t.Fatal(err)
	}
	summary, err := gathering.Gather(t.Context(), api, gathering.Options{Reads: sample.Reads(), Step: func(string) {}}, into)
	if err != nil || len(summary.Missing) > 0 {
		t.Fatal(err, summary.Missing)
	}
	if _, err := into.Commit(); err != nil {
		t.Fatal(err)
	}
	live, kept := take(t, server, nil), archivedAt(t, dir, now())
	if len(problems(live)) < 20 || len(live.Unread) != 1 {
		t.Errorf("the cluster has too few problems: %v; %v", problems(live), live.Unread)
	}
	delete(kept.Unread, baseline.Alert)
	delete(live.Unread, baseline.Alert)
	for _, state := range []*baseline.State{&live, &kept} {
		state.APIs, state.Occupied = nil, nil // an archive has the APIs of what was gathered
		for _, object := range state.Objects {
			for at := range object.Problems {
				object.Problems[at].Message = ""
			}
		}
	}
	if diff := gocmp.Diff(live, kept); diff != "" {
		t.Errorf("-cluster +archive:\n%s", diff)
	}
}

// define adds the CustomResourceDefinition of KIND.GROUP, without which an archive does not know that the API is served.
func define(t *testing.T, server *apiserver.Server, of string) {
	t.Helper()
	kind, group, _ := strings.Cut(of, ".")
	plural := strings.ToLower(kind) + "s"
	server.Add(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{
				map[string]any{"name": "v1", "served": true},
				map[string]any{"name": "v1beta1", "served": true},
				map[string]any{"name": "v1alpha1", "served": true},
			},
		},
	}})
}

// write writes a file; an object is written as JSON.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if filepath.Ext(name) == ".yaml" {
		converted, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		text = string(converted)
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is being deleted is not to be good: a finalizer may keep it for hours.
func TestBeingDeleted(t *testing.T) {
	for kind, content := range map[string]string{
		"apps/v1 Deployment":                                  "spec: {replicas: 3}, status: {}",
		"apps/v1 StatefulSet":                                 "spec: {replicas: 3}, status: {}",
		"apps/v1 DaemonSet":                                   "spec: {}, status: {desiredNumberScheduled: 3}",
		"v1 ReplicationController":                            "spec: {replicas: 3}",
		"v1 Service":                                          "spec: {selector: {app: web}, ports: [{port: 443}]}",
		"v1 PersistentVolumeClaim":                            "status: {phase: Lost}",
		"route.openshift.io/v1 Route":                         "status: {ingress: []}",
		"operator.openshift.io/v1 IngressController":          "status: {conditions: [" + condition("Available", "False", "") + "]}",
		"k8s.ovn.org/v1 EgressFirewall":                       "status: {status: bad}",
		"operators.coreos.com/v1alpha1 ClusterServiceVersion": "status: {phase: Failed}",
		"operators.coreos.com/v1alpha1 Subscription":          "status: {state: UpgradeFailed}",
	} {
		t.Run(kind, func(t *testing.T) {
			version, kind, _ := strings.Cut(kind, " ")
			made := func(deleted string) []string {
				return problems(take(t, start(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web, namespace: shop%s}, %s}", version, kind,
					deleted, content)), alerting(t, "[]")))
			}
			if got := made(", finalizers: [example.com/keep], deletionTimestamp: '2026-11-25T10:00:00Z'"); len(got) > 0 {
				t.Errorf("a %s that is being deleted has problems: %q", kind, got)
			}
			if len(made("")) == 0 {
				t.Errorf("a %s that is not being deleted has no problem", kind)
			}
		})
	}
}

// A Service whose pods nothing makes again is known by that.
func TestEphemeral(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: " +
		"[{port: 443}]}}\n---\n"
	selected := func(name, owner, phase string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop, labels: {app: web}, %s}, spec: "+
			"{containers: [{name: c}]}, status: {phase: %s}}\n---\n", name, owner, phase)
	}
	owner := func(api, kind string) string {
		return fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: x, uid: '1'}]", api, kind)
	}
	for name, tc := range map[string]struct {
		reason string
		pods   string
		want   string
	}{
		"Bare": {reason: "a drain deletes it for good", pods: selected("a", "", "Running"), want: baseline.Ephemeral},
		"Job":  {reason: "the Job ends", pods: selected("a", owner("batch/v1", "Job"), "Running"), want: baseline.Ephemeral},
		"Both": {
			reason: "nothing makes either again",
			pods:   selected("a", owner("batch/v1", "Job"), "Running") + selected("b", "", "Running"), want: baseline.Ephemeral,
		},
		"Mixed":  {reason: "one is made again", pods: selected("a", "", "Running") + selected("b", owner("apps/v1", "ReplicaSet"), "Running")},
		"Static": {reason: "the kubelet makes it again", pods: selected("a", owner("v1", "Node"), "Running")},
		"Catalog": {
			reason: "its owner makes it again, without being its controller",
			pods:   selected("a", owner("operators.coreos.com/v1alpha1", "CatalogSource"), "Running"),
		},
		"OtherJob": {reason: "a Job of another API may make it again", pods: selected("a", owner("batch.example.com/v1", "Job"), "Running")},
		"Ended":    {reason: "it is not served", pods: selected("a", "", "Succeeded")},
		"None":     {reason: "it selects none"},
	} {
		t.Run(name, func(t *testing.T) {
			state := take(t, start(t, service+tc.pods), alerting(t, "[]"))
			if got := state.Objects[baseline.Key{Kind: baseline.Service, Namespace: "shop", Name: "web"}].Detail; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A request of a kubelet names its node, but the first one.
func TestRequestedNode(t *testing.T) {
	for name, tc := range map[string]struct{ reason, user, signer, want string }{
		"Serving": {reason: "the node has a user", user: "system:node:w1", signer: "kubernetes.io/kubelet-serving", want: "w1"},
		"Renewal": {reason: "the node has a user", user: "system:node:w1", signer: "kubernetes.io/kube-apiserver-client-kubelet", want: "w1"},
		"First": {
			reason: "all nodes share the user", user: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
			signer: "kubernetes.io/kube-apiserver-client-kubelet", want: baseline.AnyNode,
		},
		"Other": {reason: "another signer does not sign for nodes", user: "jane", signer: "example.com/signer"},
	} {
		t.Run(name, func(t *testing.T) {
			state := take(t, start(t, fmt.Sprintf("{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: "+
				"csr-x}, spec: {username: %q, signerName: %s}, status: {}}", tc.user, tc.signer)), alerting(t, "[]"))
			if got := state.Objects[baseline.Key{Kind: baseline.CertificateSigningRequest, Name: "csr-x"}].Detail; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
