// Package draining answers: which drains of this update would hang, and what do they interrupt?
//
// [Check] is the built-in check: it rehearses the drains (package drain), and returns a finding for each cause.
// [Rehearse] returns the whole rehearsal, for the command.
package draining

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxNamed bounds the pods that a message names; all are objects of the finding.
const maxNamed = 5

// evaluate returns the findings of the rehearsal of an update. Only a drain that hangs blocks.
func evaluate(read gap.Extent, rehearsal drain.Rehearsal, drained []order.Pool) []finding.Finding {
	pools := poolsOf(drained)
	findings := obstacles(rehearsal, pools)
	for i := range rehearsal.Pools {
		pool := &rehearsal.Pools[i]
		if pool.Unreached > 0 {
			findings = append(findings, finding.Unknown(reasonNotRehearsed, "%s of %s %q were not rehearsed: the effects of their "+
				"drains are unknown",
				words.Count(pool.Unreached, "node"), pools.kind(pool.Name), pool.Name).Named(finding.NameOf(nameUnrehearsed, pool.Name)))
		}
		switch {
		case pool.Outcome == drain.Blocked:
			// The nodes themselves fail the check NodeHealth.
			findings = append(findings, pools.about(pool.Name,
				finding.Warn(reasonPoolBlocked, "%s %q updates no node%s", pools.kind(pool.Name), pool.Name, since(pool.Why)).
					Named(finding.NameOf(namePool, pool.Name))).Do(finding.Read("oc get nodes")))
		case pool.Outcome == drain.Undetermined && len(pool.Stuck) == 0:
			findings = append(findings, pools.about(pool.Name, finding.Unknown(reasonPoolUpdating,
				"it is unknown whether all nodes of %s %q can be drained%s", pools.kind(pool.Name), pool.Name, since(pool.Why)).
				Named(finding.NameOf(namePool, pool.Name))).Do(finding.Read("oc get nodes")))
		case pool.Outcome == drain.Undetermined && !inconclusive(pool):
			findings = append(findings, undetermined(pool, pools))
		}
	}
	drafts := finding.Drafts(findings...)
	warnings := append(warnings(rehearsal), together(rehearsal, drained)...)
	if len(drafts)+len(warnings) == 0 {
		if len(rehearsal.Pools) == 0 {
			return []finding.Finding{finding.Pass(read, check.ReasonAsExpected, "no node is drained")}
		}
		return []finding.Finding{finding.Pass(read, check.ReasonAsExpected, "all nodes of %s can be drained",
			words.Count(len(rehearsal.Pools), pools.kind(rehearsal.Pools[0].Name)))}
	}
	return append(finding.Bounded(drafts), warnings...)
}

// inconclusive reports whether a finding about an obstacle of the pool is Unknown anyway.
func inconclusive(pool *drain.Pool) bool {
	for _, node := range pool.Stuck {
		for _, obstacle := range node.Obstacles {
			if obstacle.Outcome == eviction.Unknown {
				return true
			}
		}
	}
	return false
}

func undetermined(pool *drain.Pool, pools pools) finding.Finding {
	var nodes []string
	for _, node := range pool.Stuck {
		nodes = append(nodes, node.Name)
	}
	outcome := preflight.Unknown
	if pools.limit(nodes[0]) != 0 {
		outcome = preflight.Warn
	}
	return finding.New(outcome, reasonNotSatisfied, "it is unknown whether the drains of %s %q complete, such as on %s%s",
		pools.kind(pool.Name), pool.Name, words.List(nodes, maxNamed), since(pool.Why)).
		Named(finding.NameOf(namePool, pool.Name)).
		Remedy("%s", room(pool.Why)).
		Do(finding.Read("oc describe nodes"))
}

// lacksRoom is true where the scheduler names a resource that is used up, or nothing.
func lacksRoom(why string) bool {
	return why == "" || strings.Contains(why, "Insufficient") || strings.Contains(why, "Too many pods")
}

// room is the remedy for pods without a node, by what the scheduler says of the nodes.
func room(why string) string {
	if lacksRoom(why) {
		return "Make room for the pods of one more node, then run the preflight again."
	}
	return "Change what keeps the pods off the other nodes, which the message names, then run the preflight again."
}

// cause is the common cause of several obstacles.
type cause struct {
	eviction.Cause

	// namespace is empty for a webhook or a policy, which decides on the pods of several.
	namespace, of string
	// limit is after what time the node is deleted nevertheless; 0 for never.
	limit time.Duration
	// behind is true for what keeps a drain only once other obstacles are removed.
	behind bool
}

// obstacles are the pods that cannot be evicted, by cause.
func obstacles(rehearsal drain.Rehearsal, pools pools) []finding.Finding {
	var order []cause
	grouped := map[cause][]drain.Obstacle{}
	known := map[drain.Reference]bool{}
	add := func(obstacle drain.Obstacle, behind bool) {
		if known[obstacle.Pod] {
			return
		}
		known[obstacle.Pod] = true
		key := cause{obstacle.Cause, obstacle.Pod.Namespace, obstacle.By, pools.limit(obstacle.Node), behind}
		switch {
		case obstacle.Cause == drain.Admission:
			key.namespace = ""
		case len(obstacle.Budgets) > 0:
			key.of = obstacle.Budgets[0].Name
		}
		if grouped[key] == nil {
			order = append(order, key)
		}
		grouped[key] = append(grouped[key], obstacle)
	}
	for _, obstacle := range rehearsal.Never {
		add(obstacle, false)
	}
	for i := range rehearsal.Pools {
		for _, obstacle := range stuckBy(&rehearsal.Pools[i]) {
			add(obstacle, false)
		}
	}
	for _, obstacle := range rehearsal.Behind {
		add(obstacle, true)
	}
	findings := make([]finding.Finding, 0, len(order))
	for _, key := range order {
		findings = append(findings, describe(key, grouped[key]))
	}
	return findings
}

// stuckBy are the pods that keep the drains of a pool from ending, or of which that is unknown.
func stuckBy(pool *drain.Pool) []drain.Obstacle {
	var found []drain.Obstacle
	for _, node := range pool.Stuck {
		for _, obstacle := range node.Obstacles {
			if pool.Outcome == drain.Sticks || obstacle.Outcome == eviction.Unknown {
				found = append(found, obstacle)
			}
		}
	}
	return found
}

func describe(of cause, pods []drain.Obstacle) finding.Finding {
	first := pods[0]
	outcome := preflight.Fail
	switch {
	case of.limit != 0:
		outcome = preflight.Warn
	case first.Outcome == eviction.Unknown:
		outcome = preflight.Unknown
	}
	var names []string
	var objects []finding.Object
	for _, budget := range first.Budgets {
		objects = append(objects, finding.Object{
			APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget",
			Namespace: budget.Namespace, Name: budget.Name,
		})
	}
	for _, pod := range pods {
		name := pod.Pod.Name
		if of.namespace == "" {
			name = pod.Pod.String()
		}
		names = append(names, fmt.Sprintf("%s on %s", name, pod.Node))
		objects = append(objects, finding.Object{APIVersion: "v1", Kind: "Pod", Namespace: pod.Pod.Namespace, Name: pod.Pod.Name})
	}
	where, inspect := "", finding.Read(
		"oc get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicybindings")
	if of.namespace != "" {
		where, inspect = fmt.Sprintf(" in namespace %q", of.namespace),
			finding.Read("oc -n %s get poddisruptionbudgets,pods -o wide", of.namespace)
	}
	text := fmt.Sprintf("%s%s: %s", clause(first, len(pods)), where, words.List(names, maxNamed))
	if len(first.Behind) > 0 {
		pending := first.Behind[0]
		text += fmt.Sprintf("; pod %q of the same budget has no node%s", pending.Pod.Name, since(pending.Why))
	}
	if of.behind {
		text += "; the drains reach it once other obstacles are removed or accepted"
	}
	if of.limit != 0 {
		text += fmt.Sprintf("; after %s the NodePool deletes the node, and its pods with it (nodeDrainTimeout)", of.limit)
	}
	found := finding.New(outcome, reasonOf(of.Cause), "%s", text).Named(nameOf(of, first)).About(objects...)
	remedy, actions := remedyOf(of, first)
	if remedy != "" {
		found = found.Remedy("%s", remedy)
	}
	return found.Do(append(actions, inspect)...)
}

// remedyOf returns the remedy if the reason's remedy does not fit, and the command to apply it. If a program
// restores a budget, its settings must be changed: a change of the budget does not last.
func remedyOf(of cause, first drain.Obstacle) (string, []finding.Action) {
	if first.Remedy != "" {
		return first.Remedy, nil
	}
	if len(first.Behind) > 0 && !lacksRoom(first.Behind[0].Why) {
		return fmt.Sprintf("Change what keeps pod %q off the other nodes: the message names it.", first.Behind[0].Pod.Name), nil
	}
	if of.Cause != eviction.RequiresAll && of.Cause != eviction.Unmanaged {
		return "", nil
	}
	switch {
	case first.Manager != "":
		return fmt.Sprintf("Change the settings of %s, which restores PodDisruptionBudget %q, so that one of the pods may be unavailable.",
			first.Manager, of.of), nil
	case check.OfCluster(of.namespace):
		return fmt.Sprintf("Check the operator of namespace %s, which restores PodDisruptionBudget %q: it must allow one of the pods "+
				"to be unavailable.", of.namespace, of.of),
			[]finding.Action{finding.Read("oc get clusteroperators")}
	}
	if of.Cause == eviction.Unmanaged { // how many pods have to stay, its owner decides
		return "", nil
	}
	return "", []finding.Action{finding.Change(
		`oc -n %s patch poddisruptionbudget %s --type merge --patch {"spec":{"maxUnavailable":1,"minAvailable":null}}`, of.namespace, of.of)}
}

// clause describes what keeps pods on their nodes.
func clause(first drain.Obstacle, pods int) string {
	subject := words.Count(pods, "pod")
	var budgets []string
	for _, budget := range first.Budgets {
		budgets = append(budgets, budget.Name)
	}
	by := strings.Join(budgets, ", ")
	switch first.Cause { //nolint:exhaustive // the other causes share the text below
	case drain.Operator:
		return fmt.Sprintf("an operator decides about the eviction%s: %s", because(first.By), subject)
	case drain.Admission:
		return fmt.Sprintf("admission decides about the eviction%s: %s", because(first.By), subject)
	case drain.Terminating:
		if first.Outcome == eviction.Unknown {
			return fmt.Sprintf("the API server grants the eviction, and %s may keep the pod: %s", cmp.Or(first.By, "a finalizer"), subject)
		}
		return fmt.Sprintf("a deletion hangs%s: %s", because(first.By), subject)
	}
	switch {
	case by == "":
		return fmt.Sprintf("the eviction is rejected%s: %s", because(string(first.Cause)), subject)
	case first.Cause == eviction.SeveralBudgets:
		return fmt.Sprintf("the PodDisruptionBudgets %s select the same pods, and the API server evicts no pod with several budgets: %s", by,
			subject)
	case first.Cause == eviction.TooFewHealthy:
		return fmt.Sprintf("too few pods of PodDisruptionBudget %q are healthy, and no drain of this update changes that: %s", by, subject)
	}
	return fmt.Sprintf("PodDisruptionBudget %q allows no eviction%s: %s", by, because(string(first.Cause)), subject)
}

// since is a reason after a colon; empty without one.
func since(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// because is a reason in parentheses; empty without one.
func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// nameOf returns the name of a finding: the name of the budget, or of what else keeps the pods. A pod's name
// changes with a rollout, and so would the name of the finding, which an acceptance uses.
func nameOf(of cause, first drain.Obstacle) string {
	switch {
	case of.Cause == drain.Admission && first.Reviewer == "":
		return nameAdmission
	case of.Cause == drain.Admission:
		return finding.NameOf(nameAdmission, first.Reviewer)
	case of.Cause == drain.Operator && len(first.Budgets) > 0:
		return finding.NameOf(nameOperator, of.namespace+"."+of.of)
	case of.Cause == drain.Operator:
		return finding.NameOf(nameOperator, of.namespace+"."+cmp.Or(first.Controller, first.Pod.Name))
	case of.Cause == eviction.SeveralBudgets:
		return finding.NameOf(nameBudgets, of.namespace+"."+of.of)
	case len(first.Budgets) > 0:
		return finding.NameOf(nameBudget, of.namespace+"."+of.of)
	}
	return finding.NameOf(namePod, of.namespace+"."+first.Pod.Name)
}
