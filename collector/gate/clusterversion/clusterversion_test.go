package clusterversion_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// constructor makes a check.
type constructor func() check.Check

func without(cluster *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType) *configv1.ClusterVersion {
	var kept []configv1.ClusterOperatorStatusCondition
	for _, condition := range cluster.Status.Conditions {
		if condition.Type != kind {
			kept = append(kept, condition)
		}
	}
	cluster.Status.Conditions = kept
	return cluster
}

func available(cluster *configv1.ClusterVersion, images ...configv1.Release) *configv1.ClusterVersion {
	cluster.Status.AvailableUpdates = append(cluster.Status.AvailableUpdates, images...)
	return cluster
}

// row is a cluster, a target, and the results of a check. Message and remedy
// are parts of the messages and remedies of all findings.
type row struct {
	reason  string
	cluster *configv1.ClusterVersion
	to      string
	want    map[string]checktest.Result
	message []string
	remedy  []string
}

// runRows runs the check on each row, with the API server.
func runRows(t *testing.T, make constructor, rows map[string]row) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.cluster)
			from := tc.cluster.Status.History[len(tc.cluster.Status.History)-1].Version
			findings := checktest.Run(t, make(), server.Snapshot(t), checktest.Update(t, from, tc.to))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s\nin full: %+v", tc.reason, diff, findings)
			}
			for _, f := range findings {
				blocks := f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown
				if f.Blocks != blocks || (blocks && !cmp.Equal(f.BlockedTargets, []string{tc.to})) {
					t.Errorf("%s: %s is %s, blocks %v %v", tc.reason, f.Name, f.Outcome, f.Blocks, f.BlockedTargets)
				}
				if len(f.Objects) == 0 && f.Outcome != preflight.Pass && f.Reason != "NotConcerned" {
					t.Errorf("%s: %s names no object", tc.reason, f.Name)
				}
			}
			checktest.Contains(t, tc.reason+": message", checktest.Messages(findings), tc.message)
			checktest.Contains(t, tc.reason+": remedy", checktest.Remedies(findings), tc.remedy)
		})
	}
}

// one is the result of a single finding.
func one(name string, outcome preflight.Outcome, reason string) map[string]checktest.Result {
	return map[string]checktest.Result{name: {Outcome: outcome, Reason: reason}}
}

// onVersion are the checks of the ClusterVersion; current is true for those that
// depend on a current status.
func onVersion() map[string]struct {
	constructor
	current bool
} {
	return map[string]struct {
		constructor
		current bool
	}{
		"ClusterOperatorUpgradeable": {clusterversion.ClusterOperators, false},
		"ResourceDeletionInProgress": {clusterversion.Deletion, true},
		"Failing":                    {clusterversion.Failing, true},
		"ClusterVersionGiantHop":     {clusterversion.GiantHop, true},
		"ClusterVersionOverrides":    {clusterversion.Overrides, false},
		"ClusterVersionRequest":      {clusterversion.RequestValid, true},
		"CannotRetrieveUpdates":      {clusterversion.RetrievedUpdates, true},
		"ClusterVersionRollback":     {clusterversion.Rollback, true},
		"ClusterVersionUpdating":     {clusterversion.Updating, true},
		"ClusterVersionUpgradeable":  {clusterversion.Upgradeable, true},
	}
}

// A status that is older than the spec is reported once, and opens no gate.
func TestStaleStatusIsInconclusive(t *testing.T) {
	notUpgradeable := func() *configv1.ClusterVersion {
		return checktest.With(checktest.At("4.18.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "AdminAckRequired",
			"Acknowledge it.")
	}
	requesting := func(cluster *configv1.ClusterVersion, version string) *configv1.ClusterVersion {
		cluster.Spec.DesiredUpdate = &configv1.Update{Version: version}
		return cluster
	}
	for name, tc := range map[string]struct {
		reason  string
		cluster *configv1.ClusterVersion
		to      string
		fails   []string // the checks that fail
	}{
		"Channel": {reason: "nothing fails, and nothing passes", cluster: checktest.At("4.18.3"), to: "4.19.0"},
		"Upgradeable": {
			reason: "no change of the spec but that of overrides sets Upgradeable", cluster: notUpgradeable(), to: "4.19.0",
			fails: []string{"ClusterVersionUpgradeable"},
		},
		"Requested": {
			reason: "the release in progress is the requested one", cluster: requesting(notUpgradeable(), "4.18.3"), to: "4.19.0",
			fails: []string{"ClusterVersionUpgradeable"},
		},
		"Other": {
			reason:  "another release is requested, from which the update would be measured",
			cluster: requesting(notUpgradeable(), "4.19.0"), to: "4.19.1",
		},
		"GiantHop": {
			reason: "the hop is too far from the present release", cluster: checktest.At("4.19.3"), to: "4.21.0",
			fails: []string{"ClusterVersionGiantHop"},
		},
		"InProgress": {
			reason: "the update in progress blocks the next minor version", cluster: checktest.Toward("4.18.3", "4.19.2"),
			to: "4.20.0", fails: []string{"ClusterVersionUpdating"},
		},
		"Invalid": {reason: "the change of the spec may be the fix", cluster: checktest.With(checktest.At("4.18.3"), "Invalid",
			configv1.ConditionTrue, "InvalidClusterVersion", "spec.upstream"), to: "4.18.9"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cluster.Status.ObservedGeneration = 0
			server.Create(t, tc.cluster)
			cluster := server.Snapshot(t)
			for name, check := range onVersion() {
				want := one(name, preflight.Skipped, "StaleStatus")
				findings := checktest.Run(t, check.constructor(), cluster, checktest.Update(t, "4.18.3", tc.to))
				switch {
				case !check.current: // it depends on no field that a change of the spec makes stale
					for _, f := range findings {
						if f.Reason == "StaleStatus" {
							t.Errorf("%s: %s: %+v, want a finding about the cluster", tc.reason, name, f)
						}
					}
					continue
				case name == "ClusterVersionRequest":
					want = one(name, preflight.Unknown, "StaleStatus")
					checktest.Contains(t, tc.reason, findings[0].Message,
						[]string{"generation 0", "generation 1", "spec.channel", "spec.upstream", "spec.desiredUpdate", "accepted risks"})
				case slices.Contains(tc.fails, name):
					want = one(name, preflight.Fail, findings[0].Reason)
				}
				if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
					t.Errorf("%s: %s: -want +got:\n%s", tc.reason, name, diff)
				}
			}
		})
	}
}

func TestForbiddenClusterVersionIsInconclusive(t *testing.T) {
	server.Create(t, checktest.At("4.18.3"))
	cluster := server.Unprivileged().Snapshot(t)
	for name, check := range onVersion() {
		findings := checktest.Run(t, check.constructor(), cluster, checktest.Update(t, "4.18.3", "4.19.0"))
		if diff := cmp.Diff(one(name, preflight.Unknown, "Forbidden"), checktest.Results(findings)); diff != "" {
			t.Errorf("without permission to read: -want +got:\n%s", diff)
		}
	}
}

func TestMissingClusterVersion(t *testing.T) {
	for name, check := range onVersion() {
		findings := checktest.Run(t, check.constructor(), server.Snapshot(t), checktest.Update(t, "4.18.3", "4.19.0"))
		if diff := cmp.Diff(one(name, preflight.Skipped, "PlainKubernetes"), checktest.Results(findings)); diff != "" {
			t.Errorf("without OpenShift's Infrastructure: -want +got:\n%s", diff)
		}
	}
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	for name, check := range onVersion() {
		findings := checktest.Run(t, check.constructor(), server.Snapshot(t), checktest.Update(t, "4.18.3", "4.19.0"))
		if diff := cmp.Diff(one(name, preflight.Unknown, "APIMissing"), checktest.Results(findings)); diff != "" {
			t.Errorf("on OpenShift: -want +got:\n%s", diff)
		}
	}
}

func TestInvalidCurrentVersionIsInconclusive(t *testing.T) {
	broken := checktest.At("4.18.3")
	broken.Status.Desired.Version = "nightly"
	server.Create(t, broken)
	cluster := server.Snapshot(t)
	for name, check := range onVersion() {
		findings := checktest.Run(t, check.constructor(), cluster, checktest.Update(t, "4.18.3", "4.19.0"))
		if diff := cmp.Diff(one(name, preflight.Unknown, "InvalidCurrentVersion"), checktest.Results(findings)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
