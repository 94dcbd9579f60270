package machineconfig_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/machine"
	"github.com/openshift/update-preflight/collector/machine/machineconfig"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	worker, otherUID = "rendered-worker-0a", "22222222-2222-2222-2222-222222222222"
	workerUID        = "11111111-1111-1111-1111-111111111111"
)

// config is YAML of a MachineConfig; fields are those of its spec, in flow style.
func config(name, fields string) string {
	return fmt.Sprintf("metadata: {name: %s, uid: %s-uid}\nspec: {%s}\n", name, name, fields)
}

// source is a MachineConfig that the pools worker and infra select.
func source(name, fields string) string {
	return strings.Replace(config(name, fields), "metadata: {", "metadata: {labels: {machineconfiguration.openshift.io/role: worker}, ", 1)
}

// owned is a rendered MachineConfig that belongs to a pool with a UID.
func owned(name, kind, owner, uid string) string {
	owners := fmt.Sprintf("ownerReferences: [{apiVersion: machineconfiguration.openshift.io/v1, kind: %s, name: %s, uid: %q, "+
		"controller: true}], ", kind, owner, uid)
	return strings.Replace(config(name, ""), "metadata: {", "metadata: {"+owners, 1)
}

// annotated is a rendered MachineConfig whose image is not that of the release.
func annotated(name, fields string) string {
	return strings.Replace(config(name, fields), "metadata: {",
		"metadata: {annotations: {machineconfiguration.openshift.io/os-image-url-overridden: \"true\"}, ", 1)
}

// pool is YAML of a MachineConfigPool with these rendered MachineConfigs.
func pool(name, spec, status string) string { return streamed(name, spec, status, "") }

// streamed is a pool with a stream of images.
func streamed(name, spec, status, stream string) string {
	if stream != "" {
		stream = ", osImageStream: {name: " + stream + "}"
	}
	return fmt.Sprintf("metadata: {name: %s, uid: %s}\nspec: {machineConfigSelector: {matchLabels: "+
		"{machineconfiguration.openshift.io/role: worker}}, configuration: {name: %q}%s}\nstatus: {machineCount: 1, configuration: {name: %q}}\n",
		name, workerUID, spec, stream, status)
}

// node is YAML of a Node with these configurations.
func node(name, current, desired string) string {
	return fmt.Sprintf("metadata: {name: %s, uid: %s-uid, labels: {kubernetes.io/os: linux}, annotations: "+
		"{machineconfiguration.openshift.io/currentConfig: %q, machineconfiguration.openshift.io/desiredConfig: %q}}\n",
		name, name, current, desired)
}

// cluster is an OpenShift cluster with these objects besides.
func cluster(objects map[string][]string) state {
	all := map[string][]string{
		"config.openshift.io/v1/infrastructures": {"metadata: {name: cluster}\nstatus: {controlPlaneTopology: HighlyAvailable, " +
			"infrastructureTopology: HighlyAvailable}\n"},
		"config.openshift.io/v1/clusterversions": {"metadata: {name: version}\nspec: {clusterID: " +
			"4f2a1c9e-7a1b-4c58-9d1e-5f1f3f0f1a2b}\nstatus: {desired: {version: 5.1.3}}\n"},
		nodes:   {node("worker-0", worker, worker)},
		pools:   {pool("worker", worker, worker)},
		configs: {config(worker, "")},
	}
	maps.Copy(all, objects)
	return state{objects: all}
}

// with is a cluster whose rendered MachineConfig of the pool worker has these fields.
func with(fields string) state {
	return cluster(map[string][]string{configs: {config(worker, fields)}})
}

// table is what a check reports of a state.
type row struct {
	reason   string
	of       state
	from, to string
	want     map[string]checktest.Result
	// text is in a message or a remedy, and so are its parts, which a bar separates.
	text string
}

func (r row) run(t *testing.T, tested check.Check) {
	t.Helper()
	from, to := r.from, r.to
	if from == "" {
		from, to = "5.1.3", "5.2.0"
	}
	findings := checktest.Run(t, tested, serve(t, r.of).Snapshot(t), checktest.Update(t, from, to))
	if diff := cmp.Diff(r.want, checktest.Results(findings)); diff != "" {
		t.Errorf("%s: -want +got:\n%s\n%s", r.reason, diff, checktest.Messages(findings))
	}
	in := checktest.Messages(findings) + checktest.Remedies(findings)
	for part := range strings.SplitSeq(r.text, "|") {
		if !strings.Contains(in, part) {
			t.Errorf("%s: %q, want %q in it", r.reason, in, part)
		}
	}
}

// only is one finding.
func only(name string, outcome preflight.Outcome, reason string) map[string]checktest.Result {
	return map[string]checktest.Result{name: {Outcome: outcome, Reason: reason}}
}

func hostedCluster() state {
	of := cluster(nil)
	of.objects["config.openshift.io/v1/infrastructures"] = []string{"metadata: {name: cluster}\nstatus: {controlPlaneTopology: " +
		"External, infrastructureTopology: HighlyAvailable}\n"}
	return of
}

func kubernetes() state {
	of := cluster(nil)
	of.objects["config.openshift.io/v1/infrastructures"] = nil
	return of
}

func without(resource string) state {
	of := cluster(nil)
	of.unserved = resource
	return of
}

func refusing(resource string) state {
	of := cluster(nil)
	of.refused = resource
	return of
}

func TestRenderedConfigs(t *testing.T) {
	const name = "RenderedConfigs"
	var many []string
	for i := range 250 {
		many = append(many, config(fmt.Sprintf("rendered-worker-%03d", i), ""))
	}
	for label, tc := range map[string]row{
		"Present": {
			reason: "all exist", of: cluster(nil), want: only(name, preflight.Pass, "AsExpected"),
			text: "1 node and 1 MachineConfigPool",
		},
		"Desired": {
			reason: "the daemon of the node degrades", of: cluster(map[string][]string{nodes: {node("worker-0", worker, "rendered-worker-gone")}}),
			want: only("NodeConfigMissing", preflight.Fail, "NodeConfigMissing"),
			text: "desiredConfig of node worker-0 is rendered-worker-gone|oc get node worker-0 -o yaml",
		},
		"Current": {
			reason: "the daemon reads the current one, too",
			of:     cluster(map[string][]string{nodes: {node("worker-0", worker, worker), node("worker-1", "rendered-worker-gone", worker)}}),
			want:   only("NodeConfigMissing", preflight.Fail, "NodeConfigMissing"),
			text:   "1 of 2 nodes|currentConfig of node worker-1 is rendered-worker-gone",
		},
		"Spec": {
			reason: "the controller renders it again", of: cluster(map[string][]string{pools: {pool("worker", "rendered-worker-gone", worker)}}),
			want: only("PoolConfigMissing", preflight.Warn, "PoolConfigMissing"),
			text: `spec.configuration of MachineConfigPool "worker" is rendered-worker-gone`,
		},
		"Status": {
			reason: "new machines have no configuration", of: cluster(map[string][]string{pools: {pool("worker", worker, "rendered-worker-gone")}}),
			want: only("PoolConfigMissing", preflight.Warn, "PoolConfigMissing"),
			text: `status.configuration of MachineConfigPool "worker" is rendered-worker-gone`,
		},
		"None": {
			reason: "nothing is known of a cluster without any", of: cluster(map[string][]string{configs: nil}),
			want: only(name, preflight.Warn, "NoMachineConfigs"),
		},
		"Unnamed": {
			reason: "nothing names a rendered one", of: cluster(map[string][]string{
				nodes: {node("worker-0", "", "")},
				pools: {pool("worker", "", "")}, configs: nil,
			}),
			want: only(name, preflight.Pass, "AsExpected"),
		},
		"Pages": {
			reason: "the last of many pages has it",
			of: cluster(map[string][]string{
				configs: many, pools: {pool("worker", "rendered-worker-249", "rendered-worker-000")},
				nodes: {node("worker-0", "rendered-worker-249", "rendered-worker-100")},
			}),
			want: only(name, preflight.Pass, "AsExpected"),
		},
		"Owner": {
			reason: "it is that of the pool", of: cluster(map[string][]string{configs: {owned(worker, "MachineConfigPool", "worker", workerUID)}}),
			want: only(name, preflight.Pass, "AsExpected"),
		},
		"OtherUID": {
			reason: "the pool was made again, so its owner does not exist",
			of:     cluster(map[string][]string{configs: {owned(worker, "MachineConfigPool", "worker", otherUID)}}),
			want:   only("ConfigOwner", preflight.Warn, "ConfigOwner"),
			text: "MachineConfig rendered-worker-0a of MachineConfigPool \"worker\" belongs to MachineConfigPool \"worker\" with the UID " +
				otherUID,
		},
		"OtherOwner": {
			reason: "it is deleted with another object",
			of:     cluster(map[string][]string{configs: {owned(worker, "KubeletConfig", "small", otherUID)}}),
			want:   only("ConfigOwner", preflight.Warn, "ConfigOwner"), text: `belongs to KubeletConfig "small"`,
		},
		"Windows": {
			reason: "another operator configures the node",
			of: cluster(map[string][]string{nodes: {strings.Replace(node("win-0", "rendered-worker-gone", worker), "os: linux", "os: windows",
				1)}}),
			want: only(name, preflight.Pass, "AsExpected"),
		},
		"Refused": {reason: "what was not read is no pass", of: refusing("machineconfigs"), want: only(name, preflight.Unknown, "Forbidden")},
		"NoPools": {
			reason: "what was not read is no pass", of: refusing("machineconfigpools"),
			want: only(name, preflight.Unknown, "Forbidden"),
		},
		"Unserved": {
			reason: "every OpenShift cluster has them", of: without("machineconfigs"),
			want: only(name, preflight.Unknown, "APIMissing"),
		},
		"Hosted":     {reason: "NodePools configure the nodes", of: hostedCluster(), want: only(name, preflight.Skipped, "HyperShift")},
		"Kubernetes": {reason: "it has none", of: kubernetes(), want: only(name, preflight.Skipped, "PlainKubernetes")},
	} {
		t.Run(label, func(t *testing.T) { tc.run(t, machineconfig.RenderedConfigs()) })
	}
}

// dropIn is the field "config" of a MachineConfig with a file of CRI-O.
func dropIn(path, content string) string {
	return fmt.Sprintf(
		`config: {ignition: {version: 3.4.0}, storage: {files: [{path: %s, contents: {source: %q}}, {path: /etc/secret, contents: {source: "data:,c2VjcmV0"}}]}}`, path, content)
}

// runtimeFile is that file with a default runtime.
func runtimeFile(name string) string {
	return dropIn("/etc/crio/crio.conf.d/01-runtime",
		"data:text/plain;charset=utf-8;base64,"+base64.StdEncoding.EncodeToString([]byte("[crio.runtime]\ndefault_runtime = \""+name+"\"\n")))
}

func stream(name string) []string {
	return []string{"metadata: {name: cluster}\nspec: {defaultStream: " + name + "}\nstatus: {defaultStream: " + name + "}\n"}
}

func TestMachineConfigs(t *testing.T) {
	const name = "MachineConfigs"
	pass := only(name, preflight.Pass, "AsExpected")
	runc := only("MachineConfigRuntime-worker", preflight.Fail, "RuncNotAvailable")
	for label, tc := range map[string]row{
		"Plain": {reason: "nothing is set", of: cluster(nil), want: pass},
		"Known": {reason: "the target has them", of: with(
			"extensions: [usbguard, kerberos, ipsec, sysstat, two-node-ha, kernel-devel, sandboxed-containers], kernelType: realtime"), want: pass},
		"Wasm": {
			reason: "4.22 has removed it", of: with("extensions: [wasm]"), from: "4.21.3", to: "4.22.1",
			want: only("MachineConfigExtensions-worker", preflight.Fail, "ExtensionNotSupported"),
			text: "wasm of MachineConfig rendered-worker-0a|4.22",
		},
		"WasmBefore": {reason: "4.21 has it", of: with("extensions: [wasm]"), from: "4.20.3", to: "4.21.1", want: pass},
		"Unknown": {
			reason: "no release has it", of: cluster(
				map[string][]string{configs: {config(worker, "extensions: [gnome]"), source("99-desktop", "extensions: [gnome]")}}),
			want: only("MachineConfigExtensions-worker", preflight.Fail, "ExtensionNotSupported"),
			text: "gnome of MachineConfig 99-desktop|oc get machineconfig 99-desktop",
		},
		"UnknownEarly": {
			reason: "only the daemon on RHEL CoreOS refuses it", of: with("extensions: [gnome]"), from: "4.14.3", to: "4.15.1",
			want: only("MachineConfigExtensions-worker", preflight.Warn, "ExtensionNotSupported"),
		},
		"Kernel": {
			reason: "no release has it", of: with("kernelType: tiny"),
			want: only("MachineConfigKernelType-worker", preflight.Fail, "KernelTypeNotSupported"), text: "tiny of MachineConfig rendered-worker-0a",
		},
		"Pages64k": {reason: "releases since 4.15 have it", of: with("kernelType: 64k-pages"), from: "4.14.3", to: "4.15.1", want: pass},
		"Image": {
			reason: "the update does not change it",
			of: cluster(map[string][]string{configs: {
				annotated(worker, "osImageURL: quay.io/custom/os@sha256:1"),
				source("99-image", "osImageURL: quay.io/custom/os@sha256:1"),
			}}),
			want: only("MachineConfigOSImage-worker", preflight.Warn, "OSImageOverridden"),
			text: "MachineConfig 99-image sets quay.io/custom/os@sha256:1",
		},
		"ImageRendered": {
			reason: "the operator marks it", of: cluster(
				map[string][]string{configs: {annotated(worker, "osImageURL: quay.io/custom/os@sha256:1")}}),
			want: only("MachineConfigOSImage-worker", preflight.Warn, "OSImageOverridden"),
		},
		"ImageOfOperator": {
			reason: "releases up to 4.9 set it themselves",
			of: cluster(map[string][]string{configs: {
				config(worker, "osImageURL: quay.io/os@sha256:1"),
				strings.Replace(source("00-worker", "osImageURL: quay.io/os@sha256:1"),
					"metadata: {", "metadata: {annotations: {machineconfiguration.openshift.io/generated-by-controller-version: a}, ", 1),
			}}),
			want: pass,
		},
		"ImageAndStream": {
			reason: "the operator renders one of both",
			of: cluster(map[string][]string{
				pools:   {streamed("worker", worker, worker, "rhel-9")},
				configs: {annotated(worker, "osImageURL: quay.io/custom/os@sha256:1")},
			}),
			want: map[string]checktest.Result{
				"MachineConfigOSImage-worker":  {Outcome: preflight.Warn, Reason: "OSImageOverridden"},
				"MachineConfigOSStream-worker": {Outcome: preflight.Fail, Reason: "OSImageAndStream"},
			},
		},
		"Runc": {
			reason: "RHEL 10 has none", of: withRuntime("runc", "rhel-10", nil), want: runc,
			text: `MachineConfig rendered-worker-0a makes runc the default|the stream "rhel-10"`,
		},
		"Default": {reason: "the stream is that of the cluster", of: withRuntime("runc", "", stream("rhel-10")), want: runc},
		"RHEL9":   {reason: "RHEL 9 has it", of: withRuntime("runc", "", stream("rhel-9")), want: pass},
		"Own":     {reason: "the stream of the pool precedes", of: withRuntime("runc", "rhel-9", stream("rhel-10")), want: pass},
		"Crun":    {reason: "RHEL 10 has it", of: withRuntime("crun", "rhel-10", nil), want: pass},
		"Early":   {reason: "4.22 renders it", of: withRuntime("runc", "rhel-10", nil), from: "4.21.3", to: "4.22.1", want: pass},
		"Undecodable": {
			reason: "the runtime is not known",
			of: cluster(map[string][]string{
				pools:   {streamed("worker", worker, worker, "rhel-10")},
				configs: {config(worker, dropIn("/etc/crio/crio.conf.d/01-runtime", "https://example.com/a"))},
			}),
			want: only("MachineConfigRuntime-worker", preflight.Unknown, "RuncNotAvailable"),
		},
		"RuncInImage": {
			reason: "only the image states whether it is RHEL 10",
			of:     cluster(map[string][]string{configs: {annotated(worker, "osImageURL: quay.io/custom/os@sha256:1, "+runtimeFile("runc"))}}),
			want: map[string]checktest.Result{
				"MachineConfigOSImage-worker": {Outcome: preflight.Warn, Reason: "OSImageOverridden"},
				"MachineConfigRuntime-worker": {Outcome: preflight.Warn, Reason: "RuncNotAvailable"},
			},
		},
		"Refused": {reason: "what was not read is no pass", of: refusing("machineconfigs"), want: only(name, preflight.Unknown, "Forbidden")},
		"Unserved": {
			reason: "every OpenShift cluster has them", of: without("machineconfigs"),
			want: only(name, preflight.Unknown, "APIMissing"),
		},
		"Hosted":     {reason: "NodePools configure the nodes", of: hostedCluster(), want: only(name, preflight.Skipped, "HyperShift")},
		"Kubernetes": {reason: "it has none", of: kubernetes(), want: only(name, preflight.Skipped, "PlainKubernetes")},
	} {
		t.Run(label, func(t *testing.T) { tc.run(t, machineconfig.MachineConfigs()) })
	}
}

// TestNetworks is about what RHEL 10 does not have: files in the format ifcfg, and network teams.
func TestNetworks(t *testing.T) {
	const name, eth0, team = "MachineConfigs", "/etc/sysconfig/network-scripts/ifcfg-eth0",
		"kernelArguments: ['rd.neednet=1 team=team0:em1,em2']"
	pass := only(name, preflight.Pass, "AsExpected")
	scripts, teams := only("MachineConfigNetworkScripts-worker", preflight.Warn, "NetworkScriptsNotRead"),
		only("MachineConfigNetworkTeam-worker", preflight.Warn, "NetworkTeamNotAvailable")
	ifcfg := dropIn(eth0, "data:,DEVICE=eth0")
	for label, tc := range map[string]row{
		"Script": {
			reason: "RHEL 10 does not read it", of: getting("rhel-10", nil, config(worker, ifcfg), source("99-eth0", ifcfg)), want: scripts,
			text: eth0 + ` of MachineConfig 99-eth0|MachineConfigPool "worker" has the stream "rhel-10"|oc get machineconfig 99-eth0`,
		},
		"ScriptDefault": {reason: "the stream is that of the cluster", of: getting("", stream("rhel-10"), config(worker, ifcfg)), want: scripts},
		"ScriptPreview": {
			reason: "4.21 has RHEL 10 as a preview", of: getting("rhel-10", nil, config(worker, ifcfg)), from: "4.20.3",
			to: "4.21.2", want: scripts,
		},
		"ScriptCentOS":   {reason: "neither does CentOS Stream 10", of: getting("centos-10", nil, config(worker, ifcfg)), want: scripts},
		"ScriptRHEL9":    {reason: "RHEL 9 reads it", of: getting("rhel-9", stream("rhel-10"), config(worker, ifcfg)), want: pass},
		"ScriptNoStream": {reason: "a cluster without streams has RHEL 9", of: getting("", nil, config(worker, ifcfg)), want: pass},
		"ScriptEarly": {
			reason: "4.20 has no RHEL 10", of: getting("rhel-10", nil, config(worker, ifcfg)), from: "4.19.3", to: "4.20.1",
			want: pass,
		},
		"ScriptAlready": {reason: "the update does not change it", of: having("rhel-10", config(worker, ifcfg)), want: pass},
		"ScriptInImage": {
			reason: "the update does not change the image",
			of:     getting("rhel-10", nil, annotated(worker, "osImageURL: quay.io/custom/os@sha256:1, "+ifcfg)),
			want: map[string]checktest.Result{
				"MachineConfigOSImage-worker":  {Outcome: preflight.Warn, Reason: "OSImageOverridden"},
				"MachineConfigOSStream-worker": {Outcome: preflight.Fail, Reason: "OSImageAndStream"},
			},
		},
		"ScriptUndecodable": {
			reason: "its path is not known", of: getting("rhel-10", nil, config(worker, "config: {storage: {files: [{path: ["+eth0+"]}]}}")),
			want: only("MachineConfigNetworkScripts-worker", preflight.Unknown, "NetworkScriptsNotRead"), text: "MachineConfig " + worker,
		},
		"Keyfile": {reason: "RHEL 10 reads it", of: getting("rhel-10", nil,
			config(worker, dropIn("/etc/NetworkManager/system-connections/eth0.nmconnection", "data:,a"))), want: pass},
		"Team": {
			reason: "RHEL 10 has no teams", of: getting("rhel-10", nil, config(worker, team), source("99-team", team)), want: teams,
			text: `the kernel argument team of MachineConfig 99-team|the stream "rhel-10"`,
		},
		"TeamRHEL9": {reason: "RHEL 9 has teams", of: getting("rhel-9", nil, config(worker, team)), want: pass},
		"Bond": {
			reason: "RHEL 10 has bonds", of: getting("rhel-10", nil, config(worker, "kernelArguments: ['bond=bond0:em1,em2']")),
			want: pass,
		},
		"NoStreams": {
			reason: "what was not read is no pass", of: refusedStreams(getting("", nil, config(worker, team))),
			want: only(name, preflight.Unknown, "Forbidden"),
		},
	} {
		t.Run(label, func(t *testing.T) { tc.run(t, machineconfig.MachineConfigs()) })
	}
}

// getting is a cluster with streams, whose pool worker gets one, and with these MachineConfigs.
func getting(ofPool string, ofCluster []string, all ...string) state {
	return cluster(map[string][]string{pools: {streamed("worker", worker, worker, ofPool)}, configs: all, streams: ofCluster})
}

// having is a cluster whose pool worker has a stream already.
func having(ofPool string, all ...string) state {
	of := getting(ofPool, nil, all...)
	of.objects[pools][0] = strings.Replace(of.objects[pools][0], "status: {", "status: {osImageStream: {name: "+ofPool+"}, ", 1)
	return of
}

func refusedStreams(of state) state {
	of.refused = "osimagestreams"
	return of
}

// withRuntime is a cluster with a default runtime and streams.
func withRuntime(runtime, ofPool string, ofCluster []string) state {
	return cluster(map[string][]string{
		pools: {streamed("worker", worker, worker, ofPool)}, configs: {config(worker, runtimeFile(runtime))},
		streams: ofCluster,
	})
}

func TestCgroupArguments(t *testing.T) {
	const name, v1 = "CgroupMode", "kernelArguments: [systemd.unified_cgroup_hierarchy=0]"
	pass, failed := only(name, preflight.Pass, "AsExpected"), only(name, preflight.Fail, "CgroupV1")
	warned := only("CgroupArgument", preflight.Warn, "CgroupArgument")
	for label, tc := range map[string]row{
		"V1": {
			reason: "4.19 does not support it", of: with(v1), from: "4.18.3", to: "4.19.0", want: failed,
			text: `systemd.unified_cgroup_hierarchy=0 of MachineConfig rendered-worker-0a, by which MachineConfigPool "worker" selects cgroup v1`,
		},
		"Patch": {reason: "4.18 supports it", of: with(v1), from: "4.18.3", to: "4.18.9", want: only(name, preflight.Skipped, "NotConcerned")},
		"Both": {
			reason: "what the operator of 4.18 sets for v1",
			of:     with("kernelArguments: [systemd.unified_cgroup_hierarchy=0, systemd.legacy_systemd_cgroup_controller=1]"),
			from:   "4.18.3", to: "4.19.0", want: failed,
		},
		"Source": {
			reason: "the MachineConfig that sets it is named",
			of:     cluster(map[string][]string{configs: {config(worker, v1), source("99-cgroup", v1)}}),
			from:   "4.18.3", to: "4.19.0", want: failed, text: "of MachineConfig 99-cgroup|oc edit machineconfig 99-cgroup",
		},
		"Mode": {
			reason: "the mode of all nodes does not hide the arguments of a pool, which stay when it is changed", of: cluster(map[string][]string{
				configs: {config(worker, v1)}, "config.openshift.io/v1/nodes": {"metadata: {name: cluster}\nspec: {cgroupMode: v1}\n"},
				"config.openshift.io/v1/clusteroperators": {},
			}),
			from: "4.18.3", to: "4.19.0", want: failed,
			text: "spec.cgroupMode of nodes.config.openshift.io/cluster is v1|of MachineConfig rendered-worker-0a",
		},
		"Last": {
			reason: "of several the last one counts",
			of:     with("kernelArguments: ['systemd.unified_cgroup_hierarchy=0 quiet', systemd.unified_cgroup_hierarchy=1]"), from: "4.18.3",
			to: "4.19.0", want: pass,
		},
		"LastIsV1": {
			reason: "of several the last one counts",
			of:     with("kernelArguments: [systemd.unified_cgroup_hierarchy=1, 'quiet systemd.unified_cgroup_hierarchy=no']"), from: "4.18.3",
			to: "4.19.0", want: failed,
		},
		"Legacy": {
			reason: "alone it has no effect", of: with("kernelArguments: [systemd.legacy_systemd_cgroup_controller=1]"),
			from: "4.18.3", to: "4.19.0", want: warned,
		},
		"V2": {
			reason: "it is supported", of: with("kernelArguments: [systemd.unified_cgroup_hierarchy=1, cgroup_no_v1=all]"),
			from: "4.18.3", to: "4.19.0", want: pass,
		},
		"Other": {reason: "it is about something else", of: with("kernelArguments: [nosmt]"), from: "4.18.3", to: "4.19.0", want: pass},
		"Unchanged": {
			reason: "4.20 has what 4.19 has", of: with(v1), from: "4.19.3", to: "4.20.1", want: warned,
			text: "4.20.1 does not support",
		},
		"Kubelet": {reason: "the kubelet of 4.22 does not start", of: with(v1), from: "4.21.3", to: "4.22.1", want: failed},
		"Later":   {reason: "neither does that of 5.2", of: with(v1), want: failed},
		"RHEL10": {
			reason: "it ignores the argument",
			of:     cluster(map[string][]string{configs: {config(worker, v1)}, pools: {streamed("worker", worker, worker, "rhel-10")}}),
			want:   warned,
		},
		"Refused": {
			reason: "what was not read is no pass", of: refusing("machineconfigs"), from: "4.18.3", to: "4.19.0",
			want: only(name, preflight.Unknown, "Forbidden"),
		},
		"Kubernetes": {reason: "it has none", of: kubernetes(), from: "4.18.3", to: "4.19.0", want: pass},
	} {
		t.Run(label, func(t *testing.T) { tc.run(t, machine.CgroupMode()) })
	}
}

// A gzipped file is read, too: the machine-config-operator of 4.23 compresses those that it renders.
func TestCompressedRuntime(t *testing.T) {
	var content bytes.Buffer
	into := gzip.NewWriter(&content)
	if _, err := into.Write([]byte(
		"[crio]\n[crio.runtime]\n# default_runtime = \"crun\"\ndefault_runtime = 'runc' # as before\n")); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	fields := fmt.Sprintf(
		`config: {storage: {files: [{path: /etc/crio/crio.conf.d/00-a, contents: {source: "data:;base64,%s", compression: gzip}}]}}`,
		base64.StdEncoding.EncodeToString(content.Bytes()))
	of := cluster(map[string][]string{pools: {streamed("worker", worker, worker, "rhel-10")}, configs: {config(worker, fields)}})
	row{reason: "it is decompressed", of: of, want: only("MachineConfigRuntime-worker", preflight.Fail, "RuncNotAvailable")}.run(t,
		machineconfig.MachineConfigs())
}

// TestGeneratedConfigs has what the operator does not accept.
func TestGeneratedConfigs(t *testing.T) {
	const kubelets = "machineconfiguration.openshift.io/v1/kubeletconfigs"
	object := func(status string) string {
		return "metadata: {name: custom, uid: k, generation: 2}\nstatus: " + status + "\n"
	}
	generated := strings.Replace(config("99-worker-generated-kubelet", ""), "metadata: {",
		"metadata: {ownerReferences: [{apiVersion: machineconfiguration.openshift.io/v1, kind: KubeletConfig, name: custom, uid: k, "+
			"controller: true}], ", 1)
	const (
		refused = "{observedGeneration: 2, conditions: [{type: Success, status: 'True'}, {type: Failure, status: 'False', message: " +
			"'could not find any MachineConfigPool'}]}"
		newer = "{observedGeneration: 2, conditions: [{type: Accepted, status: 'False', message: 'invalid'}]}"
	)
	name, fine := "GeneratedConfigs-KubeletConfig.custom",
		map[string]checktest.Result{"GeneratedConfigs": {Outcome: preflight.Pass, Reason: "AsExpected"}}
	as := func(outcome preflight.Outcome) map[string]checktest.Result {
		return map[string]checktest.Result{name: {Outcome: outcome, Reason: "ConfigNotAccepted"}}
	}
	for test, tc := range map[string]struct {
		reason, status string
		configs        []string
		refused        string
		want           map[string]checktest.Result
		message        string
	}{
		"Refused": {
			reason: "report 103: the type of the last condition counts, not its status", status: refused,
			configs: []string{generated}, want: as(preflight.Fail), message: "99-worker-generated-kubelet",
		},
		"Newer": {
			reason: "5.0 and later have the condition Accepted", status: newer, configs: []string{generated},
			want: as(preflight.Fail), message: "invalid",
		},
		"Accepted": {
			reason:  "the last condition is Success again",
			status:  "{observedGeneration: 2, conditions: [{type: Failure, status: 'True'}, {type: Success, status: 'True'}]}",
			configs: []string{generated}, want: fine,
		},
		"AcceptedNow": {
			reason: "Accepted counts, whatever there is of an earlier release",
			status: "{conditions: [{type: Accepted, status: 'True'}, {type: Failure, status: 'True'}]}", configs: []string{generated}, want: fine,
		},
		"NotOwned": {
			reason: "nothing was ever generated from it, so nothing is generated by an older version", status: refused,
			configs: []string{config("99-other", "")}, want: as(preflight.Warn), message: "no MachineConfig was generated",
		},
		"OfOther": {
			reason: "the MachineConfig is of an object of the same name before", status: refused,
			configs: []string{strings.Replace(generated, "uid: k,", "uid: before,", 1)}, want: as(preflight.Warn),
		},
		"Edited": {reason: "the operator has not seen the present spec", status: strings.Replace(refused, "observedGeneration: 2",
			"observedGeneration: 1", 1), configs: []string{generated}, want: as(preflight.Warn), message: "earlier generation"},
		"NoStatus": {reason: "nothing is said against it", status: "{}", configs: []string{generated}, want: fine},
		"Forbidden": {
			reason: "what may not be read may be refused", status: refused, refused: "kubeletconfigs",
			want: map[string]checktest.Result{"GeneratedConfigs": {Outcome: preflight.Unknown, Reason: "Forbidden"}},
		},
		"ConfigsForbidden": {
			reason: "whether one was generated is not known", status: refused, refused: "machineconfigs",
			want: map[string]checktest.Result{"GeneratedConfigs": {Outcome: preflight.Unknown, Reason: "Forbidden"}},
		},
	} {
		t.Run(test, func(t *testing.T) {
			of := state{refused: tc.refused, objects: map[string][]string{
				kubelets: {object(tc.status)}, configs: tc.configs,
				pools:                                    {pool("worker", worker, worker)},
				"config.openshift.io/v1/infrastructures": {"metadata: {name: cluster}\nstatus: {controlPlaneTopology: HighlyAvailable}\n"},
			}}
			for _, to := range []string{"4.18.9", "4.19.0"} {
				findings := checktest.Run(t, machineconfig.GeneratedConfigs(), serve(t, of).Snapshot(t), checktest.Update(t, "4.18.3", to))
				if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
					t.Errorf("%s, to %s (-want +got):\n%s", tc.reason, to, diff)
				}
				checktest.Contains(t, tc.reason, checktest.Messages(findings), []string{tc.message})
			}
		})
	}
}
