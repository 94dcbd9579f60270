package risk_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/prometheus"
)

// Of the alerts of the management cluster, those of the control plane's namespace count.
func TestControlPlaneAlerts(t *testing.T) {
	const own = "clusters-example"
	etcd := alarm("EtcdDown", "severity", "critical", "namespace", own)
	others := []prometheus.Rule{
		alarm("ClusterDown", "severity", "critical"),
		alarm("EtcdDown", "severity", "critical", "namespace", "clusters-other"),
	}
	management, err := cluster.Connect(config, "risk_test")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		rules   []prometheus.Rule
		client  *monitoring.Client // of the rules by default
		options risk.Options
		want    results
	}{
		"Firing": {
			reason: "it is accepted by another name than an alert of the guest", rules: append(others, etcd),
			want: results{"ControlPlaneAlerts-EtcdDown": fires},
		},
		"Ignored": {
			reason: "as the alerts of the guest are", rules: append(others, etcd),
			options: risk.Options{IgnoredAlerts: []string{"EtcdDown"}},
			want:    results{"ControlPlaneAlerts-EtcdDown": {Outcome: preflight.Warn, Reason: "Ignored"}},
		},
		"Others": {
			reason: "the management cluster has others", rules: others,
			want: results{"ControlPlaneAlerts": {Outcome: preflight.Pass, Reason: "NoAlerts"}},
		},
		"NoMonitoring": {
			reason: "a management cluster that is not OpenShift need not have monitoring", client: noMonitoring(t),
			want: results{"ControlPlaneAlerts": {Outcome: preflight.Skipped, Reason: "PlainKubernetes"}},
		},
		"Unreachable": {
			reason: "alerts that cannot be read are not silent", client: clientOf("http://127.0.0.1:1"),
			want: results{"ControlPlaneAlerts": {Outcome: preflight.Unknown, Reason: "Unreachable"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			side := &hosted.ControlPlane{Cluster: &hypershift.HostedCluster{}, Management: management, Monitoring: tc.client}
			side.Cluster.Namespace, side.Cluster.Name = "clusters", "example"
			if side.Monitoring == nil {
				side.Monitoring = clientOf(shared.Load(t, tc.rules...).URL)
			}
			got := checktest.Results(checktest.Run(t, risk.ControlPlaneAlerts(side, tc.options), server.Snapshot(t),
				checktest.Update(t, from, "4.19.0")))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAssessedByCluster(t *testing.T) {
	t.Parallel()
	a, b := promql("A", applies), promql("B", spares)
	other := promql("A", spares)
	found := func(of configv1.ConditionalUpdateRisk, applies bool) risk.Assessed {
		return risk.Assessed{Name: of.Name, Rules: of.MatchingRules, Applies: applies}
	}
	for name, tc := range map[string]struct {
		reason  string
		updates []configv1.ConditionalUpdate
		// stale is a spec that is newer than the status.
		stale bool
		want  []risk.Assessed
	}{
		"Named": {
			reason:  "the condition names the only risk that applies",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a, b), metav1.ConditionFalse, "A", "x")},
			want:    []risk.Assessed{found(a, true), found(b, false)},
		},
		"Recommended": {
			reason:  "no risk applies",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a), metav1.ConditionTrue, "NotExposedToRisks", "x")},
			want:    []risk.Assessed{found(a, false)},
		},
		"Unknown": {
			reason:  "CVO could not evaluate the risk",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a), metav1.ConditionUnknown, "EvaluationFailed", "x")},
		},
		"NotYet": {reason: "CVO has not evaluated the update yet", updates: []configv1.ConditionalUpdate{conditional("4.18.16", a)}},
		"Stale": {
			reason:  "that a risk does not apply is only known of the present spec",
			updates: []configv1.ConditionalUpdate{recommended(conditional("4.18.16", a, b), metav1.ConditionFalse, "A", "x")},
			stale:   true, want: []risk.Assessed{found(a, true)},
		},
		"Definitions": {
			reason: "that a risk does not apply may be about another definition",
			updates: []configv1.ConditionalUpdate{
				recommended(conditional("4.18.16", a), metav1.ConditionFalse, "A", "x"),
				recommended(conditional("4.18.17", other), metav1.ConditionTrue, "NotExposedToRisks", "x"),
			},
			want: []risk.Assessed{found(a, true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := clusterVersion(tc.updates...)
			if tc.stale {
				version.Generation = version.Status.ObservedGeneration + 1
			}
			got, err := risk.AssessedByCluster(t.Context(), serving(t, version).Snapshot(t).Cluster)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
