package planner

import (
	"context"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// evaluateGates evaluates all gates for the first update of a path, and for each later one that leaves
// its minor version those that can be evaluated in advance. Acknowledgements are due before the first
// update that does; those for later ones come with later releases.
func evaluateGates(ctx context.Context, s scene.Scene, best path.Path, miss func(string, ...any)) map[string][]finding.Finding {
	found := aheadGates(ctx, s, best, miss)
	if len(best) > 0 {
		found[best[0].To.Version] = presentGates(ctx, s, best[0].To.Version)
	}
	return found
}

// presentGates are the findings of all gates for an update from the present release, but that ClusterVersion
// does not list it: the channel of the plan may have to be set first.
func presentGates(ctx context.Context, s scene.Scene, version string) []finding.Finding {
	sources := slices.DeleteFunc(departure.Sources(s, departure.Present(), version), func(each collector.Source) bool { return each.Kind != finding.SourceGate })
	collected := collector.Collect(ctx, sources, func(collector.Source, []finding.Finding) {}).Merged(s.Account(version).Accepted())
	return slices.DeleteFunc(collected.Findings, func(f finding.Finding) bool {
		return f.Reason == clusterversion.ReasonUnknownUpdate.String() || f.Reason == clusterversion.ReasonAmbiguousVersion.String()
	})
}

func aheadGates(ctx context.Context, s scene.Scene, best path.Path, miss func(string, ...any)) map[string][]finding.Finding {
	found := map[string][]finding.Finding{}
	for _, hop := range best {
		if !(update.Update{From: hop.From.Parsed, To: hop.To.Parsed}).LeavesMinor() {
			continue
		}
		checks := []check.Check{removedapi.Check(s.Settings.Judgement.Fixed), gate.IncompatibleOperators()}
		first, later := s.Settings.Estate.Ahead()
		if len(found) == 0 {
			checks = slices.Concat(checks, first, []check.Check{adminack.Check()})
		} else {
			checks = append(checks, later...)
			miss("admin acknowledgements to leave %s: its gates come with its release", update.Line(hop.From.Parsed))
		}
		subject, err := departure.Subject(s, departure.Present(), hop.To.Version)
		if err != nil {
			miss("the gates of %s: %v", hop.To.Version, err)
			continue
		}
		collected := collector.Collect(ctx, collector.Bind(subject, checks), func(collector.Source, []finding.Finding) {}).Merged(s.Account(hop.To.Version).Accepted())
		found[hop.To.Version] = collected.Findings
	}
	return found
}
