package runner

import (
	"context"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/selection"
)

// Listing is what a run of a release would run.
type Listing struct {
	// Checks may run; they are in the order of their manifests. Their Jobs are the
	// author's.
	Checks []jobplan.Check
	// Verdict and Findings are about the release itself: its signature, its
	// manifests, and the checks that are refused.
	Verdict  verdict.Verdict
	Findings []finding.Finding
	// Needs are the permissions that Run needs for this release. Nothing is required
	// where the release may not be read.
	Needs access.Needs
}

// Checks lists what the target would run, and creates nothing. Errors are those of
// Run.
func Checks(ctx context.Context, cluster *cluster.Cluster, target Target, options Options) (Listing, error) {
	p, err := observe(ctx, request{cluster: cluster, target: target, options: options, from: departure.Present()}, func(Options) access.Needs { return ChecksNeeds() })
	if err != nil {
		return Listing{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.scene.Remaining())
	defer cancel()
	proven, err := p.verifier().Verify(ctx, p.target)
	if err != nil {
		return Listing{}, err
	}
	inside, err := p.read(ctx, proven)
	if err != nil {
		return Listing{}, err
	}
	p.target = targetOf(p.target, inside)
	draft := inside.Draft(p.scene.About.Version, p.options.Estate)
	sources := append(inside.Sources, selection.Refused(draft.Refused)...)
	collected := collector.Collect(ctx, sources, func(_ collector.Source, findings []finding.Finding) { p.progress.Reported(findings) })
	judged := p.judge(inside, collected, report.PhaseComplete)
	listing := Listing{Checks: draft.Checks, Verdict: judged.Verdict, Findings: judged.Findings}
	if inside.Readable() {
		_, ofRelease := inside.Foresee(cluster.Dynamic)
		listing.Needs = p.options.readingNeeds().And(ofRelease).And(p.options.writingNeeds(draft.On(check.Guest)))
	}
	return listing, nil
}
