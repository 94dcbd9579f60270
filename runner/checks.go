package runner

import (
	"cmp"
	"context"
	"errors"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/updateplan/path"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/selection"
)

// Listing is the plan of a run that was not started.
type Listing struct {
	// Checks may run; they are in the order of their manifests. Their Jobs are the
	// author's.
	Checks []jobplan.Check
	// Verdict and Findings are about the release itself: its signature, its
	// manifests, and the checks that are refused.
	Verdict  verdict.Verdict
	Findings []finding.Finding
	// Needs are the permissions that Run needs for this release. Nothing is required if the release may not be read.
	Needs access.Needs
}

// Checks lists the checks that a run of the target would run, and creates nothing. It returns the same errors as Run.
func Checks(ctx context.Context, cluster *cluster.Cluster, target Target, options Options) (Listing, error) {
	p, err := observe(ctx, request{cluster: cluster, target: target, options: options, from: departure.Present()},
		func(Options) access.Needs { return ChecksNeeds() })
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
	judged := p.evaluate(inside, collected, report.PhaseComplete)
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
	return Options{Selection: selection.Selection{Images: images, Rehearsal: rehearsed}}.readingNeeds().And(recordstore.Needs()).And(
		recordstore.KeyNeeds()).And(jobplan.AnyNeeds())
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

// maxHops bounds the updates of a path: checks receive at most 32 versions.
const maxHops = 31

// PathRequest is the path to check.
type PathRequest struct {
	// Hops are the targets of the updates in order; none for the best path of Plan.
	Hops []Target
	// Plan is the source of the update graph and, without Hops, the target.
	Plan planner.Request
}

// RunPath runs the preflight of each update of a path, one after the other. The first behaves like Run. Each later one
// has its own record, and its verdict is provisional: checks run and gates are evaluated on the present cluster, and
// anything that can only be evaluated once the cluster runs the release before is listed.
//
// A check that several releases share with the same image runs once. Limits.Timeout applies to each update. If an
// update ends early, the later ones have no report. The errors are the errors of Run and planner.Plan; next to a
// report, the updates before the error are in it. The caller needs the permissions for both.
func RunPath(ctx context.Context, cluster *cluster.Cluster, path PathRequest, options Options) (report.Path, error) {
	route, err := findRoute(ctx, cluster, path, options)
	if err != nil {
		return report.Path{}, err
	}
	walk := walk{
		cluster: cluster, options: options, graph: GraphIdentity(path.Plan.Graph), shared: newSharedResults(),
		passed: []update.Release{route.from},
	}
	var reports []report.Report
	for _, each := range route.hops {
		var decided report.Report
		decided, err = walk.next(ctx, each)
		if decided.Kind != "" {
			reports = append(reports, decided)
		}
		if err != nil || decided.Run.Phase != report.PhaseComplete {
			break
		}
	}
	if len(reports) == 0 {
		return report.Path{}, err
	}
	made := report.NewPath(route.versions(reports), reports)
	made.Notices = route.notices
	return made, err
}

// walk makes the preflights of a path.
type walk struct {
	cluster *cluster.Cluster
	options Options
	graph   string
	shared  *sharedResults
	// passed are the releases so far, starting with the cluster's, and gates the admin gates of the last one.
	passed []update.Release
	gates  map[string]string
}

// next makes the preflight of the next update.
func (w *walk) next(ctx context.Context, to hop) (report.Report, error) {
	r := request{cluster: w.cluster, target: to.target, options: w.options, from: departure.Present(), graph: w.graph, shared: w.shared}
	if len(w.passed) > 1 {
		r.target.release = to.release
		r.from = departure.After(departure.Later{Releases: slices.Clone(w.passed), Target: to.release, Gates: w.gates, Edge: to.edge})
	}
	decided, inside, err := r.run(ctx)
	w.gates = inside.AdminGates()
	w.passed = append(w.passed, update.Release{
		Version: cmp.Or(decided.Target.Version, to.release.Version),
		Image:   cmp.Or(decided.Target.Image, to.release.Image),
	})
	return decided, err
}

// route is the path that is requested.
type route struct {
	from update.Release
	hops []hop
	// notices are limitations of the graph.
	notices []string
}

// hop is one update of a route.
type hop struct {
	target Target
	// release is the target; its version is empty if it is known only by image.
	release update.Release
	edge    departure.Edge
}

// versions lists the versions of the whole path, as far as a request or a report has them.
func (r route) versions(reports []report.Report) []string {
	versions := []string{r.from.Version}
	for i, each := range r.hops {
		version := each.release.Version
		if i < len(reports) && reports[i].Target.Version != "" {
			version = reports[i].Target.Version
		}
		versions = append(versions, version)
	}
	return versions
}

// findRoute resolves the requested path, or the best path of the graph. A single named update needs no graph.
func findRoute(ctx context.Context, c *cluster.Cluster, request PathRequest, options Options) (route, error) {
	if err := request.validate(); err != nil {
		return route{}, err
	}
	s, err := settled(ctx, c, options)
	if err != nil {
		return route{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Remaining())
	defer cancel()
	from := update.Release{Version: s.About.Version, Image: s.About.Image}
	request.Plan.Transport = registry.Outbound(ctx, s.Cluster)
	switch len(request.Hops) {
	case 0:
		best, notices, err := planner.Best(ctx, s, request.Plan)
		if len(best) > maxHops {
			return route{}, input.Errorf("the best path to %s has %d updates, more than %d", best[len(best)-1].To.Version, len(best), maxHops)
		}
		return route{from: from, hops: planned(best, s.Version), notices: notices}, err
	case 1:
		only := request.Hops[0]
		return route{from: from, hops: []hop{{target: only, release: update.Release{Version: only.Version, Image: only.Image}}}}, nil
	}
	united, unread := planner.Graph(ctx, s, request.Plan)
	hops, err := named(request.Hops, s, united.Graph, unread)
	return route{from: from, hops: hops, notices: united.Notices}, err
}

// settled is the scene of options when CVO has processed the last change of ClusterVersion.
func settled(ctx context.Context, c *cluster.Cluster, options Options) (scene.Scene, error) {
	if err := options.validate(); err != nil {
		return scene.Scene{}, err
	}
	return scene.OpenSettled(ctx, c, options.Settings())
}

func (r PathRequest) validate() error {
	if len(r.Hops) > maxHops {
		return input.Errorf("the path has %d updates, more than %d", len(r.Hops), maxHops)
	}
	for i, each := range r.Hops {
		if each.given() != 1 || each.Latest {
			return input.Errorf("update %d of the path names neither a version nor an image", i+1)
		}
		if err := each.validate(); err != nil {
			return err
		}
	}
	return nil
}

// planned are the updates of the best path.
func planned(best path.Path, clusterVersion *configv1.ClusterVersion) []hop {
	hops := make([]hop, 0, len(best))
	for i, each := range best {
		release := update.Release{Version: each.To.Version, Image: each.To.Image}
		target := Target{Image: release.Image}
		if i == 0 && lists(clusterVersion, release) {
			target = Target{Version: release.Version}
		}
		hops = append(hops, hop{target: target, release: release, edge: departure.Edge{Risks: each.Risks, Known: true}})
	}
	return hops
}

// lists reports whether ClusterVersion has that image of the version.
func lists(clusterVersion *configv1.ClusterVersion, release update.Release) bool {
	known := scene.KnownReleases(clusterVersion)
	i := slices.IndexFunc(known, func(other update.Release) bool { return other.Version == release.Version && other.Image != "" })
	return i >= 0 && known[i].Digest() == release.Digest()
}

// named are the updates that are requested. unread is why there is no graph.
func named(targets []Target, s scene.Scene, g *graph.Graph, unread error) ([]hop, error) {
	hops := make([]hop, 0, len(targets))
	before := s.About.Version
	for i, each := range targets {
		release := g.Complete(update.Release{Version: each.Version, Image: each.Image})
		if i > 0 && release.Image == "" {
			found, err := each.resolve(s.Version)
			if err != nil {
				return nil, errors.Join(err, unread)
			}
			release = found
		}
		if i > 0 {
			each = Target{Image: release.Image}
		}
		hops = append(hops, hop{target: each, release: release, edge: departure.EdgeOf(g, unread, before, release.Version)})
		before = release.Version
	}
	return hops, nil
}

// laterRun is the recorded run of a later update of a path.
type laterRun struct {
	// releases are those before the target.
	releases []selection.Release
	target   update.Release
	// source is where the risks of the update are read from, and graph identifies the graph of the run.
	source graphsource.Request
	graph  string
}

// attachToLater continues the run of a later update of a path.
func attachToLater(ctx context.Context, c *cluster.Cluster, recorded laterRun, options Options) (report.Report, error) {
	releases := make([]update.Release, 0, len(recorded.releases))
	for _, each := range recorded.releases {
		releases = append(releases, update.Release{Version: each.Version, Image: each.Image})
	}
	if len(releases) < 2 {
		return report.Report{}, input.Errorf("the record of the run does not contain the releases of its path")
	}
	before := releases[len(releases)-1]
	gates, err := gatesOf(ctx, c, before, options)
	if err != nil {
		return report.Report{}, err
	}
	s, err := settled(ctx, c, options)
	if err != nil {
		return report.Report{}, err
	}
	united, unread := planner.Graph(ctx, s, planner.Request{Graph: recorded.source, Transport: registry.Outbound(ctx, s.Cluster)})
	for _, notice := range united.Notices {
		s.Step("%s", notice)
	}
	decided, _, err := request{
		cluster: c, target: Target{Image: recorded.target.Image, release: recorded.target}, options: options, graph: recorded.graph,
		from: departure.After(departure.Later{
			Releases: releases, Target: recorded.target, Gates: gates,
			Edge: departure.EdgeOf(united.Graph, unread, before.Version, recorded.target.Version),
		}),
	}.run(ctx)
	return decided, err
}

// gatesOf reads the admin gates of a release; nil if they are unknown.
func gatesOf(ctx context.Context, c *cluster.Cluster, release update.Release, options Options) (map[string]string, error) {
	r := request{cluster: c, target: Target{Image: release.Image}, options: options, from: departure.Present()}
	p, err := observe(ctx, r, Options.readingNeeds)
	if err != nil {
		return nil, err
	}
	proven, err := p.verifier().Verify(ctx, p.target)
	if err != nil {
		return nil, err
	}
	inside, err := p.reader().Read(ctx, proven, "")
	return inside.AdminGates(), err
}
