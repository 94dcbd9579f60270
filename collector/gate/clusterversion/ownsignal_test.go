package clusterversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Upgradeable=False counts unless the preflight's own ClusterOperator is its only
// cause, in the words of each release of CVO.
func TestUpgradeableOfOwnSignal(t *testing.T) {
	const name = "ClusterVersionUpgradeable"
	own, since423 := ownsignal.Message("4.19.0 is Blocked."), "RiskNameNotCompatibleWithReasonProperty"
	named := "Cluster operator update-preflight should not be upgraded between minor or major versions: " + own
	closed := func(cluster *configv1.ClusterVersion, reason, message string) *configv1.ClusterVersion {
		return checktest.With(cluster, configv1.OperatorUpgradeable, configv1.ConditionFalse, reason, message)
	}
	overridden := closed(checktest.At("4.18.3"), ownsignal.NotReady, named)
	overridden.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "a", Name: "b", Unmanaged: true}}
	skipped := one(name, preflight.Skipped, "OwnSignal")
	runRows(t, clusterversion.Upgradeable, map[string]row{
		"Since4.23": {
			reason: "the message is repeated", cluster: closed(checktest.At("5.0.3"), since423, own), to: "5.1.0", want: skipped,
			message: []string{own},
		},
		"Until4.22": {
			reason: "the operator is named", cluster: closed(checktest.At("4.18.3"), ownsignal.NotReady, named), to: "4.19.0",
			want: skipped,
		},
		"Retarget": {
			reason:  "up to 4.16 CVO refuses the retarget for the same cause",
			cluster: closed(checktest.Toward("4.15.3", "4.16.2"), ownsignal.NotReady, named), to: "4.16.5", want: skipped,
		},
		"Another": {
			reason: "another cause counts", to: "5.1.0", want: one(name, preflight.Fail, "UpgradeableFalse"),
			cluster: closed(checktest.At("5.0.3"), "MultipleReasons",
				"Cluster should not be upgraded between minor or major versions for multiple reasons:\n* "+own+"\n* Wait."),
		},
		"SeparateCondition": {
			reason: "another cause has a separate condition", to: "4.19.0", want: one(name, preflight.Fail, ownsignal.NotReady),
			cluster: checktest.With(closed(checktest.At("4.18.3"), ownsignal.NotReady, named), "UpgradeableAdminAckRequired",
				configv1.ConditionFalse, "AdminAckRequired", "Acknowledge."),
		},
		"Overrides": {
			reason: "an override is another cause, which CVO may not have listed yet", cluster: overridden, to: "4.19.0",
			want: one(name, preflight.Fail, ownsignal.NotReady),
		},
		"OtherName": {
			reason: "the reason of another operator is not the preflight's", to: "4.19.0", want: one(name, preflight.Fail, ownsignal.NotReady),
			cluster: closed(checktest.At("4.18.3"), ownsignal.NotReady,
				"Cluster operator etcd should not be upgraded between minor or major versions: "+own),
		},
	})
}

func TestOwnClusterOperator(t *testing.T) {
	closed := func(name string) *configv1.ClusterOperator {
		return &configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{{
				Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "Closed", Message: "not now",
				LastTransitionTime: metav1.Now(),
			}}},
		}
	}
	own := checktest.Result{Outcome: preflight.Skipped, Reason: "OwnSignal"}
	for name, tc := range map[string]struct {
		reason    string
		operators []runtime.Object
		want      map[string]checktest.Result
	}{
		"Alone": {
			reason: "the own operator does not count", operators: []runtime.Object{closed("update-preflight")},
			want: map[string]checktest.Result{
				"ClusterOperatorUpgradeable": {Outcome: preflight.Pass, Reason: "Upgradeable"}, "ClusterOperatorUpgradeable-update-preflight": own,
			},
		},
		"Another": {
			reason: "another operator counts, too", operators: []runtime.Object{closed("update-preflight"), closed("etcd")},
			want: map[string]checktest.Result{
				"ClusterOperatorUpgradeable-etcd": {Outcome: preflight.Fail, Reason: "Closed"}, "ClusterOperatorUpgradeable-update-preflight": own,
			},
		},
		"SimilarName": {
			reason: "an operator whose name has the same beginning counts", operators: []runtime.Object{closed("update-preflight-2")},
			want: map[string]checktest.Result{"ClusterOperatorUpgradeable-update-preflight-2": {Outcome: preflight.Fail, Reason: "Closed"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, append(tc.operators, checktest.At("4.18.3"))...)
			findings := checktest.Run(t, clusterversion.ClusterOperators(), server.Snapshot(t), checktest.Update(t, "4.18.3", "4.19.0"))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
