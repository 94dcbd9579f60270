package runner

import (
	"context"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/jobplan"
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
	observed, err := observe(ctx, cluster, request{target: target, options: options, needs: ChecksNeeds()})
	if err != nil {
		return Listing{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, observed.remaining())
	defer cancel()
	verified, err := verify(ctx, observed)
	if err != nil {
		return Listing{}, err
	}
	manifests, err := read(ctx, verified)
	if err != nil {
		return Listing{}, err
	}
	manifests = withSite(ctx, manifests)
	draft, _ := manifests.drafted()
	sources := append(manifests.sources, refused(draft.Refused)...)
	collected := collector.Collect(ctx, sources, func(_ collector.Source, findings []finding.Finding) { manifests.progress.Reported(findings) })
	judged := manifests.judge(collected, report.PhaseComplete, cluster.Now())
	listing := Listing{Checks: draft.Checks, Verdict: judged.Verdict, Findings: judged.Findings}
	if manifests.contents.readable() {
		_, ofRelease := manifests.contents.foresee(cluster.Dynamic)
		listing.Needs = options.readingNeeds().And(ofRelease).And(options.writingNeeds(draft))
	}
	return listing, nil
}
