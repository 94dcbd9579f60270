package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// machineConfig returns a MachineConfig with a spec in the flow style of YAML.
func machineConfig(name, spec string) string {
	return fmt.Sprintf("---\n{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: %s}, spec: %s}\n", name,
		spec)
}

func ignition(name, version string) string {
	return machineConfig(name, fmt.Sprintf("{config: {ignition: {version: %q}, storage: {files: []}}}", version))
}

// workers returns a pool with its current and desired rendered machine config and the
// source of the desired one.
func workers(current, desired, source string) string {
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
`, desired, source, current)
}

func TestIgnitionVersion(t *testing.T) {
	env := checktest.New(t, local, "openshift-machine-config-operator", "machine-config-preflight")

	var many strings.Builder
	for i := range 35 {
		many.WriteString(ignition(fmt.Sprintf("old-%02d", i), "2.2.0"))
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		run    func(*testing.T, ...string) checktest.Report
		want   checktest.Want
	}{
		"NoMachineConfigs": {
			reason: "a cluster without machine configs passes",
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed", Messages: []string{"No machine config uses Ignition 2."}},
		},
		"Ignition3": {
			reason: "Ignition 3, no config and an empty config pass",
			state: workers("rendered-1", "rendered-1", "99-worker-ssh") +
				ignition("rendered-1", "3.4.0") + ignition("99-worker-ssh", "3.2.0") +
				machineConfig("99-kargs", "{kernelArguments: [quiet]}") + machineConfig("99-empty", "{config: {}}"),
			want: checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"RenderedInUse": {
			reason: "a current rendered config of Ignition 2 results in a fail",
			state:  workers("rendered-old", "rendered-new", "99-worker-ssh") + ignition("rendered-old", "2.2.0") + ignition("rendered-new", "3.4.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Messages: []string{"rendered-old (2.2.0, pool worker)"},
				Remedies: []string{"oc wait machineconfigpool --all"},
				Objects:  []string{"rendered-old"},
			},
		},
		"RenderedDesired": {
			reason: "a desired rendered config of Ignition 2 results in a fail",
			state:  workers("rendered-new", "rendered-old", "99-worker-ssh") + ignition("rendered-old", "2.2.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Messages: []string{"rendered-old (2.2.0, pool worker)"},
				Objects:  []string{"rendered-old"},
			},
		},
		"SourceInUse": {
			reason: "a source of Ignition 2 results in a fail, because the target renders it again",
			state: workers("rendered-1", "rendered-1", "99-worker-chrony") + ignition("rendered-1", "3.4.0") + ignition("99-worker-chrony",
				"2.1.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Messages: []string{"99-worker-chrony (2.1.0, pool worker)"},
				Objects:  []string{"99-worker-chrony"},
			},
		},
		"Leftover": {
			reason: "an unused config of Ignition 2 results in a warning",
			state:  workers("rendered-1", "rendered-1", "99-worker-ssh") + ignition("rendered-0", "2.2.0"),
			want: checktest.Want{
				Outcome: preflight.Warn, Reason: "Ignition2",
				Messages: []string{"no pool uses MachineConfig rendered-0 with Ignition 2"},
				Remedies: []string{"oc delete machineconfig rendered-0"},
				Objects:  []string{"rendered-0"},
			},
		},
		"UsedAndLeftover": {
			reason: "the fail comes before the warning",
			state:  workers("rendered-1", "rendered-1", "99-worker-ssh") + ignition("99-worker-ssh", "2.2.0") + ignition("rendered-0", "2.2.0"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Messages: []string{"99-worker-ssh (2.2.0, pool worker); no pool uses MachineConfig rendered-0"},
				Objects:  []string{"99-worker-ssh", "rendered-0"},
			},
		},
		"ManyPages": {
			reason: "the configs of all pages are checked, and the message names the first ten",
			state:  many.String(),
			want: checktest.Want{
				Outcome: preflight.Warn, Reason: "Ignition2",
				Messages: []string{"old-00, ", "old-09 and 25 more"},
				Objects:  []string{"old-00", "old-01", "old-02", "old-03", "old-04", "old-05", "old-06", "old-07", "old-08", "old-09"},
			},
		},
		"OtherVersion": {
			reason: "a config of another version is not a pass",
			state:  ignition("99-future", "4.0.0"),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{`neither 2.y.z nor 3.y.z in MachineConfig 99-future ("4.0.0")`},
				Objects:  []string{"99-future"},
			},
		},
		"NoVersion": {
			reason: "a config without a version is not a pass",
			state:  machineConfig("99-odd", "{config: {storage: {files: []}}}"),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{`99-odd ("")`},
				Objects:  []string{"99-odd"},
			},
		},
		"VersionNoString": {
			reason: "a config whose version is not a string is not a pass",
			state:  machineConfig("99-odd", "{config: {ignition: {version: 2}}}"),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{`99-odd ("")`},
				Objects:  []string{"99-odd"},
			},
		},
		"UsedAndInvalid": {
			reason: "an invalid config does not hide a fail",
			state:  workers("rendered-1", "rendered-1", "99-worker-ssh") + ignition("99-worker-ssh", "2.2.0") + ignition("00-odd", "x"),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "Ignition2",
				Messages: []string{"99-worker-ssh (2.2.0, pool worker); spec.config.ignition.version is neither"},
				Objects:  []string{"00-odd", "99-worker-ssh"},
			},
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{`cannot list machine config pools: machineconfigpools.machineconfiguration.openshift.io is forbidden`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, tc.state)
			run := env.Run
			if tc.run != nil {
				run = tc.run
			}
			run(t).Expect(t, tc.reason, "IgnitionVersion", tc.want)
		})
	}

	t.Run("Output", func(t *testing.T) {
		env.Apply(t, workers("rendered-old", "rendered-new", "99-worker-ssh")+ignition("rendered-old", "2.2.0")+ignition("rendered-new", "3.4.0"))
		env.ExpectOutput(t)
	})
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-machine-config-operator", "machine-config-preflight").ExpectJob(t)
}

func TestManifest(t *testing.T) {
	preflighttest.Manifest(t, ".", "manifests/0000_80_machine-config-operator_10_preflight.yaml", preflight.ManifestOptions{
		Name:      "machine-config-preflight",
		Namespace: "openshift-machine-config-operator",
		Image:     "quay.io/openshift/origin-machine-config-operator:latest",
	})
}
