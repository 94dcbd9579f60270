// Package graph answers: which updates between which releases does the update service
// offer, and at which risks?
//
// A graph is advice: what is run or mirrored is decided by signatures and digests. It
// comes from outside, so its size is bounded, and what contradicts itself is refused or
// ignored with a [Notice].
//
// Source: openshift/cincinnati docs/design/openshift.md, and the reader of it in CVO
// (pkg/cincinnati/cincinnati.go).
package graph

import (
	"slices"

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
