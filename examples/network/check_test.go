package main_test

import (
	"fmt"
	"testing"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// network is the configuration with the given status, in YAML's flow style.
func network(status string) string {
	return fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: Network, metadata: {name: cluster}, spec: {}, status: %s}", status)
}

// migration is the condition of a live one.
func migration(status, reason string) string {
	return fmt.Sprintf(`{type: NetworkTypeMigrationInProgress, status: %q, reason: %s, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`, status, reason)
}

func TestNetworkType(t *testing.T) {
	stage := checktest.New(t, local, "openshift-network-operator", "network-preflight")

	inProgress := func(outcome preflight.Outcome, says, remedy string) checktest.Want {
		return checktest.Want{
			Outcome: outcome, Reason: "MigrationInProgress", Objects: []string{"cluster"},
			Says: []string{says}, Remedies: []string{remedy},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		ask    func(*testing.T, ...string) checktest.Answer
		want   checktest.Want
	}{
		"OVN": {
			reason: "the plugin of today stays",
			state:  network(`{networkType: OVNKubernetes, clusterNetworkMTU: 8901}`),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed", Objects: []string{"cluster"}},
		},
		"MigratedLongAgo": {
			reason: "the condition of a live migration that has ended remains on the object",
			state:  network(`{networkType: OVNKubernetes, conditions: [` + migration("False", "NetworkTypeMigrationCompleted") + `]}`),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed", Objects: []string{"cluster"}},
		},
		"SDN": {
			reason: "the incident of 4.17: the target has no OpenShiftSDN",
			state:  network(`{networkType: OpenShiftSDN}`),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "NetworkTypeRemoved", Objects: []string{"cluster"},
				Says: []string{"the cluster runs OpenShiftSDN, which the target does not have"},
				Remedies: []string{
					`{"metadata":{"annotations":{"network.openshift.io/network-type-migration":""}},"spec":{"networkType":"OVNKubernetes"}}`,
					"--for=condition=NetworkTypeMigrationInProgress=false",
				},
			},
		},
		"Live": {
			reason: "a live migration that has begun must not be started once more: wait",
			state:  network(`{networkType: OpenShiftSDN, conditions: [` + migration("True", "NetworkTypeMigrationStarted") + `]}`),
			want:   inProgress(preflight.Fail, "a live migration of the network plugin is under way", "oc wait network.config.openshift.io/cluster --for=jsonpath="),
		},
		"LiveCleaningUp": {
			reason: "it is not over when the new plugin runs: the old one has to be purged",
			state:  network(`{networkType: OVNKubernetes, conditions: [` + migration("True", "NetworkTypeMigrationStarted") + `]}`),
			want:   inProgress(preflight.Fail, "a live migration", "NetworkTypeMigrationInProgress=false"),
		},
		"Offline": {
			reason: "the offline migration has no condition, but a field that the administrator clears at the end",
			state:  network(`{networkType: OVNKubernetes, migration: {networkType: OVNKubernetes}}`),
			want:   inProgress(preflight.Fail, "an offline migration of the network plugin to OVNKubernetes is not finished", `'{"spec":{"migration":null}}'`),
		},
		"MTU": {
			reason: "a change of the MTU is worth knowing of, but no reason to stay",
			state:  network(`{networkType: OVNKubernetes, migration: {mtu: {network: {from: 1400, to: 8901}, machine: {to: 9001}}}}`),
			want:   inProgress(preflight.Warn, "the MTU of the network is being changed", "oc wait machineconfigpool --all"),
		},
		"SDNWithMTU": {
			reason: "what warns does not hide what fails",
			state:  network(`{networkType: OpenShiftSDN, migration: {mtu: {machine: {to: 9001}}}}`),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "NetworkTypeRemoved", Objects: []string{"cluster"},
				Says: []string{"runs OpenShiftSDN", "; the MTU"},
			},
		},
		"SomebodyElse": {
			reason: "what the operator does not run it cannot judge, and has no business to",
			state:  network(`{networkType: Calico}`),
			want: checktest.Want{
				Outcome: preflight.Skipped, Reason: "NotApplicable", Objects: []string{"cluster"},
				Says: []string{"Calico is not a plugin of the network operator: ask its vendor about 4.21.3"},
			},
		},
		"NotSaid": {
			reason: "a status without the type is not a pass",
			state:  network(`{clusterNetworkMTU: 1400}`),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError", Objects: []string{"cluster"},
				Says: []string{"status.networkType is empty"},
			},
		},
		"NoNetwork": {
			reason: "nor is a cluster without the configuration",
			want:   checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Says: []string{`networks.config.openshift.io "cluster" not found`}},
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Says: []string{`cannot read the configuration of the network: networks.config.openshift.io "cluster" is forbidden`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, tc.state)
			ask := stage.Ask
			if tc.ask != nil {
				ask = tc.ask
			}
			ask(t).Expect(t, tc.reason, "NetworkType", tc.want)
		})
	}
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-network-operator", "network-preflight").ExpectJob(t)
}
