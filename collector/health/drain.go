package health

import (
	"context"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	unusedBudgetsName = finding.NewName("PodDisruptionBudgetsUnused",
		"The finding about PodDisruptionBudgets that select no pods.")

	nameBudgets = finding.NewName("PodDisruptionBudgets",
		"A finding of the check Drain about pods that several PodDisruptionBudgets select, which cannot be "+
			"evicted: PodDisruptionBudgets-<namespace>.<first budget>.")

	nameDrain = finding.NewName("Drain",
		"The check for what prevents a node from being drained, which every update that reboots nodes requires, "+
			"patch updates too: PodDisruptionBudgets that allow no eviction, ever or now, a finding "+
			"PodDisruptionBudget-<namespace>.<name> for each, and pods that several budgets select, a finding "+
			"PodDisruptionBudgets-<namespace>.<first budget>. A cluster with a single node is not drained "+
			"(machine-config-operator pkg/daemon, drainRequired).")

	reasonSingleNode = finding.NewReason("SingleNode", finding.Explanation{
		Meaning: "Reported on a cluster with a single node, which is updated without a drain.",
		Cause:   "Status.controlPlaneTopology of the Infrastructure \"cluster\" is SingleReplica.",
	})
	reasonSeveralBudgets = finding.NewReason("SeveralBudgets", finding.Explanation{
		Meaning: "Reported when several PodDisruptionBudgets select the same pods, which therefore cannot be evicted.",
		Cause:   "The selectors of the budgets overlap.",
		Remedy:  "Let only one of the budgets select each pod.",
		Command: "oc -n NAMESPACE get poddisruptionbudgets -o wide",
	})
)

// Drain is the check Drain.
func Drain() check.Check {
	return check.Check{
		Name: nameDrain, Kind: finding.SourceHealth,
		Reads: append(check.ReadsTopology(), check.List(policyv1.GroupName, "poddisruptionbudgets"), check.List("", "pods")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			infrastructure, topologyErr := s.Cluster.Infrastructure(ctx)
			switch {
			case topologyErr == nil && infrastructure.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode:
				return []finding.Finding{finding.Skipped(reasonSingleNode, "the control plane is a single node, and such a cluster is updated without a drain")}, nil
			case apierrors.IsNotFound(topologyErr):
				topologyErr = nil
			case topologyErr != nil:
				topologyErr = fmt.Errorf("could not read the Infrastructure \"cluster\": %w", topologyErr)
			}
			budgets, err := s.Cluster.PodDisruptionBudgets(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the PodDisruptionBudgets: %w", err)
			}
			contentions, err := s.Cluster.Contentions(ctx)
			return judgeDrain(budgets, contentions), errors.Join(topologyErr, err)
		},
	}
}

func judgeDrain(budgets []policyv1.PodDisruptionBudget, contentions []snapshot.Contention) []finding.Finding {
	var drafts []finding.Draft
	var unused []*policyv1.PodDisruptionBudget
	for i := range budgets {
		budget := &budgets[i]
		switch state := stateOf(budget); {
		case state == reasonSelectsNothing && !check.OfCluster(budget.Namespace):
			unused = append(unused, budget)
		case state != evictable && state != reasonSelectsNothing:
			drafts = append(drafts, finding.Draft{Outcome: budgetOutcome(state), Describe: func() finding.Finding { return describeBudget(budget, state) }})
		}
	}
	for _, contention := range contentions {
		drafts = append(drafts, finding.Draft{Outcome: preflight.Fail, Describe: func() finding.Finding { return describeContention(contention) }})
	}
	if len(drafts) == 0 {
		drafts = finding.Drafts(finding.Pass(check.ReasonAsExpected, "none of %d PodDisruptionBudgets prevents all of its pods from being evicted", len(budgets)))
	}
	findings := finding.Bounded(drafts)
	if len(unused) > 0 {
		findings = append(findings, describeUnused(unused))
	}
	return findings
}

// describeContention is the finding of pods that several budgets select (kubernetes
// pkg/registry/core/pod/storage/eviction.go).
func describeContention(contention snapshot.Contention) finding.Finding {
	var objects []finding.Object
	for _, name := range contention.Budgets {
		objects = append(objects, budgetObject(contention.Namespace, name))
	}
	return finding.Fail(reasonSeveralBudgets,
		"the PodDisruptionBudgets %s in namespace %q select the same pods, %d of them, such as %q, and the API server does not evict a pod with several budgets",
		strings.Join(contention.Budgets, ", "), contention.Namespace, contention.Pods, contention.Pod).
		Named(nameBudgets+"-"+contention.Namespace+"."+contention.Budgets[0]).
		Do(finding.Run("oc -n %s get poddisruptionbudgets -o wide", contention.Namespace),
			finding.Run("oc -n %s get pod %s --show-labels", contention.Namespace, contention.Pod)).
		About(objects...)
}

// describeUnused warns of budgets that select no pods, most likely by mistake.
func describeUnused(unused []*policyv1.PodDisruptionBudget) finding.Finding {
	var names []string
	var objects []finding.Object
	for _, budget := range unused {
		names = append(names, budget.Namespace+"/"+budget.Name)
		objects = append(objects, budgetObject(budget.Namespace, budget.Name))
	}
	return finding.Warn(reasonSelectsNothing, "%d PodDisruptionBudgets select no pods, so they protect nothing, and do not block a drain: %s",
		len(unused), words.List(names, maxNamed)).
		Named(unusedBudgetsName).
		Remedy("Check whether their selectors are right, or their workloads scaled to zero.").
		Do(finding.Run("oc get poddisruptionbudgets --all-namespaces")).
		About(objects...)
}
