package draining_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health/draining"
)

func of(name string) drain.Reference { return drain.Reference{Namespace: "shop", Name: name} }

// obstacle is a pod of budget cart on node w0.
func obstacle(pod string, outcome eviction.Outcome, cause eviction.Cause) drain.Obstacle {
	return drain.Obstacle{Pod: of(pod), Node: "w0", Outcome: outcome, Cause: cause, Budgets: []drain.Reference{of("cart")}}
}

func pool(outcome drain.Outcome, obstacles ...drain.Obstacle) []drain.Pool {
	found := drain.Pool{Name: "worker", Outcome: outcome}
	if len(obstacles) > 0 {
		found.Stuck = []drain.Node{{Name: "w0", Obstacles: obstacles}}
	}
	return []drain.Pool{found}
}

// TestSentences states each outcome, cause and reason, also one that is not known, in complete sentences.
func TestSentences(t *testing.T) {
	t.Parallel()
	incomplete := regexp.MustCompile(`: *[:;)]|\(\)|""|[:;,(] *$|  |which *[:;,]|which *$`)
	causes := []eviction.Cause{
		eviction.NotAsked, eviction.NoBudget, eviction.Allowed, eviction.Unhealthy, eviction.SeveralBudgets, eviction.StaleBudget,
		eviction.NegativeBudget, eviction.TooManyDisrupted,
		eviction.SyncFailed, eviction.RequiresAll, eviction.Unmanaged, eviction.TooFewHealthy, drain.Terminating, drain.Admission, drain.Operator,
		"",
	}
	outcomes := []eviction.Outcome{eviction.WaitsFor, eviction.Never, eviction.Refused, eviction.Unknown}
	for _, cause := range causes {
		for _, outcome := range outcomes {
			for _, why := range []string{"", `Database.db.example.com "db" owns the pod`} {
				for _, budgets := range [][]drain.Reference{nil, {of("cart")}, {of("cart"), of("all")}} {
					stuck := drain.Obstacle{
						Pod: of("cart-0"), Node: "w0", Outcome: outcome, Cause: cause, By: why, Budgets: budgets,
						Behind: []drain.Pending{{Pod: of("cart-1"), Why: why}},
					}
					pools := append(pool(drain.Sticks, stuck), pool(drain.Undetermined, stuck)...)
					pools = append(pools, pool(drain.Blocked)...)
					for i := range pools {
						pools[i].Why = why
					}
					found := draining.Evaluate(gap.Proven("a test"), drain.Rehearsal{
						Pools:   pools,
						Pending: []drain.Pending{{Pod: of("new"), Node: "w1", Why: why}}, Lost: []drain.Lost{{Pod: of("debug"), Node: "w0", Why: why}},
					}, nil)
					for _, each := range found {
						if incomplete.MatchString(each.Message) {
							t.Errorf("%s %s by %q with %d budgets: %q is not complete", outcome, cause, why, len(budgets), each.Message)
						}
					}
				}
			}
		}
	}
}

// reviewedPod is a pod on which a webhook decides.
func reviewedPod(namespace, pod string) drain.Obstacle {
	return drain.Obstacle{
		Pod: drain.Reference{Namespace: namespace, Name: pod}, Node: "w0", Outcome: eviction.Unknown, Cause: drain.Admission,
		Budgets: []drain.Reference{of(pod)},
		By:      `the response of webhook "guard.example.com" is unknown`, Reviewer: "guard.example.com",
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	operated := obstacle("db-0", eviction.Unknown, drain.Operator)
	operated.By, operated.Remedy = "CloudNativePG: the pod is the only ready instance of its Cluster", "Give the Cluster more instances."
	for name, tc := range map[string]struct {
		reason    string
		rehearsal drain.Rehearsal
		want      string // names, outcomes and reasons
		message   string // a part of the first one
	}{
		"Clear": {reason: "all drains end", rehearsal: drain.Rehearsal{Pools: pool(drain.Clear)}, want: " Pass AsExpected"},
		"Never": {
			reason: "a budget requires all of its pods: one finding for both", want: "PodDisruptionBudget-shop.cart Fail NeverSatisfied",
			message: "cart-0 on w0, cart-1 on w0",
			rehearsal: drain.Rehearsal{
				Never: []drain.Obstacle{
					obstacle("cart-0", eviction.Never, eviction.RequiresAll),
					obstacle("cart-1", eviction.Never, eviction.RequiresAll),
				},
				Pools: pool(drain.Sticks, obstacle("cart-0", eviction.Never, eviction.RequiresAll)),
			},
		},
		"Several": {
			reason: "two budgets select the pod", want: "PodDisruptionBudgets-shop.cart Fail SeveralBudgets",
			rehearsal: drain.Rehearsal{
				Never: []drain.Obstacle{obstacle("cart-0", eviction.Never, eviction.SeveralBudgets)},
				Pools: pool(drain.Sticks),
			},
		},
		"Waits": {
			reason: "nothing in the rehearsal frees the budget", want: "PodDisruptionBudget-shop.cart Fail NotSatisfiedInRehearsal",
			rehearsal: drain.Rehearsal{Pools: pool(drain.Sticks, obstacle("cart-0", eviction.WaitsFor, eviction.TooFewHealthy))},
		},
		"Operator": {
			reason: "an operator decides: never a block, and never a pass", want: "DrainOperator-shop.cart Unknown OperatorMovesPods",
			message:   "CloudNativePG",
			rehearsal: drain.Rehearsal{Pools: pool(drain.Undetermined, operated)},
		},
		"OperatorWithoutBudget": {
			reason: "the name is that of the controller, since the pods of a machine have other names each time",
			want:   "DrainOperator-shop.vm Fail OperatorMovesPods",
			rehearsal: drain.Rehearsal{Never: []drain.Obstacle{{
				Pod: of("virt-launcher-vm-x7k2p"), Node: "w0", Outcome: eviction.Never,
				Cause: drain.Operator, By: "KubeVirt: the machine must be migrated", Controller: "vm",
			}}},
		},
		"Admission": {
			reason: "a webhook decides on the pods of all namespaces: one finding of its name",
			want:   "DrainAdmission-guard.example.com Unknown EvictionRefused", message: "2 pods: shop/cart-0 on w0, bank/account-0 on w0",
			rehearsal: drain.Rehearsal{Pools: pool(drain.Undetermined, reviewedPod("shop", "cart-0"), reviewedPod("bank", "account-0"))},
		},
		"AdmissionUnread": {
			reason: "which webhooks decide is not known", want: "DrainAdmission Unknown EvictionRefused", message: "Services could not be read",
			rehearsal: drain.Rehearsal{Pools: pool(drain.Undetermined,
				drain.Obstacle{Pod: of("cart-0"), Node: "w0", Outcome: eviction.Unknown, Cause: drain.Admission, By: "Services could not be read"})},
		},
		"Undetermined": {
			reason: "the scheduler decides", want: "DrainPool-worker Unknown NotSatisfiedInRehearsal",
			rehearsal: drain.Rehearsal{Pools: pool(drain.Undetermined, obstacle("cart-0", eviction.WaitsFor, eviction.TooFewHealthy))},
		},
		"BeingUpdated": {
			reason: "a node that is being updated returns by itself: never a block", want: "DrainPool-worker Unknown NodeBeingUpdated",
			message: "no other node is drained while these are being updated: w0",
			rehearsal: drain.Rehearsal{Pools: []drain.Pool{{
				Name: "worker", Outcome: drain.Undetermined,
				Why: "no other node is drained while these are being updated: w0",
			}}},
		},
		"Blocked": {
			reason: "a cordoned node stops the pool: the node fails NodeHealth", want: "DrainPool-worker Warn PoolNotUpdated",
			rehearsal: drain.Rehearsal{Pools: pool(drain.Blocked)},
		},
		"Warnings": {
			reason: "what a drain interrupts or loses is one warning each",
			want: "DrainPending Warn NoNodeAfterDrain, DrainLost Warn NotRecreated, DrainGracePeriods Warn LongGracePeriod, DrainDelays " +
				"Warn NoOtherNodeInZone, DrainInterrupts Warn ServiceInterrupted",
			message: `shop/cart-0 (ResourceQuota "compute" refuses it)`,
			rehearsal: drain.Rehearsal{
				Pools: pool(drain.Clear), Pending: []drain.Pending{{Pod: of("new"), Why: "it has no node now"}, {
					Pod: of("cart-1"), Node: "w1",
					Why: "no room", Uncertain: true,
				}, {Pod: of("cart-0"), Node: "w0", Why: `ResourceQuota "compute" refuses it`}},
				Lost:   []drain.Lost{{Pod: of("debug"), Node: "w0", Why: "has no controller"}},
				Graces: []drain.Grace{{Pod: of("batch"), Node: "w0", Seconds: 86400}},
				Delayed: []drain.Pending{
					{Pod: of("db-0"), Node: "w0", Why: "2 nodes out of reach of a volume"},
					{Pod: drain.Reference{Namespace: "openshift-monitoring", Name: "prometheus-k8s-0"}, Node: "w0"},
				},
				Interrupted: []drain.Interruption{{Service: of("cart"), Nodes: []string{"w0"}, Replicas: 1}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findings := draining.Evaluate(gap.Proven("a test"), tc.rehearsal, nil)
			var got []string
			for _, f := range findings {
				got = append(got, strings.Join([]string{f.Name, string(f.Outcome), f.Reason}, " "))
				if strings.Contains(f.Remediation, "patch poddisruptionbudget") && strings.Contains(f.Name, "Operator") {
					t.Errorf("%s: the remedy edits the budget of an operator: %s", tc.reason, f.Remediation)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: %q is not in %q", tc.reason, tc.message, findings[0].Message)
			}
		})
	}
}
