package runner

import (
	"context"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/selection"
)

// draft is what a run is to do.
type draft struct {
	preparation preparation
	// contents lack the manifests of the Jobs, which chosen has.
	contents contents.Contents
	chosen   jobplan.Draft
	// sources are the findings so far.
	sources []collector.Source
}

// draftOf selects the checks that are to run, and checks that the user has the permissions
// to run and record them. Nothing is created.
func draftOf(ctx context.Context, p preparation, inside contents.Contents) (draft, error) {
	p.target = targetOf(p.target, inside)
	drafted := inside.Draft(p.scene.About.Version, p.options.Estate)
	if from := p.request.from; departure.Provisional(from) {
		versions := departure.Versions(from, p.target.Version)
		drafted = drafted.Along(versions[:len(versions)-1], p.target.Version)
	}
	chosen, sources, err := p.options.Selection.Choose(drafted, p.request.shared.known(drafted))
	if err != nil {
		return draft{}, err
	}
	for _, each := range place.Of(p.scene.Cluster, p.options.Estate)[1:] {
		permitted, refused := each.Permitted(ctx, chosen)
		chosen, sources = permitted, append(sources, selection.Refused(refused)...)
	}
	d := draft{preparation: p, contents: inside.WithoutJobs(), chosen: chosen, sources: append(slices.Clip(inside.Sources), sources...)}
	return d, p.options.writingNeeds(chosen.On(check.Guest)).Check(ctx, p.scene.Cluster.Kubernetes.AuthorizationV1())
}

// targetOf is a target with what its contents and its proof have of it.
func targetOf(target update.Release, inside contents.Contents) update.Release {
	target.Image = inside.Proof.PullSpec
	if target.Version == "" {
		target.Version = inside.Version()
	}
	return target
}

// intent is the record before the first Job exists.
func (d draft) intent(id string) record.Intent {
	p := d.preparation
	intent := record.Intent{
		ID: id, From: p.scene.About.Version, Target: p.target, ToolVersion: p.options.Hooks.ToolVersion, Selection: p.options.covers(p.request.from, p.request.graph).String(),
		Attachment: p.options.Selection.Attachment(), Requester: p.options.Hooks.Requester, Generation: p.scene.Version.Generation,
		Provisional: departure.Provisional(p.request.from), Narrowed: selection.Narrowed(p.options.Selection, p.options.Judgement),
	}
	for _, check := range d.chosen.Checks {
		intent.Checks = append(intent.Checks, check.Name)
	}
	return intent
}
