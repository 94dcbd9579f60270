package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/graph"
	"github.com/openshift/update-preflight/collector/path"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/payload"
)

// maxHops bounds the updates of a path: checks receive at most 32 versions.
const maxHops = 31

// PathRequest is the path to check.
type PathRequest struct {
	// Hops are the targets of the updates in order; none for the best path of Plan.
	Hops []Target
	// Plan is where the update graph comes from, and without Hops where to go to.
	Plan PlanRequest
}

// RunPath runs the preflight of each update of a path, one after the other. The first is
// that of Run. Each later one has a record of its own, and its verdict is provisional:
// checks are run and gates evaluated on the present cluster, and what can only be
// evaluated when the cluster runs the release before is listed.
//
// A check that several releases have with the same image runs once. Options.Timeout
// applies to each update. Where an update ends early, the others have no report. Errors
// are those of Run and Plan; with a report, the updates before the error are in it. The
// permissions are those of Run and Plan.
func RunPath(ctx context.Context, cluster *cluster.Cluster, request PathRequest, options Options) (report.Path, error) {
	route, err := findRoute(ctx, cluster, request, options)
	if err != nil {
		return report.Path{}, err
	}
	walk := walk{cluster: cluster, options: options, shared: newSharedResults(), passed: []update.Release{route.from}}
	var reports []report.Report
	for _, each := range route.hops {
		decided, failure := walk.next(ctx, each)
		if err = failure; decided.Kind != "" {
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
	shared  *sharedResults
	// passed are the releases so far, that of the cluster first, and gates the admin gates
	// of the last one.
	passed []update.Release
	gates  map[string]string
}

// next makes the preflight of the next update.
func (w *walk) next(ctx context.Context, to routeHop) (report.Report, error) {
	r := request{target: to.target, options: w.options, needs: w.options.readingNeeds(), shared: w.shared}
	if len(w.passed) > 1 {
		r.hop = &hop{releases: slices.Clone(w.passed), target: to.release, gates: w.gates, risks: to.risks, known: to.known, cause: to.cause}
	}
	decided, contents, err := conduct(ctx, w.cluster, r)
	w.gates = adminGatesOf(contents)
	w.passed = append(w.passed, update.Release{Version: cmp.Or(decided.Target.Version, to.release.Version), Image: cmp.Or(decided.Target.Image, to.release.Image)})
	return decided, err
}

// adminGatesOf are the admin gates of a release, by key; nil if they are unknown.
func adminGatesOf(c contents) map[string]string {
	read, ok := c.(released)
	if !ok {
		return nil
	}
	exceeded := func(f finding.Finding) bool { return f.Reason == string(payload.ReasonTooManyAdminGates) }
	if read.payload.AdminGates == nil && !slices.ContainsFunc(read.payload.Problems, exceeded) {
		return map[string]string{}
	}
	return read.payload.AdminGates
}

// route is the path that is requested.
type route struct {
	from update.Release
	hops []routeHop
	// notices are limitations of the graph.
	notices []string
}

// routeHop is one update of a route.
type routeHop struct {
	target Target
	// release is the target; its version is empty if it is known only by image.
	release update.Release
	risks   []graph.Risk
	// known is true if the graph has the update; otherwise cause states why not.
	known bool
	cause string
}

// versions are those of the whole path, as far as they are known by request or report.
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

// findRoute resolves the path: that of the request, or the best one of the graph. One
// update that is named needs no graph.
func findRoute(ctx context.Context, c *cluster.Cluster, request PathRequest, options Options) (route, error) {
	if err := request.validate(); err != nil {
		return route{}, err
	}
	v, err := newView(ctx, c, options)
	if err != nil {
		return route{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.remaining())
	defer cancel()
	from := update.Release{Version: v.about.Version, Image: v.about.Image}
	if len(request.Hops) == 1 {
		return route{from: from, hops: []routeHop{{target: request.Hops[0], release: update.Release{Version: request.Hops[0].Version, Image: request.Hops[0].Image}}}}, nil
	}
	planner, err := v.planner(ctx, request.Plan)
	if len(request.Hops) > 0 {
		hops, named := v.named(request.Hops, planner.basis.Graph, err)
		return route{from: from, hops: hops, notices: planner.basis.Notices}, named
	}
	if err != nil {
		return route{}, err
	}
	best, err := v.bestPath(ctx, planner)
	return route{from: from, hops: v.planned(best), notices: planner.basis.Notices}, err
}

func (r PathRequest) validate() error {
	if len(r.Hops) > maxHops {
		return badInput("the path has %d updates, more than %d", len(r.Hops), maxHops)
	}
	for i, each := range r.Hops {
		if each.given() != 1 || each.Latest {
			return badInput("update %d of the path names neither a version nor an image", i+1)
		}
		if err := each.validate(); err != nil {
			return err
		}
	}
	return nil
}

// bestPath is the path of the plan.
func (v view) bestPath(ctx context.Context, planner *planner) (path.Path, error) {
	to, _, err := planner.resolve()
	if err != nil {
		return nil, &BadInputError{Err: err}
	}
	v.progress.step("evaluating the risks")
	planner.basis.Assess = v.assess(ctx, planner.basis.Risks(to))
	paths, err := planner.basis.Paths(to)
	if err != nil {
		return nil, &BadInputError{Err: err}
	}
	if len(paths.Best) > maxHops {
		return nil, badInput("the best path to %s has %d updates, more than %d", to, len(paths.Best), maxHops)
	}
	return paths.Best, nil
}

// planned are the updates of the best path.
func (v view) planned(best path.Path) []routeHop {
	hops := make([]routeHop, 0, len(best))
	for i, each := range best {
		release := update.Release{Version: each.To.Version, Image: each.To.Image}
		target := Target{Image: release.Image}
		if i == 0 && v.lists(release) {
			target = Target{Version: release.Version}
		}
		hops = append(hops, routeHop{target: target, release: release, risks: each.Risks, known: true})
	}
	return hops
}

// lists reports whether ClusterVersion has that image of the version.
func (v view) lists(release update.Release) bool {
	known := knownReleases(v.version)
	i := slices.IndexFunc(known, func(other update.Release) bool { return other.Version == release.Version && other.Image != "" })
	return i >= 0 && known[i].Digest() == release.Digest()
}

// named are the updates that are requested. unread is why there is no graph.
func (v view) named(targets []Target, g *graph.Graph, unread error) ([]routeHop, error) {
	hops := make([]routeHop, 0, len(targets))
	before := v.about.Version
	for i, each := range targets {
		hop := routeHop{target: each, release: update.Release{Version: each.Version, Image: each.Image}}
		if hop.release = inGraph(g, hop.release); i > 0 && hop.release.Image == "" {
			found, err := each.resolve(v.version)
			if err != nil {
				return nil, errors.Join(err, unread)
			}
			hop.release = found
		}
		if i > 0 {
			hop.target = Target{Image: hop.release.Image}
		}
		hop.edge(g, before, unread)
		hops, before = append(hops, hop), hop.release.Version
	}
	return hops, nil
}

// inGraph completes a release from the graph: its image by its version, or its version by
// its digest.
func inGraph(g *graph.Graph, release update.Release) update.Release {
	if g == nil {
		return release
	}
	for _, each := range g.Releases {
		switch {
		case release.Image == "" && each.Version == release.Version:
			return each.Release
		case release.Version == "" && release.Digest() != "" && each.Digest() == release.Digest():
			return update.Release{Version: each.Version, Image: release.Image}
		}
	}
	return release
}

// edge sets the risks of the update from a version.
func (h *routeHop) edge(g *graph.Graph, from string, unread error) {
	if g == nil {
		h.cause = fmt.Sprintf("the update graph could not be read: %v", unread)
		return
	}
	source, target := g.Find(from), g.Find(h.release.Version)
	for _, each := range g.Updates {
		if source >= 0 && each.From == source && each.To == target {
			h.risks, h.known = each.Risks, true
			return
		}
	}
	h.cause = "the update graph does not have this update"
}

// pathRecord is the recorded run of a later update of a path.
type pathRecord struct {
	// releases are those before the target.
	releases []pathRelease
	target   update.Release
	// source is where the risks of the update are read from.
	source PlanRequest
}

// attachToHop continues the run of a later update of a path.
func attachToHop(ctx context.Context, c *cluster.Cluster, recorded pathRecord, options Options) (report.Report, error) {
	releases := make([]update.Release, 0, len(recorded.releases))
	for _, each := range recorded.releases {
		releases = append(releases, update.Release{Version: each.Version, Image: each.Image})
	}
	if len(releases) < 2 {
		return report.Report{}, badInput("the record of the run does not have the releases of its path")
	}
	before := releases[len(releases)-1]
	gates, err := gatesOf(ctx, c, before, options)
	if err != nil {
		return report.Report{}, err
	}
	v, err := newView(ctx, c, options)
	if err != nil {
		return report.Report{}, err
	}
	planner, unread := v.planner(ctx, recorded.source)
	for _, notice := range planner.basis.Notices {
		v.progress.step("%s", notice)
	}
	found := routeHop{release: recorded.target}
	found.edge(planner.basis.Graph, before.Version, unread)
	decided, _, err := conduct(ctx, c, request{
		target: Target{Image: recorded.target.Image}, options: options, needs: options.readingNeeds(),
		hop: &hop{releases: releases, target: recorded.target, gates: gates, risks: found.risks, known: found.known, cause: found.cause},
	})
	return decided, err
}

// gatesOf reads the admin gates of a release; nil if they are unknown.
func gatesOf(ctx context.Context, c *cluster.Cluster, release update.Release, options Options) (map[string]string, error) {
	observed, err := observe(ctx, c, request{target: Target{Image: release.Image}, options: options, needs: options.readingNeeds()})
	if err != nil {
		return nil, err
	}
	verified, err := verify(ctx, observed)
	if err != nil {
		return nil, err
	}
	manifests, err := read(ctx, verified)
	return adminGatesOf(manifests.contents), err
}
