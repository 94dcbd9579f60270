package archive_test

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestReferences removes files of an archive whose program writes every object: what refers to one that is not there proves
// that the objects of its resource are not all.
func TestReferences(t *testing.T) {
	const (
		mco, machine   = "machineconfiguration.openshift.io", "machine.openshift.io"
		pools, configs = "cluster-scoped-resources/" + mco + "/machineconfigpools/", "cluster-scoped-resources/" + mco + "/machineconfigs/"
		machines       = "namespaces/openshift-machine-api/" + machine + "/machines/"
		sets           = "namespaces/openshift-machine-api/" + machine + "/machinesets/"
	)
	owned := func(apiVersion, kind, name string) string {
		return "  ownerReferences:\n  - apiVersion: " + apiVersion + "\n    kind: " + kind + "\n    name: " + name + "\n    uid: u\n"
	}
	annotated := func(annotation, config string) string {
		return node("n1", "  annotations:\n    "+mco+"/"+annotation+": "+config+"\n")
	}
	pool := func(spec string) string { return object(mco+"/v1", "MachineConfigPool", "", "worker", spec) }
	const named = "spec:\n  configuration:\n    name: rendered-worker-1\n    source:\n    - apiVersion: " + mco +
		"/v1\n      kind: MachineConfig\n      name: 00-worker\n"
	intact := map[string]string{
		".git/HEAD": "ref: refs/heads/main\n",
		"cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml": object("config.openshift.io/v1", "ClusterVersion", "",
			"version", "spec:\n  clusterID: a\n"),
		"cluster-scoped-resources/core/nodes/n1.yaml": annotated("currentConfig", "rendered-worker-1"),
		pools + "worker.yaml":                         pool(named),
		configs + "00-worker.yaml":                    object(mco+"/v1", "MachineConfig", "", "00-worker", ""),
		configs + "rendered-worker-1.yaml": object(mco+"/v1", "MachineConfig", "", "rendered-worker-1",
			owned(mco+"/v1", "MachineConfigPool", "worker")),
		sets + "a.yaml": object(machine+"/v1beta1", "MachineSet", "openshift-machine-api", "a", ""),
		sets + "b.yaml": object(machine+"/v1beta1", "MachineSet", "openshift-machine-api", "b", ""),
		machines + "a-1.yaml": object(machine+"/v1beta1", "Machine", "openshift-machine-api", "a-1",
			owned(machine+"/v1beta1", "MachineSet", "a")),
	}
	machineConfigs := schema.GroupVersionResource{Group: mco, Version: "v1", Resource: "machineconfigs"}
	machineConfigPools := schema.GroupVersionResource{Group: mco, Version: "v1", Resource: "machineconfigpools"}
	for name, tc := range map[string]struct {
		reason  string
		removed string
		more    map[string]string
		of      schema.GroupVersionResource
		want    string
	}{
		"Intact":      {reason: "all that is named is there", of: machineConfigs, want: "complete: 00-worker rendered-worker-1"},
		"IntactPools": {reason: "also the owner", of: machineConfigPools, want: "complete: worker"},
		"OfNode": {
			reason: "a node names its configuration", removed: configs + "rendered-worker-1.yaml", of: machineConfigs,
			want: "partial: 00-worker",
		},
		"Desired": {reason: "and the next one", more: map[string]string{"cluster-scoped-resources/core/nodes/n1.yaml": annotated(
			"desiredConfig", "rendered-worker-2")}, of: machineConfigs, want: "partial: 00-worker rendered-worker-1"},
		"Source": {
			reason: "a pool names what its configuration is rendered from", removed: configs + "00-worker.yaml", of: machineConfigs,
			want: "partial: rendered-worker-1",
		},
		"OfPool": {
			reason: "a pool names its configuration",
			more: map[string]string{pools + "infra.yaml": object(mco+"/v1", "MachineConfigPool", "", "infra",
				"spec:\n  configuration:\n    name: rendered-infra-1\n")}, of: machineConfigs, want: "partial: 00-worker rendered-worker-1",
		},
		"Owner": {
			reason: "what a pool owns is deleted with it",
			more: map[string]string{configs + "rendered-infra-1.yaml": object(mco+"/v1", "MachineConfig", "", "rendered-infra-1",
				owned(mco+"/v1", "MachineConfigPool", "infra"))}, of: machineConfigPools, want: "partial: worker",
		},
		"PoolOfNode": {
			reason: "a rendered configuration has the name of its pool",
			more: map[string]string{"cluster-scoped-resources/core/nodes/n2.yaml": node("n2",
				"  annotations:\n    "+mco+"/currentConfig: rendered-infra-1\n")}, of: machineConfigPools, want: "partial: worker",
		},
		"OwnerBeside": {reason: "an owner is of the namespace", removed: sets + "a.yaml", of: machineSets, want: "partial: b"},
		"Another":     {reason: "nothing names the other one", removed: sets + "b.yaml", of: machineSets, want: "complete: a"},
		"Listed": {
			reason: "the API server stated that there are no others", removed: configs + "00-worker.yaml",
			more: map[string]string{"cluster-scoped-resources/" + mco + "/machineconfigs.yaml": emptyList(mco+"/v1", "MachineConfigList")},
			of:   machineConfigs, want: "complete: rendered-worker-1",
		},
		"Status": {
			reason: "what a status names may be gone",
			more: map[string]string{pools + "worker.yaml": pool(named + "status:\n  configuration:\n    source:\n    - apiVersion: " + mco +
				"/v1\n      kind: MachineConfig\n      name: 98-gone\n")}, of: machineConfigs, want: "complete: 00-worker rendered-worker-1",
		},
		"Requirements": {
			reason: "a kind and a name without an apiVersion are not those of an object",
			more: map[string]string{pools + "worker.yaml": pool(named + "    requirements:\n    - group: " + mco +
				"\n      kind: MachineConfig\n      name: 98-gone\n")}, of: machineConfigs, want: "complete: 00-worker rendered-worker-1",
		},
		"OfNamespace": {
			reason: "an object of a namespace may go before a cluster-scoped one that names it",
			more: map[string]string{pools + "worker.yaml": pool(named + "    used:\n    - apiVersion: " + machine +
				"/v1beta1\n      kind: MachineSet\n      namespace: openshift-machine-api\n      name: gone\n")}, of: machineSets,
			want: "complete: a b",
		},
		"OtherGroup": {
			reason: "a kind of another group",
			more: map[string]string{pools + "worker.yaml": pool(named +
				"    used:\n    - apiVersion: example.com/v1\n      kind: MachineConfig\n      name: 98-gone\n")}, of: machineConfigs,
			want: "complete: 00-worker rendered-worker-1",
		},
		"NotRendered": {
			reason: "the configuration of a node of HyperShift is a hash",
			more: map[string]string{"cluster-scoped-resources/core/nodes/n2.yaml": node("n2",
				"  annotations:\n    "+mco+"/currentConfig: 3f4a9c\n")}, of: machineConfigs, want: "complete: 00-worker rendered-worker-1",
		},
		"NoList": {
			reason: "a spec that is none refers to nothing", more: map[string]string{pools + "worker.yaml": pool(named), pools +
				"odd.yaml": object(mco+"/v1", "MachineConfigPool", "", "odd", "spec: rendered-x-1\n")}, of: machineConfigs,
			want: "complete: 00-worker rendered-worker-1",
		},
		"ClusterScoped": {
			reason: "the owner of an object of a namespace may be cluster-scoped",
			more: map[string]string{sets + "b.yaml": object(machine+"/v1beta1", "MachineSet", "openshift-machine-api", "b",
				owned(mco+"/v1", "MachineConfigPool", "worker"))}, of: machineConfigPools, want: "complete: worker",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(intact)
			delete(files, tc.removed)
			maps.Copy(files, tc.more)
			_, reached := open(t, write(t, tree(files)))
			if got := listed(t, reached, tc.of, ""); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
