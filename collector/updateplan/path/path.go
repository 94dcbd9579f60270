// Package path answers: how does a cluster get from one release to another, in the fewest
// updates and past the fewest risks?
//
// Paths are compared by the number of risks that are open, counted once for each update;
// then by the number of updates; then by the version after the first update, the newest
// first, and so on. The rest of the best path is the best path of the rest: planning
// again after an update gives the rest of the plan.
package path

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
)

// Hop is one update of a path.
type Hop struct {
	From, To graph.Node
	Risks    []graph.Risk
	// Open are the names of the risks that are open, sorted.
	Open []string
	// Sources are the graphs that have the update, sorted.
	Sources []string
}

// Path is a sequence of updates.
type Path []Hop

// Open is the number of risks that are open, counted once for each update.
func (p Path) Open() int {
	count := 0
	for _, hop := range p {
		count += len(hop.Open)
	}
	return count
}

// OpenRisks are the names of the open risks, each once, sorted.
func (p Path) OpenRisks() []string {
	names := []string{}
	for _, hop := range p {
		names = append(names, hop.Open...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Versions are all versions from the first to the last.
func (p Path) Versions() []string {
	if len(p) == 0 {
		return nil
	}
	versions := []string{p[0].From.Version}
	for _, hop := range p {
		versions = append(versions, hop.To.Version)
	}
	return versions
}

// Cause is why there is no path.
type Cause string

// The reasons of an Error.
const (
	SourceNotInChannel Cause = "SourceNotInChannel"
	TargetNotInChannel Cause = "TargetNotInChannel"
	NoPath             Cause = "NoPath"
	// TargetNotNewer is the release that the path starts from, or an older one.
	TargetNotNewer Cause = "TargetNotNewer"
)

// Error is the error of a search without a result.
type Error struct {
	Reason   Cause
	From, To string
}

// Error implements error.
func (e *Error) Error() string {
	switch e.Reason {
	case SourceNotInChannel:
		return fmt.Sprintf("%s is in none of the channels", e.From)
	case TargetNotInChannel:
		return fmt.Sprintf("%s is in none of the channels", e.To)
	case TargetNotNewer:
		return fmt.Sprintf("%s is not newer than %s", e.To, e.From)
	case NoPath:
	}
	if e.To == "" {
		return "the channels contain no update from " + e.From
	}
	return fmt.Sprintf("the channels contain no path from %s to %s", e.From, e.To)
}

// Finder searches paths in one graph.
type Finder struct {
	graph *graph.Graph
	open  [][]string
	// from are the indexes of the updates from each release: from[i] to from[i+1].
	from []int
}

// NewFinder makes a Finder. A risk of an update to a release is open if it applies to the
// cluster, or might, and is not accepted for that release.
func NewFinder(g *graph.Graph, isOpen func(to graph.Node, risk graph.Risk) bool) *Finder {
	f := &Finder{graph: g, open: make([][]string, len(g.Updates)), from: make([]int, len(g.Releases)+1)}
	for i, found := range g.Updates {
		for _, risk := range found.Risks {
			if isOpen(g.Releases[found.To], risk) {
				f.open[i] = append(f.open[i], risk.Name)
			}
		}
		slices.Sort(f.open[i])
		f.from[found.From+1]++
	}
	for i := range g.Releases {
		f.from[i+1] += f.from[i]
	}
	return f
}

// Paths are the best path and the two alternatives to it that are worth knowing.
type Paths struct {
	Best Path
	// Fewest has the fewest updates, and Recommended no conditional update; nil if that is the best path, or there is
	// none.
	Fewest, Recommended Path
}

// Find is the best path between two versions, with its alternatives. The error is an
// *Error.
func (f *Finder) Find(from, to string) (Paths, error) {
	start, end := f.graph.Find(from), f.graph.Find(to)
	switch {
	case start < 0:
		return Paths{}, &Error{Reason: SourceNotInChannel, From: from, To: to}
	case end < 0:
		return Paths{}, &Error{Reason: TargetNotInChannel, From: from, To: to}
	case end <= start:
		return Paths{}, &Error{Reason: TargetNotNewer, From: from, To: to}
	}
	all := func(int) bool { return true }
	best := f.search(start, end, func(open int) cost { return cost{open, 1} }, all)
	if best == nil {
		return Paths{}, &Error{Reason: NoPath, From: from, To: to}
	}
	found := Paths{Best: best}
	if fewest := f.search(start, end, func(open int) cost { return cost{1, open} }, all); len(fewest) < len(best) {
		found.Fewest = fewest
	}
	if slices.ContainsFunc(best, func(hop Hop) bool { return len(hop.Risks) > 0 }) {
		found.Recommended = f.search(start, end, func(int) cost { return cost{1} },
			func(i int) bool { return len(f.graph.Updates[i].Risks) == 0 })
	}
	return found, nil
}

// Newest is the newest release of a minor version, such as "4.18", that can be reached, and
// the newest of that minor version in the graph, which may be another one. Without a minor
// version, it leads to the highest one. The error is an *Error.
func (f *Finder) Newest(from, minor string) (reachable, newest graph.Node, err error) {
	start := f.graph.Find(from)
	if start < 0 {
		return graph.Node{}, graph.Node{}, &Error{Reason: SourceNotInChannel, From: from}
	}
	isReachable := f.reachable(start)
	last, end := -1, -1
	for i, release := range f.graph.Releases {
		if minor != "" && update.Line(release.Parsed) != minor {
			continue
		}
		end = i
		if isReachable[i] && i > start {
			last = i
		}
	}
	switch {
	case end < 0:
		return graph.Node{}, graph.Node{}, &Error{Reason: TargetNotInChannel, From: from, To: minor}
	case last < 0:
		return graph.Node{}, graph.Node{}, &Error{Reason: NoPath, From: from, To: minor}
	}
	return f.graph.Releases[last], f.graph.Releases[end], nil
}

// reachable are the releases that can be reached, start included.
func (f *Finder) reachable(start int) []bool {
	found := make([]bool, len(f.graph.Releases))
	found[start] = true
	for release := start; release < len(found); release++ {
		if !found[release] {
			continue
		}
		for i := f.from[release]; i < f.from[release+1]; i++ {
			found[f.graph.Updates[i].To] = true
		}
	}
	return found
}

// Risks returns the risks of all updates on any path between two versions, in the order of the updates; none if a
// version is not in the graph.
func Risks(g *graph.Graph, from, to string) []graph.Risk {
	start, end := g.Find(from), g.Find(to)
	if start < 0 || end < 0 {
		return nil
	}
	fromStart := NewFinder(g, func(graph.Node, graph.Risk) bool { return false }).reachable(start)
	toEnd := make([]bool, len(g.Releases))
	toEnd[end] = true
	for _, each := range slices.Backward(g.Updates) {
		toEnd[each.From] = toEnd[each.From] || toEnd[each.To]
	}
	var risks []graph.Risk
	for _, each := range g.Updates {
		if fromStart[each.From] && toEnd[each.To] {
			risks = append(risks, each.Risks...)
		}
	}
	return risks
}

// cost is the cost of an update or a path; the first number weighs more.
type cost [2]int

func (c cost) plus(other cost) cost { return cost{c[0] + other[0], c[1] + other[1]} }

func (c cost) compare(other cost) int {
	return cmp.Or(cmp.Compare(c[0], other[0]), cmp.Compare(c[1], other[1]))
}

// search is the path of the lowest cost over some updates; nil if there is none.
// All updates are to newer releases, so the cost from each release is known when those
// of all newer ones are.
func (f *Finder) search(start, end int, weigh func(open int) cost, usable func(i int) bool) Path {
	unreachable := cost{math.MaxInt}
	costs, next := make([]cost, end+1), make([]int, end+1)
	for release := end - 1; release >= start; release-- {
		costs[release] = unreachable
		for i := f.from[release]; i < f.from[release+1]; i++ {
			to := f.graph.Updates[i].To
			if to > end || costs[to] == unreachable || !usable(i) {
				continue
			}
			// Updates are sorted by version: among updates of equal cost, the newest wins.
			if total := weigh(len(f.open[i])).plus(costs[to]); total.compare(costs[release]) <= 0 {
				costs[release], next[release] = total, i
			}
		}
	}
	if costs[start] == unreachable {
		return nil
	}
	var found Path
	for release := start; release != end; release = f.graph.Updates[next[release]].To {
		found = append(found, f.hop(next[release]))
	}
	return found
}

func (f *Finder) hop(i int) Hop {
	found := f.graph.Updates[i]
	return Hop{
		From: f.graph.Releases[found.From], To: f.graph.Releases[found.To], Risks: found.Risks, Open: f.open[i], Sources: found.Sources,
	}
}
