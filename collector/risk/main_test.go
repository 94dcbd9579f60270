package risk_test

import (
	"context"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
)

// server is the API server that the tests of this package share, with the CRDs of
// the default feature set, and config its configuration. The CRDs of preview are those of
// the feature set in which ClusterVersion has an assessment of each risk.
var (
	server, preview checktest.Server
	config          *rest.Config
	// shared is the Prometheus of one test at a time.
	shared prometheus.Shared
)

func TestMain(m *testing.M) {
	cluster.MainWith(m,
		cluster.Wanted{
			Use:     func(c *cluster.Cluster) { config, server = c.Config, checktest.Connect(c.Config) },
			Options: []cluster.Option{cluster.ControlPlaneOnly()},
			Done:    shared.Stop,
		},
		cluster.Wanted{
			Use:     func(c *cluster.Cluster) { preview = checktest.Connect(c.Config) },
			Options: []cluster.Option{cluster.ControlPlaneOnly(), cluster.FeatureSet("TechPreviewNoUpgrade")},
		},
	)
}

const (
	from      = "4.18.3"
	clusterID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	// applies and spares are queries whose result is 1 and 0, of the series of
	// measured.
	applies = "applies"
	spares  = "max(spares)"
)

// measured is a Prometheus with the series of the queries of these tests.
func measured(t *testing.T) *prometheus.Prometheus {
	t.Helper()
	return shared.Load(t,
		prometheus.Rule{Record: "applies", Expr: "vector(1)"},
		prometheus.Rule{Record: "spares", Expr: "vector(0)"},
		prometheus.Rule{Record: "hosted", Expr: "vector(1)", Labels: map[string]string{"_id": clusterID}},
	)
}

// clientOf is a client of the server at a URL.
func clientOf(url string) *monitoring.Client {
	return monitoring.New(func(context.Context) (*rest.Config, error) { return &rest.Config{Host: url}, nil }, monitoring.DefaultTimeout)
}

// noMonitoring is a client of a cluster without monitoring.
func noMonitoring(t *testing.T) *monitoring.Client {
	t.Helper()
	return monitoring.New(monitoring.Querier{Config: config, Dynamic: dynamic.NewForConfigOrDie(config)}.Find, monitoring.DefaultTimeout)
}

// openShift is the Infrastructure of an OpenShift cluster with this topology.
func openShift(topology configv1.TopologyMode) *configv1.Infrastructure {
	return &configv1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology: topology, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			CPUPartitioning: configv1.CPUPartitioningNone,
		},
	}
}

// clusterVersion has these conditional updates, and a current status.
func clusterVersion(updates ...configv1.ConditionalUpdate) *configv1.ClusterVersion {
	now := metav1.Now()
	return &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: clusterID, Channel: "stable-4.18"},
		Status: configv1.ClusterVersionStatus{
			ObservedGeneration: 1, VersionHash: "0",
			Desired: configv1.Release{Version: from, Image: "example.com/release@sha256:current"},
			History: []configv1.UpdateHistory{{
				State: configv1.CompletedUpdate, Version: from, Image: "x", StartedTime: now,
				CompletionTime: &now,
			}},
			AvailableUpdates: []configv1.Release{},
			Conditions: []configv1.ClusterOperatorStatusCondition{{
				Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: now,
			}},
			ConditionalUpdates: updates,
		},
	}
}

// conditional is an update with these risks.
func conditional(version string, risks ...configv1.ConditionalUpdateRisk) configv1.ConditionalUpdate {
	return configv1.ConditionalUpdate{
		Release: configv1.Release{Version: version, Image: "example.com/release@sha256:" + version},
		Risks:   risks,
	}
}

// recommended sets the condition Recommended of an update.
func recommended(update configv1.ConditionalUpdate, status metav1.ConditionStatus, reason, message string) configv1.ConditionalUpdate {
	update.Conditions = []metav1.Condition{condition("Recommended", status, reason, message)}
	return update
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
}

// promql is a risk with one query.
func promql(name, query string) configv1.ConditionalUpdateRisk {
	return ruled(name, rule(query))
}

func ruled(name string, rules ...configv1.ClusterCondition) configv1.ConditionalUpdateRisk {
	return configv1.ConditionalUpdateRisk{
		Name: name, URL: "https://example.com/" + name, Message: name + " breaks things.", MatchingRules: rules,
	}
}

func rule(query string) configv1.ClusterCondition {
	return configv1.ClusterCondition{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: query}}
}

func always() configv1.ClusterCondition { return configv1.ClusterCondition{Type: "Always"} }

// query is a check with its target and options.
type query struct {
	check, to string
	options   risk.Options
}

// run runs a check on one target.
func run(t *testing.T, on checktest.Server, client *monitoring.Client, check, to string) []finding.Finding {
	t.Helper()
	return runWith(t, on, client, query{check: check, to: to})
}

func runWith(t *testing.T, on checktest.Server, client *monitoring.Client, q query) []finding.Finding {
	t.Helper()
	for _, c := range risk.Checks(client, q.options) {
		if c.Name == q.check {
			return checktest.Run(t, c, on.Snapshot(t), checktest.Update(t, from, q.to))
		}
	}
	t.Fatalf("there is no check %s", q.check)
	return nil
}

const recommendedUpdate = "ClusterVersionRecommendedUpdate"
