package health

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonSingleNode finding.Reason = "SingleNode"

// Drain looks for what keeps a node from being drained, as every update that
// reboots nodes does, patches too: PodDisruptionBudgets by which no pod can be
// evicted, ever or now, a finding PodDisruptionBudget-<namespace>.<name> for
// each, and pods that several budgets select,
// PodDisruptionBudgets-<namespace>.<first of them>. Budgets that are fine are
// counted, not listed, whoever they belong to. A cluster of a single node is
// not drained (machine-config-operator pkg/daemon, drainRequired).
func Drain() check.Check {
	return check.Check{
		Name: "Drain", Kind: finding.SourceHealth,
		Reads: []access.Request{check.Get("config.openshift.io", "infrastructures", "", "cluster"), check.List("", "nodes"), check.List("policy", "poddisruptionbudgets"), check.List("", "pods")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			infrastructure, topologyErr := s.Cluster.Infrastructure(ctx)
			switch {
			case topologyErr == nil && infrastructure.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode:
				return []finding.Finding{finding.Skipped(ReasonSingleNode, "the control plane is a single node, and such a cluster is updated without draining nodes")}, nil
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
	var problems []problem
	var unused []*policyv1.PodDisruptionBudget
	for i := range budgets {
		budget := &budgets[i]
		switch state := stateOf(budget); {
		case state == selectsNothing && !ofOpenShift(budget.Namespace):
			unused = append(unused, budget)
		case state != letsGo && state != selectsNothing:
			problems = append(problems, problem{state.outcome(), func() finding.Finding { return describeBudget(budget, state) }})
		}
	}
	for _, contention := range contentions {
		problems = append(problems, problem{preflight.Fail, func() finding.Finding { return describeContention(contention) }})
	}
	if len(problems) == 0 {
		problems = append(problems, problem{preflight.Pass, func() finding.Finding {
			return finding.Finding{Finding: preflight.Finding{
				Reason:  "AsExpected",
				Message: fmt.Sprintf("none of %d PodDisruptionBudgets keeps all of its pods from being evicted", len(budgets)),
			}}
		}})
	}
	findings := told(problems)
	if len(unused) > 0 {
		findings = append(findings, describeUnused(unused))
	}
	return findings
}

// describeContention says why pods cannot be evicted that several budgets
// select (kubernetes pkg/registry/core/pod/storage/eviction.go).
func describeContention(contention snapshot.Contention) finding.Finding {
	f := finding.Finding{Finding: preflight.Finding{
		Name:   "PodDisruptionBudgets-" + contention.Namespace + "." + contention.Budgets[0],
		Reason: "SeveralBudgets",
		Message: fmt.Sprintf("the PodDisruptionBudgets %s in namespace %q select the same pods, %d of them, such as %q, and the API server evicts no pod that has several",
			someOf(contention.Budgets, len(contention.Budgets)), contention.Namespace, contention.Pods, contention.Pod),
		Remediation: fmt.Sprintf("Leave each pod to one of them: oc -n %s get poddisruptionbudgets -o wide; oc -n %s get pod %s --show-labels",
			contention.Namespace, contention.Namespace, contention.Pod),
	}}
	for _, name := range contention.Budgets {
		f.Objects = append(f.Objects, budgetObject(contention.Namespace, name))
	}
	return f
}

// describeUnused tells of budgets without pods. They keep nobody from anything;
// most likely that is not what somebody meant.
func describeUnused(unused []*policyv1.PodDisruptionBudget) finding.Finding {
	f := finding.Finding{Finding: preflight.Finding{
		Name:        "PodDisruptionBudgetsUnused",
		Outcome:     preflight.Warn,
		Reason:      "SelectsNothing",
		Remediation: "See whether their selectors are right, or their workloads scaled to none: oc get poddisruptionbudgets --all-namespaces",
	}}
	var named []string
	for _, budget := range unused[:min(len(unused), maxNamed)] {
		named = append(named, budget.Namespace+"/"+budget.Name)
		f.Objects = append(f.Objects, budgetObject(budget.Namespace, budget.Name))
	}
	f.Message = fmt.Sprintf("PodDisruptionBudgets that select no pods protect nothing, and do not stand in the way; there are %d: %s",
		len(unused), someOf(named, len(unused)))
	return f
}

func budgetObject(namespace, name string) preflight.Object {
	return preflight.Object{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget", Namespace: namespace, Name: name}
}
