package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/test/prometheus"
)

// risk is a risk that applies where the query is 1.
func risk(name, query string) configv1.ConditionalUpdateRisk {
	return configv1.ConditionalUpdateRisk{
		Name: name, URL: "https://example.com/" + name, Message: name + " breaks things.",
		MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: query}}},
	}
}

// state has something to find for checks of each kind.
func state() []runtime.Object {
	version := checktest.At("4.18.3", "4.17.9")
	version.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
		Release:    configv1.Release{Version: "4.19.0", Image: checktest.PullSpec("4.19.0")},
		Risks:      []configv1.ConditionalUpdateRisk{risk("Applies", "vector(1)"), risk("DoesNotApply", "vector(0)")},
		Conditions: []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionFalse, Reason: "Risk", LastTransitionTime: metav1.Now()}},
	}}
	degraded := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}, Status: configv1.ClusterOperatorStatus{
		Conditions: []configv1.ClusterOperatorStatusCondition{{
			Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue, Reason: "Members",
			Message: "node-a.corp.test at 10.0.0.9 is not healthy", LastTransitionTime: metav1.Now(),
		}},
	}}
	objects := []runtime.Object{
		version, degraded, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"},
			Data:       map[string]string{"ack-4.18-x-in-4.19": "x is removed."},
		},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", Generation: 1},
			Status: policyv1.PodDisruptionBudgetStatus{
				ObservedGeneration: 1, ExpectedPods: 1, DesiredHealthy: 1, CurrentHealthy: 1,
			},
		},
	}
	for _, name := range []string{"node-a.corp.test", "node-b.corp.test"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.29.1"},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.9"}},
		}})
	}
	return objects
}

// TestLiveIsArchive holds that every check reports of an archive of the cluster what it reports of
// the cluster itself, and without the names of the cluster for the same reasons.
func TestLiveIsArchive(t *testing.T) {
	server.Create(t, state()...)
	api, err := cluster.Connect(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	p := prometheus.Run(t, prometheus.Rule{
		Alert: "ClusterDown", Expr: "vector(1)",
		Labels: map[string]string{"severity": "critical", "node": "node-a.corp.test"},
	})
	find := func(context.Context) (*rest.Config, error) { return &rest.Config{Host: p.URL}, nil }
	live, subject := findings(t, api, find, time.Now())
	for _, f := range live {
		if f.Reason == "NotInArchive" {
			t.Errorf("the cluster is no archive: %+v", f)
		}
	}
	for _, redact := range []bool{false, true} {
		t.Run(fmt.Sprintf("Redact=%t", redact), func(t *testing.T) {
			reached := gathered(t, api, find, redact)
			of := monitoring.Querier{Config: reached.Config(), Dynamic: reached.Dynamic}
			got, _ := findings(t, reached, of.Find, subject.Now)
			if redact {
				if diff := cmp.Diff(reasons(live), reasons(got)); diff != "" {
					t.Errorf("-cluster, +archive:\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(live, got); diff != "" {
				t.Errorf("-cluster, +archive:\n%s", diff)
			}
		})
	}
}

// gathered is the cluster of an archive with what all checks read.
func gathered(t *testing.T, api *cluster.Cluster, find monitoring.Finder, redact bool) *cluster.Cluster {
	t.Helper()
	path := filepath.Join(t.TempDir(), "collection.tar.gz")
	for _, missing := range collect(t, api, find, path, redact) {
		t.Errorf("missing: %s", missing)
	}
	opened, err := archive.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	reached, err := cluster.Connect(opened.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return reached
}

// collect makes an archive with what all checks read, and returns what it misses.
func collect(t *testing.T, api *cluster.Cluster, find monitoring.Finder, path string, redact bool) []gap.Gap {
	t.Helper()
	into, err := writing.Create(path, api.Now())
	if err != nil {
		t.Fatal(err)
	}
	needs := builtin.Needs()
	made, err := gathering.Gather(t.Context(), api, gathering.Options{
		Reads: slices.Concat(needs.Required, needs.Optional), Monitoring: monitoring.New(find, monitoring.DefaultTimeout), Redact: redact,
		Step: func(string) {},
	}, into)
	if err == nil {
		_, err = into.Commit()
	}
	if err := errors.Join(err, into.Close()); err != nil {
		t.Fatal(err)
	}
	return made.Missing
}

// findings are those of all checks before an update.
func findings(t *testing.T, api *cluster.Cluster, find monitoring.Finder, now time.Time) ([]finding.Finding, check.Subject) {
	t.Helper()
	subject := check.Subject{Cluster: snapshot.Of(api), Update: checktest.MinorUpdate(t, "", ""), Now: now}
	checks := builtin.Checks(scene.Judgement{Monitoring: monitoring.New(find, monitoring.DefaultTimeout)})
	return collector.Collect(t.Context(), collector.Bind(subject, checks), func(collector.Source, []finding.Finding) {}).Findings, subject
}

func reasons(findings []finding.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, string(f.Outcome)+" "+f.Reason)
	}
	slices.Sort(all)
	return all
}
