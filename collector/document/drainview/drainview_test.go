package drainview_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/drainview"
	"github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/golden"
)

func plan() drainview.Plan {
	of := func(name string) drain.Reference { return drain.Reference{Namespace: "shop", Name: name} }
	return drainview.Plan{ToolVersion: "v0.1.0", Plan: draining.Plan{
		APIVersion: report.APIVersion, Kind: draining.Kind, Time: "2026-11-25T08:00:00Z", Outcome: drain.Sticks,
		Rehearsal: drain.Rehearsal{
			Pools: []drain.Pool{
				{Name: "master", Outcome: drain.Clear, Nodes: []drain.Node{
					{Name: "m0", Evicted: 20, Kept: 30},
					{Name: "m1", Step: 1, Evicted: 21, Kept: 30, Waits: 2, GraceSeconds: 600},
				}},
				{Name: "infra", Outcome: drain.Blocked, Why: "1 of its nodes may be unavailable, and these are: i0", Waiting: 1},
				{Name: "gpu", Outcome: drain.Undetermined, Why: "Strimzi: is restarted", Stuck: []drain.Node{{Name: "g0", Obstacles: []drain.Obstacle{
					{Pod: of("kafka-0"), Outcome: eviction.Unknown, Cause: drain.Operator, By: "an operator owns the pod or its budget"},
				}}}},
				{Name: "worker", Outcome: drain.Sticks, Waiting: 3, Nodes: []drain.Node{
					{Name: "ip-10-0-0-23.eu-west-1.compute.internal", Evicted: 5},
					{Name: "ip-10-0-1-23.eu-west-1.compute.internal", Step: 1},
					{Name: "ip-10-0-2-23.eu-west-1.compute.internal", Step: 2},
				}, Stuck: []drain.Node{{Name: "w1", Step: 1, Evicted: 7, Kept: 2, Obstacles: []drain.Obstacle{
					{
						Pod: of("cart-1"), Outcome: eviction.WaitsFor, Cause: eviction.TooFewHealthy, Budgets: []drain.Reference{of("cart")},
						Behind: []drain.Pending{{Pod: of("cart-0"), Why: "2 nodes without the requested resources"}},
					},
					{Pod: of("db-0"), Outcome: eviction.Never, Cause: eviction.RequiresAll, Budgets: []drain.Reference{of("db")}},
				}}}},
			},
			Pending: []drain.Pending{
				{Pod: of("cart-0"), Why: "2 nodes without the requested resources"},
				{Pod: of("web-3"), Why: "3 nodes tainted", Uncertain: true},
			},
			Lost:        []drain.Lost{{Pod: of("debug"), Node: "w0", Why: "has no controller"}},
			Interrupted: []drain.Interruption{{Service: of("cart"), Nodes: []string{"w0", "w1"}, Replicas: 1}},
			Graces:      []drain.Grace{{Pod: of("batch-0"), Node: "w0", Seconds: 86400}},
		},
		Skipped: []order.Skipped{
			{Node: "i0", Pool: "infra", Why: order.Unavailable, State: order.Cordoned},
			{Node: "p0", Pool: "paused", Why: order.Paused},
		},
		Unread: []string{"could not list the PersistentVolumes: forbidden"},
		Findings: []finding.Finding{
			finding.Fail(check.ReasonAsExpected, "PodDisruptionBudget \"db\" allows no eviction").Named("PodDisruptionBudget-shop.db").Remedy(
				"Allow one pod to be unavailable.").From(finding.SourceHealth),
		},
	}}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]drainview.Plan{"plan.txt": plan(), "clear.txt": {Plan: draining.Plan{
		Outcome:   drain.Clear,
		Rehearsal: drain.Rehearsal{Pools: []drain.Pool{{Name: "worker", Outcome: drain.Clear}}},
	}}} {
		var written bytes.Buffer
		if err := text.Write(&written, of.Document(document.View{}).Complete("", document.View{}), text.Style{}); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+name, written.Bytes())
	}
	encoded, err := json.MarshalIndent(plan(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/plan.json", append(encoded, '\n'))
}
