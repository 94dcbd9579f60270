package main_test

import (
	"fmt"
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

// network returns the configuration with a status in the flow style of YAML.
func network(status string) string {
	return fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: Network, metadata: {name: cluster}, spec: {}, status: %s}", status)
}

// migration returns the condition of a live migration.
func migration(status, reason string) string {
	return fmt.Sprintf(
		`{type: NetworkTypeMigrationInProgress, status: %q, reason: %s, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`, status, reason)
}

func TestNetworkType(t *testing.T) {
	env := checktest.New(t, local, "openshift-network-operator", "network-preflight")

	inProgress := func(outcome preflight.Outcome, message, remedy string) checktest.Want {
		return checktest.Want{
			Outcome: outcome, Reason: "MigrationInProgress", Objects: []string{"cluster"},
			Messages: []string{message}, Remedies: []string{remedy},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		run    func(*testing.T, ...string) checktest.Report
		want   checktest.Want
	}{
		"OVN": {
			reason: "the target has OVNKubernetes",
			state:  network(`{networkType: OVNKubernetes, clusterNetworkMTU: 8901}`),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed", Objects: []string{"cluster"}},
		},
		"Migrated": {
			reason: "the condition of a completed live migration remains on the object",
			state:  network(`{networkType: OVNKubernetes, conditions: [` + migration("False", "NetworkTypeMigrationCompleted") + `]}`),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed", Objects: []string{"cluster"}},
		},
		"SDN": {
			reason: "the incident of 4.17: the target does not have OpenShiftSDN",
			state:  network(`{networkType: OpenShiftSDN}`),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "NetworkTypeRemoved", Objects: []string{"cluster"},
				Messages: []string{"the cluster runs OpenShiftSDN, which the target does not have"},
				Remedies: []string{
					`{"metadata":{"annotations":{"network.openshift.io/network-type-migration":""}},"spec":{"networkType":"OVNKubernetes"}}`,
					"--for=condition=NetworkTypeMigrationInProgress=false",
				},
			},
		},
		"Live": {
			reason: "during a live migration the remedy is to wait, not to start it again",
			state:  network(`{networkType: OpenShiftSDN, conditions: [` + migration("True", "NetworkTypeMigrationStarted") + `]}`),
			want: inProgress(preflight.Fail, "a live migration of the network plugin is in progress",
				"oc wait network.config.openshift.io/cluster --for=jsonpath="),
		},
		"LiveCleaningUp": {
			reason: "a live migration is complete only after the old plugin is removed",
			state:  network(`{networkType: OVNKubernetes, conditions: [` + migration("True", "NetworkTypeMigrationStarted") + `]}`),
			want:   inProgress(preflight.Fail, "a live migration", "NetworkTypeMigrationInProgress=false"),
		},
		"Offline": {
			reason: "an offline migration is recognized by a field that the administrator clears at the end",
			state:  network(`{networkType: OVNKubernetes, migration: {networkType: OVNKubernetes}}`),
			want: inProgress(preflight.Fail, "an offline migration of the network plugin to OVNKubernetes is in progress",
				`'{"spec":{"migration":null}}'`),
		},
		"MTU": {
			reason: "a migration of the MTU results in a warning",
			state:  network(`{networkType: OVNKubernetes, migration: {mtu: {network: {from: 1400, to: 8901}, machine: {to: 9001}}}}`),
			want:   inProgress(preflight.Warn, "a migration of the MTU is in progress", "oc wait machineconfigpool --all"),
		},
		"SDNWithMTU": {
			reason: "a warning does not hide a fail",
			state:  network(`{networkType: OpenShiftSDN, migration: {mtu: {machine: {to: 9001}}}}`),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "NetworkTypeRemoved", Objects: []string{"cluster"},
				Messages: []string{"runs OpenShiftSDN", "; a migration of the MTU"},
			},
		},
		"OtherPlugin": {
			reason: "the check does not apply to plugins that the operator does not manage",
			state:  network(`{networkType: Calico}`),
			want: checktest.Want{
				Outcome: preflight.Skipped, Reason: "NotApplicable", Objects: []string{"cluster"},
				Messages: []string{"Calico is not a plugin of the network operator: its vendor decides about 4.21.3"},
			},
		},
		"NoType": {
			reason: "a status without the type is not a pass",
			state:  network(`{clusterNetworkMTU: 1400}`),
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError", Objects: []string{"cluster"},
				Messages: []string{"status.networkType of networks.config.openshift.io/cluster is empty"},
			},
		},
		"NoNetwork": {
			reason: "a missing configuration is not a pass",
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{`networks.config.openshift.io "cluster" not found`},
			},
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{`cannot read the configuration of the network: networks.config.openshift.io "cluster" is forbidden`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, tc.state)
			run := env.Run
			if tc.run != nil {
				run = tc.run
			}
			run(t).Expect(t, tc.reason, "NetworkType", tc.want)
		})
	}

	t.Run("Output", func(t *testing.T) {
		env.Apply(t, network(`{networkType: OpenShiftSDN}`))
		env.ExpectOutput(t)
	})
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-network-operator", "network-preflight").ExpectJob(t)
}

func TestManifest(t *testing.T) {
	preflighttest.Manifest(t, ".", "manifests/0000_70_cluster-network-operator_10_preflight.yaml", preflight.ManifestOptions{
		Name:      "network-preflight",
		Namespace: "openshift-network-operator",
		Image:     "quay.io/openshift/origin-cluster-network-operator:latest",
	})
}
