package planner

import (
	"context"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// evaluateGates evaluates the gates that can be evaluated in advance, for each update of a path
// that leaves its minor version. Acknowledgements are due before the first of them; those
// for later ones come with later releases.
func evaluateGates(ctx context.Context, s scene.Scene, best path.Path, miss func(string, ...any)) map[string][]finding.Finding {
	found := map[string][]finding.Finding{}
	for _, hop := range best {
		if !(update.Update{From: hop.From.Parsed, To: hop.To.Parsed}).LeavesMinor() {
			continue
		}
		checks := []check.Check{removedapi.Check(s.Settings.Judgement.Fixed), gate.IncompatibleOperators()}
		if side := s.Settings.Hosted; side != nil {
			first, later := hosted.Ahead(side)
			if len(found) == 0 {
				later = first
			}
			checks = append(checks, later...)
		}
		if len(found) == 0 {
			checks = append(checks, adminack.Check())
		} else {
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
