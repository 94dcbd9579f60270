package clusterversion_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/internal/checktest"
)

// TestRepeats has the messages that CVO makes of the conditions of ClusterOperators.
func TestRepeats(t *testing.T) {
	const (
		etcd, dns = "ClusterOperatorUpgradeable-etcd", "ClusterOperatorUpgradeable-dns"
		since423  = "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* "
		slow      = "EtcdUpgradeable: a member\n* is slow."
		ack       = "Kubernetes 1.33 removes an API."
	)
	subject := check.Subject{Update: checktest.Update(t, "4.18.3", "4.19.0"), Now: time.Now()}
	gate := finding.Fail(finding.ReportedReason("AdminAckRequired"), "%s", ack).Named("AdminAck-ack-4.18-api")
	gate.Blocks = true
	for name, tc := range map[string]struct {
		reason, message string
		want            []string
	}{
		"One":     {reason: "from 4.23 on the message is that of the operator", message: slow, want: []string{etcd}},
		"Several": {reason: "from 4.23 on several are a list", message: since423 + "DNS loops.\n* " + slow, want: []string{dns, etcd}},
		"OneOld": {
			reason:  "up to 4.22 a prefix names the operator",
			message: "Cluster operator etcd should not be upgraded between minor versions: " + slow, want: []string{etcd},
		},
		"SeveralOld": {
			reason: "and several have their reasons",
			message: "Multiple cluster operators should not be upgraded between minor or major versions:\n* Cluster operator dns should " +
				"not be upgraded between minor or major versions: Loops: DNS loops.\n* Cluster operator etcd should not be upgraded between " +
				"minor or major versions: Etcd_Slow: " + slow, want: []string{dns, etcd},
		},
		"Gate": {
			reason: "an admin gate has a finding, too",
			message: "Cluster should not be upgraded between minor or major versions for multiple reasons: AdminAckRequired,Loops\n* " + ack +
				"\n* Cluster operator dns should not be upgraded between minor or major versions: DNS loops.",
			want: []string{"AdminAck-ack-4.18-api", dns},
		},
		"Another": {
			reason:  "overrides have no finding of an operator",
			message: since423 + slow + "\n* Disabling ownership via cluster version overrides prevents updates.",
		},
		"Longer": {reason: "a text that only begins like that of an operator is another one", message: "DNS loops. Not only there."},
		"Twice":  {reason: "each operator is a cause once", message: since423 + "DNS loops.\n* DNS loops."},
		"Empty": {
			reason:  "no message explains nothing",
			message: "Cluster should not be upgraded between minor or major versions for multiple reasons:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, checktest.With(checktest.At("4.18.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons",
				tc.message),
				operator("etcd", configv1.ConditionFalse, "Etcd_Slow", slow), operator("dns", configv1.ConditionFalse, "Loops", "DNS loops."))
			found := checktest.Collect(t, []check.Check{clusterversion.Upgradeable(), clusterversion.ClusterOperators()}, server.Snapshot(t),
				subject)
			found = append(found, gate)
			for _, f := range found {
				if want := tc.want; f.Name == "ClusterVersionUpgradeable" && !cmp.Equal(want, clusterversion.Repeats(f, found)) {
					t.Errorf("%s: got %q, want %q, of %q", tc.reason, clusterversion.Repeats(f, found), want, f.Message)
				}
			}
			if len(found) != 4 {
				t.Errorf("%+v", found)
			}
		})
	}
}
