package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// machineConfig is one with the given spec, in YAML's flow style.
func machineConfig(name, spec string) string {
	return fmt.Sprintf("---\n{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: %s}, spec: %s}\n", name, spec)
}

func ignition(name, version string) string {
	return machineConfig(name, fmt.Sprintf("{config: {ignition: {version: %q}, storage: {files: []}}}", version))
}

// workers is a pool whose nodes have one rendered machine config, and are to
// get another one.
func workers(has, wants, source string) string {
	return fmt.Sprintf(`---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec:
  configuration:
    name: %s
    source: [{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, name: %s}]
status:
  configuration: {name: %s}
  machineCount: 0
  updatedMachineCount: 0
  readyMachineCount: 0
  unavailableMachineCount: 0
  degradedMachineCount: 0
  certExpirys: []
  conditions: []
`, wants, source, has)
}

func TestIgnitionVersion(t *testing.T) {
	stage := checktest.New(t, local, "openshift-machine-config-operator", "machine-config-preflight")

	var many strings.Builder
	for i := range 35 {
		many.WriteString(ignition(fmt.Sprintf("old-%02d", i), "2.2.0"))
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		ask    func(*testing.T, ...string) checktest.Answer
		want   checktest.Want
	}{
		"Nothing": {
			reason: "a cluster without machine configs has none of Ignition 2",
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed", Says: []string{"No machine config is of Ignition 2."}},
		},
		"Ignition3": {
			reason: "all that a cluster of today has passes: Ignition 3, no config, and an empty one",
			state: workers("rendered-1", "rendered-1", "99-worker-ssh") +
				ignition("rendered-1", "3.4.0") + ignition("99-worker-ssh", "3.2.0") +
				machineConfig("99-kargs", "{kernelArguments: [quiet]}") + machineConfig("99-empty", "{config: {}}"),
			want: checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"RenderedInUse": {
			reason: "nodes that have a rendered config of Ignition 2 could not be updated",
			state:  workers("rendered-old", "rendered-new", "99-worker-ssh") + ignition("rendered-old", "2.2.0") + ignition("rendered-new", "3.4.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Says:     []string{"rendered-old (2.2.0, pool worker)"},
				Remedies: []string{"oc wait machineconfigpool --all"},
				Objects:  []string{"rendered-old"},
			},
		},
		"RenderedWanted": {
			reason: "so it is with the one that they are about to get",
			state:  workers("rendered-new", "rendered-old", "99-worker-ssh") + ignition("rendered-old", "2.2.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Says:    []string{"rendered-old (2.2.0, pool worker)"},
				Objects: []string{"rendered-old"},
			},
		},
		"SourceInUse": {
			reason: "the source matters although the rendered config is of Ignition 3: the target renders it anew",
			state:  workers("rendered-1", "rendered-1", "99-worker-chrony") + ignition("rendered-1", "3.4.0") + ignition("99-worker-chrony", "2.1.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Says:    []string{"99-worker-chrony (2.1.0, pool worker)"},
				Objects: []string{"99-worker-chrony"},
			},
		},
		"Leftover": {
			reason: "a config that no pool uses does no harm, but should go",
			state:  workers("rendered-1", "rendered-1", "99-worker-ssh") + ignition("rendered-0", "2.2.0"),
			want: checktest.Want{
				Outcome: preflight.Warn, Reason: "Ignition2",
				Says:     []string{"no pool uses MachineConfig rendered-0 of Ignition 2"},
				Remedies: []string{"oc delete machineconfig rendered-0"},
				Objects:  []string{"rendered-0"},
			},
		},
		"UsedAndLeftover": {
			reason: "the worse comes first",
			state:  workers("rendered-1", "rendered-1", "99-worker-ssh") + ignition("99-worker-ssh", "2.2.0") + ignition("rendered-0", "2.2.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Says:    []string{"99-worker-ssh (2.2.0, pool worker); no pool uses MachineConfig rendered-0"},
				Objects: []string{"99-worker-ssh", "rendered-0"},
			},
		},
		"ManyPages": {
			reason: "more configs than fit on a page are all seen, and not all named",
			state:  many.String(),
			want: checktest.Want{
				Outcome: preflight.Warn, Reason: "Ignition2",
				Says:    []string{"old-00, ", "old-09 and 25 more"},
				Objects: []string{"old-00", "old-01", "old-02", "old-03", "old-04", "old-05", "old-06", "old-07", "old-08", "old-09"},
			},
		},
		"OtherVersion": {
			reason: "what is neither 2 nor 3 is not known here, and not a pass",
			state:  ignition("99-future", "4.0.0"),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Says:    []string{`neither 2.y.z nor 3.y.z in MachineConfig 99-future ("4.0.0")`},
				Objects: []string{"99-future"},
			},
		},
		"NoVersion": {
			reason: "a config that does not say its version is not a pass",
			state:  machineConfig("99-odd", "{config: {storage: {files: []}}}"),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Says:    []string{`99-odd ("")`},
				Objects: []string{"99-odd"},
			},
		},
		"VersionNoString": {
			reason: "nor is one whose version is no string",
			state:  machineConfig("99-odd", "{config: {ignition: {version: 2}}}"),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Says:    []string{`99-odd ("")`},
				Objects: []string{"99-odd"},
			},
		},
		"UsedAndOdd": {
			reason: "one that cannot be read does not hide one that does harm",
			state:  workers("rendered-1", "rendered-1", "99-worker-ssh") + ignition("99-worker-ssh", "2.2.0") + ignition("00-odd", "x"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Says:    []string{"99-worker-ssh (2.2.0, pool worker); spec.config.ignition.version is neither"},
				Objects: []string{"00-odd", "99-worker-ssh"},
			},
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Says: []string{`cannot list machine config pools: machineconfigpools.machineconfiguration.openshift.io is forbidden`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, tc.state)
			ask := stage.Ask
			if tc.ask != nil {
				ask = tc.ask
			}
			ask(t).Expect(t, tc.reason, "IgnitionVersion", tc.want)
		})
	}
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-machine-config-operator", "machine-config-preflight").ExpectJob(t)
}
