package runner

import (
	"context"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/rehearsal"
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

// RunNeeds are the permissions that Run needs to start and those that it can use,
// for every release, that image mode and that mode of rehearsal. The rules of a release's roles come on
// top; [Listing] has them for one release.
func RunNeeds(images image.Mode, rehearsed rehearsal.Mode) access.Needs {
	return Options{Selection: selection.Selection{Images: images, Rehearsal: rehearsed}}.readingNeeds().And(recordstore.Needs()).And(recordstore.KeyNeeds()).And(jobplan.AnyNeeds())
}

// ChecksNeeds are the permissions of Checks.
func ChecksNeeds() access.Needs {
	return estate.ReadNeeds(hosted.Estate{})
}

// readingNeeds are the permissions of a run before it writes, for every release.
func (o Options) readingNeeds() access.Needs {
	if o.Estate.GuestError() != nil {
		return access.Needs{}
	}
	needs := estate.ReadNeeds(o.Estate).And(builtin.Needs()).And(definition.Needs())
	if o.Baseline != baselinestore.None {
		needs = needs.And(access.Needs{Optional: sample.Reads()})
	}
	if o.Selection.Rehearsal != rehearsal.Off {
		needs = needs.And(rehearsal.Needs())
	}
	if o.Selection.NoJobs {
		return needs
	}
	if o.Selection.Images.Pulls() {
		needs = needs.And(pullNeeds())
	}
	return needs.And(place.Needs()).And(access.Needs{
		Optional: []access.Request{{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}},
	})
}

// writingNeeds are the permissions to record a run and to run its checks.
func (o Options) writingNeeds(draft jobplan.Draft) access.Needs {
	switch {
	case o.Selection.NoJobs:
		return access.Needs{}
	case len(draft.Checks) == 0:
		return recordstore.Needs().And(recordstore.KeyNeeds())
	}
	return recordstore.Needs().And(recordstore.KeyNeeds()).And(draft.Needs())
}

// pullNeeds are the permissions to have nodes pull images. Where the kubelets may
// not be read, their free disk space is not known.
func pullNeeds() access.Needs {
	return jobplan.JobNeeds(pull.Namespace).And(access.Needs{
		Required: []access.Request{{Verb: "list", Resource: "nodes"}},
		Optional: []access.Request{{Verb: "get", Resource: "nodes", Subresource: "proxy"}},
	})
}
