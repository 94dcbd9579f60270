// Package graph answers: which updates between which releases does the update service offer, and at which risks?
//
// A graph is advice: signatures and digests decide which releases are run or mirrored. It comes from outside, so
// its size is bounded, and contradictory content is rejected or ignored with a [Notice].
//
// Source: openshift/cincinnati docs/design/openshift.md, and the reader of it in CVO
// (pkg/cincinnati/cincinnati.go).
package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/update"
)

// Node is a release of a graph.
type Node struct {
	update.Release
	Parsed semver.Version
	// Errata is the URL of the errata; empty if unknown.
	Errata string
	// Channels are all channels that have the release, by the metadata of the graph.
	Channels []string
}

// Risk is a risk of a conditional update. Its name is the same risk in all graphs.
type Risk struct {
	Name, Message, URL string
	// Rules decide whether the risk applies to a cluster: the first type that the cluster knows is evaluated.
	Rules []Rule
}

// Rule is a matching rule: of type "Always", or "PromQL" with a query.
type Rule struct {
	Type, PromQL string
}

// Update is an update from one release to a newer one.
type Update struct {
	// From and To are indexes of Releases.
	From, To int
	// Risks are the risks of a conditional update; none for a recommended one.
	Risks []Risk
	// Sources are the graphs that have the update, by the names given to Parse, sorted.
	Sources []string
}

// Graph is a set of releases and the updates between them.
type Graph struct {
	// Releases are sorted by version.
	Releases []Node
	// Updates are sorted by From and To. Each is one hop: to a newer release of the same
	// or the next minor version, or from 4.22 or 4.23 to 5.0.
	Updates []Update
	// Notices are sorted, at most 20 per graph.
	Notices []Notice
	// sources are, for each release, the graphs that have it.
	sources map[string][]string
}

// Find is the index of a release, -1 if the graph does not have it.
func (g *Graph) Find(version string) int {
	return slices.IndexFunc(g.Releases, func(r Node) bool { return r.Version == version })
}

// Complete completes a release from the graph, which may be nil: its image by its version,
// or its version by its digest.
func (g *Graph) Complete(release update.Release) update.Release {
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

// Sources are the graphs that have a release, sorted.
func (g *Graph) Sources(release int) []string { return g.sources[g.Releases[release].Version] }

// compare orders releases by precedence; those that differ in build metadata only, by it.
func compare(a, b Node) int {
	if order := a.Parsed.Compare(b.Parsed); order != 0 {
		return order
	}
	if a.Version < b.Version {
		return -1
	}
	if a.Version > b.Version {
		return 1
	}
	return 0
}

// oneHop reports whether an update is supported as one step: it neither skips a minor
// version nor goes to an older release.
func oneHop(from, to semver.Version) bool {
	switch (update.Update{From: from, To: to}).Kind() {
	case update.Patch, update.Minor:
		return true
	case update.Major:
		const lastMinors = 22 // 4.22 and 4.23 precede 5.0
		return from.Major == 4 && from.Minor >= lastMinors && to.Major == 5 && to.Minor == 0
	case update.Same, update.SkipLevel, update.Rollback:
	}
	return false
}

// Union has the releases and updates of all graphs. An update that is conditional in one
// of them is conditional, with the risks of all. The error is an *Error with the reason
// Contradictory where two graphs have different images of one version.
func Union(graphs ...*Graph) (*Graph, error) {
	if len(graphs) == 1 {
		return graphs[0], nil
	}
	releases, sources := map[string]Node{}, map[string][]string{}
	united := &Graph{sources: sources}
	for _, g := range graphs {
		for i, release := range g.Releases {
			known, exists := releases[release.Version]
			if exists && known.Image != release.Image {
				return nil, &Error{Source: strings.Join(g.Sources(i), ", "), Reason: Contradictory, message: fmt.Sprintf(
					"has %s with the image %q, another graph with %q", release.Version, release.Image, known.Image)}
			}
			release.Channels = merged(known.Channels, release.Channels)
			releases[release.Version], sources[release.Version] = release, merged(sources[release.Version], g.Sources(i))
		}
		united.Notices = append(united.Notices, g.Notices...)
	}
	united.Releases = slices.SortedFunc(maps.Values(releases), compare)
	position := make(map[string]int, len(united.Releases))
	for i, release := range united.Releases {
		position[release.Version] = i
	}
	united.unite(graphs, position)
	return united, nil
}

func (g *Graph) unite(graphs []*Graph, position map[string]int) {
	type located struct {
		from, to     int
		graph, index int
	}
	var all []located
	for i, each := range graphs {
		moved := make([]int, len(each.Releases))
		for j := range each.Releases {
			moved[j] = position[each.Releases[j].Version]
		}
		for j := range each.Updates {
			all = append(all, located{moved[each.Updates[j].From], moved[each.Updates[j].To], i, j})
		}
	}
	slices.SortFunc(all, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.graph, b.graph))
	})
	g.Updates = make([]Update, 0, len(all))
	for _, each := range all {
		found := &graphs[each.graph].Updates[each.index]
		last := len(g.Updates) - 1
		if last < 0 || g.Updates[last].From != each.from || g.Updates[last].To != each.to {
			g.Updates = append(g.Updates, Update{From: each.from, To: each.to, Risks: found.Risks, Sources: found.Sources})
			continue
		}
		g.Updates[last].Risks = mergedRisks(g.Updates[last].Risks, found.Risks)
		g.Updates[last].Sources = merged(g.Updates[last].Sources, found.Sources)
	}
}

// mergedRisks are the risks of both lists, each once.
func mergedRisks(a, b []Risk) []Risk {
	for _, risk := range b {
		if !slices.ContainsFunc(a, func(r Risk) bool { return r.Name == risk.Name }) {
			a = append(slices.Clip(a), risk)
		}
	}
	return a
}

// merged are the values of both lists, sorted.
func merged(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Cause is why a graph is rejected, or the subject of a Notice.
type Cause string

// The reasons of an Error.
const (
	TooLarge         Cause = "TooLarge"
	Malformed        Cause = "Malformed"
	InvalidVersion   Cause = "InvalidVersion"
	DuplicateVersion Cause = "DuplicateVersion"
	InvalidEdge      Cause = "InvalidEdge"
	// Contradictory graphs have different images of one version.
	Contradictory Cause = "Contradictory"
)

// The reasons of a Notice.
const (
	// SelfEdge: an update from a release to itself.
	SelfEdge Cause = "SelfEdge"
	// NotOneHop: an update to an older release, which makes a cycle possible, or one that skips a minor version.
	NotOneHop Cause = "NotOneHop"
	// NoImage: a release without an image by digest.
	NoImage Cause = "NoImage"
	// AmbiguousRisks: an update in two groups of conditional updates. CVO ignores it.
	AmbiguousRisks Cause = "AmbiguousRisks"
	// UnknownRelease: a conditional update from or to a release that the graph lacks.
	UnknownRelease Cause = "UnknownRelease"
	// NoRisks: conditional updates without a risk.
	NoRisks Cause = "NoRisks"
	// InvalidRiskName: a risk whose name cannot be accepted.
	InvalidRiskName Cause = "InvalidRiskName"
)

// Notice is a part of a graph that is ignored, or a limitation that follows from it.
type Notice struct {
	Reason  Cause
	Message string
}

// Error is the error of a graph that is refused.
type Error struct {
	Source  string
	Reason  Cause
	message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("the update graph %s %s", e.Source, e.message) }
