package cvo

import (
	"context"
	"strings"
	"sync"
	"time"
)

// Source is a source of risks of CVO: Source[configv1.ConditionalUpdateRisk] implements risk.Source. It returns a risk
// for every update whose preflight does not allow it. All fields are required.
type Source[Risk any] struct {
	// New returns a risk that always applies; its name is valid for acceptRisks. Its time is the verdict's, or without
	// one the time of the first call: it only changes with the verdict.
	New func(name, reason, message string, since time.Time) Risk
	// The method [Verdicts.Offered].
	Judge func(versions []string) []*Problem

	first   sync.Once
	started time.Time
}

// Name implements risk.Source.
func (*Source[Risk]) Name() string { return "Preflight" }

// Risks implements risk.Source: at most one risk per version, named after it.
func (s *Source[Risk]) Risks(_ context.Context, versions []string) ([]Risk, map[string][]string, error) {
	s.first.Do(func() { s.started = time.Now() })
	var risks []Risk
	concerned := map[string][]string{}
	for i, problem := range s.Judge(versions) {
		name := "Preflight-" + versions[i]
		if problem == nil || problem.Warning || concerned[name] != nil {
			continue
		}
		since := problem.Since
		if since.IsZero() {
			since = s.started
		}
		risks = append(risks, s.New(name, problem.Reason, problem.Message, since))
		concerned[name] = []string{versions[i]}
	}
	return risks, concerned, nil
}

// release has the fields of a release, and of a selected update, that are used.
type release struct{ Version, Image string }

// clusterVersion has the fields of ClusterVersion that are used.
type clusterVersion struct {
	Spec   struct{ DesiredUpdate release }
	Status struct {
		Desired            release
		AvailableUpdates   []release
		ConditionalUpdates []struct{ Release release }
	}
}

// selected is the selected update, which may not be offered, as CVO resolves it: an image
// comes before a version.
func (c clusterVersion) selected(version string) target {
	if image := c.Spec.DesiredUpdate.Image; image != "" {
		return c.target(version, image)
	}
	return c.offered(version)
}

// offered is the available or the conditional update with that version. An update with a
// risk is conditional.
func (c clusterVersion) offered(version string) target {
	for _, available := range c.Status.AvailableUpdates {
		if available.Version == version {
			return c.target(version, available.Image)
		}
	}
	for _, conditional := range c.Status.ConditionalUpdates {
		if conditional.Release.Version == version {
			return c.target(version, conditional.Release.Image)
		}
	}
	return c.target(version, "")
}

func (c clusterVersion) target(version, image string) target {
	_, digest, _ := strings.Cut(image, "@")
	return target{version: version, digest: digest, from: c.Status.Desired.Version}
}
