package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/graph"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/path"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/updateservice"
)

// graphSource is the update service that CVO uses, through the proxy of the cluster.
func (v view) graphSource(ctx context.Context) graphSource {
	return graphSource{
		transport: registry.Outbound(ctx, registry.Cluster{Kubernetes: v.cluster.Kubernetes, OpenShift: v.cluster.OpenShift, Dynamic: v.cluster.Dynamic}),
		own:       cmp.Or(string(v.version.Spec.Upstream), updateservice.Default), id: v.about.ID,
	}
}

// graphArchitecture is the architecture that CVO requests, unless another is named.
func (v view) graphArchitecture(ctx context.Context, named string, miss func(string, ...any)) string {
	if named != "" {
		return named
	}
	if v.version.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti {
		return "multi"
	}
	if found := v.controlPlaneArchitecture(ctx); found != "" {
		return found
	}
	const usual = "amd64"
	miss("the architecture: no control plane node could be read, and %s is assumed", usual)
	return usual
}

const (
	// maxRisks bounds the risks of one plan that are evaluated. The largest public channel
	// has 20.
	maxRisks = 500
	// parallelRisks bounds those that are evaluated at one time.
	parallelRisks = 8
)

// assess evaluates each risk once, on the present cluster. The assessment of CVO counts
// where it has evaluated a risk with the same name and rules.
func (v view) assess(ctx context.Context, risks []graph.Risk) func(graph.Risk) updateplan.Assessment {
	assessments := v.assessedByCVO(ctx)
	risks = slices.DeleteFunc(slices.Clone(risks), func(each graph.Risk) bool {
		_, ok := assessments[updateplan.Key(each)]
		return ok
	})
	evaluator := risk.Evaluator{
		Subject: check.Subject{Cluster: v.snapshot, Now: v.start}, Client: v.options.Monitoring, ClusterID: v.version.Spec.ClusterID,
	}
	var mutex sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelRisks)
	for _, each := range risks[:min(len(risks), maxRisks)] {
		group.Go(func() error {
			assessed := assessOne(ctx, evaluator, each)
			mutex.Lock()
			defer mutex.Unlock()
			assessments[updateplan.Key(each)] = assessed
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	beyond := notAssessed(fmt.Sprintf("the risk is on no path to the target, or beyond the first %d", maxRisks))
	return func(risk graph.Risk) updateplan.Assessment {
		if assessed, ok := assessments[updateplan.Key(risk)]; ok {
			return assessed
		}
		return beyond(risk)
	}
}

// assessedByCVO are the assessments in ClusterVersion by their Key. Where they contradict
// each other, the risk applies.
func (v view) assessedByCVO(ctx context.Context) map[string]updateplan.Assessment {
	assessments := map[string]updateplan.Assessment{}
	assessed, err := risk.AssessedByCluster(ctx, v.snapshot)
	if err != nil {
		return assessments // each risk is evaluated here
	}
	for _, each := range assessed {
		of := graph.Risk{Name: each.Name}
		for _, rule := range each.Rules {
			converted := graph.Rule{Type: rule.Type}
			if rule.PromQL != nil {
				converted.PromQL = rule.PromQL.PromQL
			}
			of.Rules = append(of.Rules, converted)
		}
		key := updateplan.Key(of)
		if each.Applies {
			assessments[key] = updateplan.Assessment{Applies: updateplan.True, EvaluatedBy: updateplan.CVO}
		} else if _, known := assessments[key]; !known {
			assessments[key] = updateplan.Assessment{Applies: updateplan.False, EvaluatedBy: updateplan.CVO}
		}
	}
	return assessments
}

// conditions are matching rules as in ClusterVersion.
func conditions(rules []graph.Rule) []configv1.ClusterCondition {
	all := make([]configv1.ClusterCondition, 0, len(rules))
	for _, rule := range rules {
		condition := configv1.ClusterCondition{Type: rule.Type}
		if rule.PromQL != "" {
			condition.PromQL = &configv1.PromQLClusterCondition{PromQL: rule.PromQL}
		}
		all = append(all, condition)
	}
	return all
}

func assessOne(ctx context.Context, evaluator risk.Evaluator, each graph.Risk) updateplan.Assessment {
	applies, err := evaluator.Match(ctx, conditions(each.Rules))
	assessed := updateplan.Assessment{Applies: updateplan.False, EvaluatedBy: updateplan.Preflight}
	switch known, ok := errors.AsType[*monitoring.Error](err); {
	case ok:
		assessed.Applies, assessed.Reason, assessed.Detail = updateplan.Unknown, string(known.Reason), known.Message
	case err != nil:
		assessed.Applies, assessed.Reason, assessed.Detail = updateplan.Unknown, "Interrupted", err.Error()
	case applies:
		assessed.Applies = updateplan.True
	}
	return assessed
}

// gatesOf evaluates the gates that can be evaluated in advance, for each update of a path
// that leaves its minor version. Acknowledgements are due before the first of them; those
// for later ones come with later releases.
func (v view) gatesOf(ctx context.Context, best path.Path, miss func(string, ...any)) map[string][]finding.Finding {
	found := map[string][]finding.Finding{}
	for _, hop := range best {
		if !(update.Update{From: hop.From.Parsed, To: hop.To.Parsed}).LeavesMinor() {
			continue
		}
		checks := []check.Check{gate.RemovedAPIs(v.options.Fixed), gate.IncompatibleOperators()}
		if len(found) == 0 {
			checks = append(checks, gate.AdminAck())
		} else {
			miss("admin acknowledgements to leave %s: its gates come with its release", update.Line(hop.From.Parsed))
		}
		subject, err := v.subject(hop.To.Version)
		if err != nil {
			miss("the gates of %s: %v", hop.To.Version, err)
			continue
		}
		collected := collector.Collect(ctx, collector.Bind(subject, checks), func(collector.Source, []finding.Finding) {})
		found[hop.To.Version] = collected.Findings
	}
	return found
}
