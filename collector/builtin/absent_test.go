package builtin_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// list is YAML of a list that states that it has all objects.
func list(apiVersion, kind string, items ...string) string {
	text := "apiVersion: " + apiVersion + "\nkind: " + kind + "List\nmetadata:\n  resourceVersion: \"9\"\nitems:"
	if len(items) == 0 {
		return text + " []\n"
	}
	for _, item := range items {
		text += "\n- apiVersion: " + apiVersion + "\n  kind: " + kind + "\n  " + strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ")
	}
	return text + "\n"
}

// pod is a pod on node-a, in flow style after its metadata.
func pod(name, labels, kind, owner, volumes string) string {
	return "metadata: {name: " + name + ", namespace: app, uid: " + name + ", labels: {" + labels +
		"}, creationTimestamp: \"2026-06-01T00:00:00Z\"" +
		", ownerReferences: [{apiVersion: apps/v1, kind: " + kind + ", name: " + owner + ", uid: u, controller: true}]}\n" +
		"spec: {nodeName: node-a, containers: [{name: c, image: i}], volumes: [" + volumes + "]}\n" +
		"status: {phase: Running, conditions: [{type: Ready, status: \"True\"}]}\n"
}

func replicaSet(name string) string {
	return "metadata: {name: " + name + ", namespace: app, uid: u}\nspec: {replicas: 1, template: {spec: {containers: [{name: c, " +
		"image: i}]}}}\n"
}

func definition(name string) string { return "metadata: {name: " + name + "}\n" }

func worker(name string) string {
	return "metadata: {name: " + name + ", labels: {node-role.kubernetes.io/worker: \"\"}, annotations: " +
		"{machineconfiguration.openshift.io/currentConfig: rendered-worker-1, " +
		"machineconfiguration.openshift.io/desiredConfig: rendered-worker-1, machineconfiguration.openshift.io/state: Done}}\n" +
		"status: {nodeInfo: {kubeletVersion: v1.31.8}, allocatable: {cpu: \"4\", memory: 8Gi, pods: \"100\"}, conditions: [{type: " +
		"Ready, status: \"True\"}, {type: MemoryPressure, status: \"False\"}, {type: DiskPressure, status: \"False\"}, {type: " +
		"PIDPressure, status: \"False\"}]}\n"
}

// gathered are the files of a must-gather in which nothing is missing that a check concludes something from.
func gatheredFiles() map[string]string {
	const cluster, app = "cluster-scoped-resources/", "namespaces/app/"
	selects := "spec: {minAvailable: 1, selector: {matchLabels: {app: hook}}}\nstatus: {observedGeneration: 1, expectedPods: 2, " +
		"currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1}\n"
	files := map[string]string{
		"timestamp": "2026-06-03 08:00:00.0 +0000 UTC m=+0.1\n2026-06-03 08:05:00.0 +0000 UTC m=+300.1\n",
		cluster + "config.openshift.io/clusterversions.yaml": list("config.openshift.io/v1", "ClusterVersion",
			"metadata: {name: version}\nspec: {clusterID: a}\nstatus: {desired: {version: 4.18.3, image: i}, history: [{state: Completed, "+
				"version: 4.18.3, image: i, startedTime: \"2026-05-01T00:00:00Z\", completionTime: \"2026-05-01T01:00:00Z\", verified: "+
				"true}], observedGeneration: 1, versionHash: h, availableUpdates: null}\n"),
		cluster + "config.openshift.io/infrastructures.yaml": list("config.openshift.io/v1", "Infrastructure",
			"metadata: {name: cluster}\nstatus: {controlPlaneTopology: HighlyAvailable, infrastructureTopology: HighlyAvailable, platform: AWS}\n"),
		cluster + "core/nodes.yaml": list("v1", "Node", worker("node-a"), worker("node-b")),
		cluster + "machineconfiguration.openshift.io/machineconfigpools.yaml": list("machineconfiguration.openshift.io/v1", "MachineConfigPool",
			"metadata: {name: worker}\nspec: {nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: \"\"}}, configuration: {name: "+
				"rendered-worker-1}}\nstatus: {machineCount: 2, configuration: {name: rendered-worker-1}}\n"),
		cluster + "admissionregistration.k8s.io/validatingwebhookconfigurations.yaml": list("admissionregistration.k8s.io/v1",
			"ValidatingWebhookConfiguration",
			"metadata: {name: hook}\nwebhooks:\n- {name: hook.example.com, failurePolicy: Fail, sideEffects: None, "+
				"admissionReviewVersions: [v1], clientConfig: {service: {namespace: app, name: hook}}, "+
				"rules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods, pods/eviction]}], namespaceSelector: "+
				"{}, objectSelector: {}}\n"),
		cluster + "admissionregistration.k8s.io/mutatingwebhookconfigurations.yaml": list("admissionregistration.k8s.io/v1",
			"MutatingWebhookConfiguration"),
		cluster + "apiextensions.k8s.io/customresourcedefinitions.yaml": list("apiextensions.k8s.io/v1", "CustomResourceDefinition",
			definition("infrastructures.config.openshift.io"), definition("clusterversions.config.openshift.io"),
			definition("machineconfigpools.machineconfiguration.openshift.io"),
			definition("machinesets.machine.openshift.io"), definition("upgradeconfigs.upgrade.managed.openshift.io"),
			"metadata: {name: widgets.example.com}\nspec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, "+
				"versions: [{name: v1, served: true, storage: true}, {name: v2, served: true, storage: false}], "+
				"conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: app, name: "+
				"hook}}}}}\nstatus: {storedVersions: [v1]}\n"),
		cluster + "admissionregistration.k8s.io/validatingadmissionpolicies.yaml": list("admissionregistration.k8s.io/v1",
			"ValidatingAdmissionPolicy"),
		cluster + "admissionregistration.k8s.io/validatingadmissionpolicybindings.yaml": list("admissionregistration.k8s.io/v1",
			"ValidatingAdmissionPolicyBinding"),
		cluster + "storage.k8s.io/storageclasses.yaml": list("storage.k8s.io/v1", "StorageClass"),
		app + "core/replicationcontrollers.yaml":       list("v1", "ReplicationController"),
		app + "apps/statefulsets.yaml":                 list("apps/v1", "StatefulSet"),
		app + "batch/jobs.yaml":                        list("batch/v1", "Job"),
		cluster + "core/persistentvolumes.yaml": list("v1", "PersistentVolume",
			"metadata: {name: pv}\nspec: {claimRef: {namespace: app, name: data}}\n"),
		"namespaces/openshift-machine-api/machine.openshift.io/machinesets.yaml": list("machine.openshift.io/v1beta1", "MachineSet",
			"metadata: {name: workers, namespace: openshift-machine-api, labels: {hive.openshift.io/machine-pool: worker}}\nspec: "+
				"{replicas: 1}\nstatus: {replicas: 1, availableReplicas: 1}\n"),
		"namespaces/openshift-managed-upgrade-operator/upgrade.managed.openshift.io/upgradeconfigs.yaml": list(
			"upgrade.managed.openshift.io/v1alpha1", "UpgradeConfig",
			"metadata: {name: managed, namespace: openshift-managed-upgrade-operator}\nspec: {capacityReservation: true, type: OSD, "+
				"upgradeAt: \"2026-06-04T00:00:00Z\", desired: {version: 4.19.1, channel: stable-4.19}}\n"),
		app + "app.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n",
		app + "core/services.yaml": list("v1", "Service",
			"metadata: {name: hook, namespace: app}\nspec: {selector: {app: hook}, ports: [{port: 443}]}\n"),
		app + "core/pods.yaml": list("v1", "Pod", pod("hook-1-x", "app: hook", "ReplicaSet", "hook-1", ""), pod("shop-1-x",
			"app: shop", "ReplicaSet", "shop-1", "{name: v, persistentVolumeClaim: {claimName: data}}"),
			pod("log-x", "app: log", "DaemonSet", "log", "")),
		app + "apps/replicasets.yaml": list("apps/v1", "ReplicaSet", replicaSet("hook-1"), replicaSet("shop-1")),
		app + "apps/daemonsets.yaml": list("apps/v1", "DaemonSet",
			"metadata: {name: log, namespace: app}\nspec: {template: {}}\n"),
		app + "core/persistentvolumeclaims.yaml": list("v1", "PersistentVolumeClaim",
			"metadata: {name: data, namespace: app}\nspec: {volumeName: pv}\n"),
		app + "policy/poddisruptionbudgets.yaml": list("policy/v1", "PodDisruptionBudget",
			"metadata: {name: hook, namespace: app, generation: 1}\n"+selects),
		app + "discovery.k8s.io/endpointslices.yaml": list("discovery.k8s.io/v1", "EndpointSlice",
			"metadata: {name: hook-1, namespace: app, labels: {kubernetes.io/service-name: hook}}\naddressType: IPv4\nendpoints: "+
				"[{addresses: [10.0.0.1], conditions: {ready: true}, nodeName: node-a}]\nports: [{name: \"\", port: 8443}]\n"),
	}
	for name, content := range maps.Clone(files) { // another namespace makes the list of all namespaces a part
		if rest, ok := strings.CutPrefix(name, app); ok && strings.Contains(rest, "/") {
			head, _, _ := strings.Cut(content, "items:")
			files["namespaces/zoo/"+rest] = head + "items: []\n"
		}
	}
	other := "namespaces/zoo/machine.openshift.io/machinesets.yaml"
	files[other] = list("machine.openshift.io/v1beta1", "MachineSet")
	return files
}

// messages are those of the findings about an archive with these files, but for the gaps of it.
func messages(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for name, got := range run(t, dir, nil) {
		for _, f := range got.findings {
			if f.Reason != "NotInArchive" {
				all = append(all, name+" "+string(f.Outcome)+": "+f.Message)
			}
		}
	}
	return strings.Join(all, "\n")
}

// What an archive does not have is not stated to be absent: not of a file that was not gathered, and not of one that
// is torn. The same file with an empty list states it.
func TestAbsent(t *testing.T) {
	for name, tc := range map[string]struct {
		file, kind, text string
		// partial is true for what is concluded from the objects of all namespaces, which a must-gather never has.
		partial bool
	}{
		"Service":    {"namespaces/app/core/services.yaml", "v1 Service", "needs Service app/hook, which does not exist", false},
		"Conversion": {"namespaces/app/core/services.yaml", "v1 Service", "its Service app/hook does not exist", false},
		"Endpoints": {
			"namespaces/app/discovery.k8s.io/endpointslices.yaml", "discovery.k8s.io/v1 EndpointSlice",
			"needs Service app/hook, which has no ready endpoint", false,
		},
		"ConversionEnds": {
			"namespaces/app/discovery.k8s.io/endpointslices.yaml", "discovery.k8s.io/v1 EndpointSlice",
			"its Service app/hook has no ready endpoint", false,
		},
		"Eviction": {
			"namespaces/app/discovery.k8s.io/endpointslices.yaml", "discovery.k8s.io/v1 EndpointSlice",
			`ValidatingWebhookConfiguration "hook" has no ready endpoint`, false,
		},
		"Budgets": {
			"namespaces/app/policy/poddisruptionbudgets.yaml", "policy/v1 PodDisruptionBudget", "has all its replicas on node",
			false,
		},
		"Pods":        {"namespaces/app/core/pods.yaml", "v1 Pod", "select no pods", false},
		"ReplicaSets": {"namespaces/app/apps/replicasets.yaml", "apps/v1 ReplicaSet", `is of ReplicaSet "shop-1", which does not exist`, true},
		"DaemonSets":  {"namespaces/app/apps/daemonsets.yaml", "apps/v1 DaemonSet", "belongs to a DaemonSet that does not exist", true},
		"Claims": {
			"namespaces/app/core/persistentvolumeclaims.yaml", "v1 PersistentVolumeClaim",
			`PersistentVolumeClaim "data" does not exist`, true,
		},
		"Volumes": {
			"cluster-scoped-resources/core/persistentvolumes.yaml", "v1 PersistentVolume", `PersistentVolume "pv" does not exist`,
			true,
		},
		"Nodes": {"cluster-scoped-resources/core/nodes.yaml", "v1 Node", "the API server has no nodes", false},
		"MachineSets": {
			"namespaces/openshift-machine-api/machine.openshift.io/machinesets.yaml", "machine.openshift.io/v1beta1 MachineSet",
			"has none to copy", false,
		},
		"Pools": {
			"cluster-scoped-resources/machineconfiguration.openshift.io/machineconfigpools.yaml",
			"machineconfiguration.openshift.io/v1 MachineConfigPool", "nodes that no MachineConfigPool updates", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := gatheredFiles()
			if got := messages(t, files); strings.Contains(got, tc.text) {
				t.Errorf("%q of the intact archive:\n%s", tc.text, got)
			}
			apiVersion, kind, _ := strings.Cut(tc.kind, " ")
			whole := files[tc.file]
			files[tc.file] = list(apiVersion, kind)
			if got := messages(t, files); !tc.partial && !strings.Contains(got, tc.text) {
				t.Errorf("an empty list does not state %q:\n%s", tc.text, got)
			}
			files[tc.file] = whole[:len(whole)*2/3]
			if got := messages(t, files); strings.Contains(got, tc.text) {
				t.Errorf("a torn file states %q:\n%s", tc.text, got)
			}
			delete(files, tc.file)
			if got := messages(t, files); strings.Contains(got, tc.text) {
				t.Errorf("a file that was not gathered states %q:\n%s", tc.text, got)
			}
		})
	}
}

// One of several files of a resource states nothing about the others: not that no pool selects a node, nor that a
// MachineConfig does not exist which a node or a pool names.
func TestAbsentOfSeveral(t *testing.T) {
	const directory = "cluster-scoped-resources/machineconfiguration.openshift.io/"
	single := func(kind, content string) string {
		return "apiVersion: machineconfiguration.openshift.io/v1\nkind: " + kind + "\n" + content
	}
	files := gatheredFiles()
	delete(files, directory+"machineconfigpools.yaml")
	delete(files, "cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions.yaml")
	files[".git/HEAD"] = "ref: refs/heads/main\n" // resourcewatch writes every object
	files["cluster-scoped-resources/core/nodes.yaml"] = list("v1", "Node", worker("node-a"),
		strings.ReplaceAll(worker("node-b"), "worker", "infra"))
	files[directory+"machineconfigpools/infra.yaml"] = single("MachineConfigPool", "metadata: {name: infra}\n"+
		"spec:\n  configuration: {name: rendered-infra-1}\n  nodeSelector: {matchLabels: {node-role.kubernetes.io/infra: "+
		"\"\"}}\nstatus: {machineCount: 1, configuration: {name: rendered-infra-1}}\n")
	files[directory+"machineconfigs/rendered-infra-1.yaml"] = single("MachineConfig", "metadata: {name: rendered-infra-1}\nspec: {}\n")
	for name, removed := range map[string]string{
		"Pool": "", "Config": directory + "machineconfigs/rendered-infra-1.yaml", "Both": directory + "machineconfigpools/infra.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			rest := maps.Clone(files)
			delete(rest, removed)
			got := messages(t, rest)
			for _, absence := range []string{"no MachineConfigPool selects the node", "do not exist", "has no MachineConfig"} {
				if strings.Contains(got, absence) {
					t.Errorf("an archive with some of the files states %q:\n%s", absence, got)
				}
			}
		})
	}
}

// TestBehindAccepted holds that a budget which keeps one node, and may be accepted by its name, does not hide another one that
// keeps the next node: the drains come to it only then.
func TestBehindAccepted(t *testing.T) {
	const budgets, pods = "namespaces/app/policy/poddisruptionbudgets.yaml", "namespaces/app/core/pods.yaml"
	budget := func(app string, expected, healthy, desired int) string {
		return fmt.Sprintf("metadata: {name: %[1]s, namespace: app, generation: 1}\nspec: {minAvailable: %[4]d, selector: {matchLabels: "+
			"{app: %[1]s}}}\n"+
			"status: {observedGeneration: 1, expectedPods: %[2]d, currentHealthy: %[3]d, desiredHealthy: %[4]d, disruptionsAllowed: 0}\n", app,
			expected, healthy, desired)
	}
	files := gatheredFiles()
	for name := range files {
		if strings.HasPrefix(name, "cluster-scoped-resources/admissionregistration") && strings.Contains(name, "webhook") {
			kind := map[bool]string{
				true:  "ValidatingWebhookConfiguration",
				false: "MutatingWebhookConfiguration",
			}[strings.Contains(name, "validating")]
			files[name] = list("admissionregistration.k8s.io/v1", kind)
		}
	}
	unready := strings.Replace(pod("shop-1-y", "app: shop", "ReplicaSet", "shop-1", ""), `type: Ready, status: "True"`,
		`type: Ready, status: "False"`, 1)
	onB := func(pod string) string { return strings.Replace(pod, "nodeName: node-a", "nodeName: node-b", 1) }
	files[pods] = list("v1", "Pod", pod("hook-1-x", "app: hook", "ReplicaSet", "hook-1", ""),
		onB(pod("shop-1-x", "app: shop", "ReplicaSet", "shop-1", "")), onB(unready))
	files[budgets] = list("policy/v1", "PodDisruptionBudget", budget("hook", 1, 1, 1), budget("shop", 2, 1, 1))
	got := messages(t, files)
	for _, want := range []string{
		`Drain Fail: PodDisruptionBudget "hook" allows no eviction`,
		`Drain Fail: too few pods of PodDisruptionBudget "shop" are healthy, and no drain of this update changes that: 1 pod in namespace "app": shop-1-x on node-b; the drains reach it once other obstacles are removed or accepted`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no finding %q in:\n%s", want, got)
		}
	}
}
