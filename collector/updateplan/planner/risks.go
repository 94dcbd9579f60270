package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
)

var _ = catalog.Reasons("A later update of a path, or a risk of it, is not evaluated now.", `
NotEvaluated | Another release has to be installed first. | Run the preflight again after the update before it.`)

func notAssessed(detail string) func(graph.Risk) updateplan.Assessment {
	return func(graph.Risk) updateplan.Assessment {
		return updateplan.Assessment{Applies: updateplan.Unknown, Reason: "NotEvaluated", Detail: detail}
	}
}

// assessWithout is what is known of a risk without a cluster.
func assessWithout(risk graph.Risk) updateplan.Assessment {
	if len(risk.Rules) > 0 && risk.Rules[0] == (graph.Rule{Type: "Always"}) {
		return updateplan.Assessment{Applies: updateplan.True, EvaluatedBy: updateplan.Preflight}
	}
	return notAssessed("")(risk)
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
func assess(ctx context.Context, s scene.Scene, risks []graph.Risk) func(graph.Risk) updateplan.Assessment {
	assessments := assessedByCVO(ctx, s.Snapshot)
	risks = slices.DeleteFunc(slices.Clone(risks), func(each graph.Risk) bool {
		_, ok := assessments[updateplan.Key(each)]
		return ok
	})
	evaluator := risk.Evaluator{
		Subject: check.Subject{Cluster: s.Snapshot, Now: s.Start}, Client: s.Settings.Judgement.Monitoring, ClusterID: s.Version.Spec.ClusterID,
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
func assessedByCVO(ctx context.Context, cluster *snapshot.Cluster) map[string]updateplan.Assessment {
	assessments := map[string]updateplan.Assessment{}
	assessed, err := risk.AssessedByCluster(ctx, cluster)
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

func assessOne(ctx context.Context, evaluator risk.Evaluator, each graph.Risk) updateplan.Assessment {
	applies, err := evaluator.Match(ctx, risk.Conditions(each.Rules))
	assessed := updateplan.Assessment{Applies: updateplan.False, EvaluatedBy: updateplan.Preflight}
	switch known, ok := errors.AsType[*monitoring.Error](err); {
	case ok:
		assessed.Applies, assessed.Reason, assessed.Detail = updateplan.Unknown, known.Reason.String(), known.Message
	case err != nil:
		assessed.Applies, assessed.Reason, assessed.Detail = updateplan.Unknown, "Interrupted", err.Error()
	case applies:
		assessed.Applies = updateplan.True
	}
	return assessed
}
