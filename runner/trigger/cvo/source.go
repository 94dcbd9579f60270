package cvo

import (
	"context"
	"sync/atomic"
)

// Source is a source of risks of CVO: Source[configv1.ConditionalUpdateRisk] implements
// risk.Source. It makes a risk of every update whose preflight does not allow it. All
// fields are required.
type Source[Risk any] struct {
	// New makes a risk that always applies; its name is valid for acceptRisks.
	New func(name, reason, message string) Risk
	// Read reads the records.
	Read Reader

	reading atomic.Bool
}

// Name implements risk.Source.
func (*Source[Risk]) Name() string { return "Preflight" }

// Risks implements risk.Source: at most one risk per version, named after it.
func (s *Source[Risk]) Risks(ctx context.Context, versions []string) ([]Risk, map[string][]string, error) {
	var risks []Risk
	concerned := map[string][]string{}
	for _, version := range versions {
		name := "Preflight-" + version
		problem := judge(ctx, &s.reading, s.Read, version)
		if problem == nil || problem.Warning || concerned[name] != nil {
			continue
		}
		risks = append(risks, s.New(name, problem.Reason, problem.Message))
		concerned[name] = []string{version}
	}
	return risks, concerned, nil
}
