package updateplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/updateplan/path"
	"github.com/openshift/update-preflight/collector/words"
)

// Paths are the paths to a version. The error is an *Unreachable.
func (b Basis) Paths(to string) (path.Paths, error) {
	found, err := b.finder().Find(b.From, to)
	if err != nil {
		return path.Paths{}, b.unreachable(err)
	}
	return found, nil
}

// New makes the plan of these paths.
func New(b Basis, paths path.Paths) (Plan, error) {
	versions := paths.Best.Versions()
	made := b.document(versions[len(versions)-1])
	made.From, made.Graphs, made.Alternatives = versions[0], b.Sources, alternatives(paths)
	made.Missing = append(made.Missing, b.Missing...)
	made.Notices = b.notices()
	made.Updates = b.updates(paths.Best)
	made.Decision = decide(made.Updates)
	made.schedule(b, paths.Best)
	made.estimate(b.Rollout)
	files, err := imageset.Files(b.Graph, paths.Best, b.Architecture, cmp.Or(b.ImageSet, imageset.V2))
	if err != nil {
		return Plan{}, fmt.Errorf("could not generate the configuration of oc-mirror: %w", err)
	}
	made.mirror = files
	return made, nil
}

// Complete is the plan of a cluster that has the target.
func Complete(b Basis, to string) Plan {
	made := b.document(to)
	made.Decision = Clear
	return made
}

// WithoutPath is the plan for a target without a path. Its target is empty if that is the
// newest release and there is none.
func WithoutPath(b Basis, failed *Unreachable) Plan {
	made := b.document(failed.Cause.To)
	made.Decision, made.Graphs, made.Notices = NoPath, b.Sources, b.notices()
	made.NoPath = &NoPathCause{Reason: failed.Cause.Reason, Message: failed.Cause.Error(), Remedy: failed.Remediation}
	return made
}

// document has what is the same in all plans; its lists are empty.
func (b Basis) document(to string) Plan {
	return Plan{
		APIVersion: report.APIVersion, Kind: Kind, ToolVersion: b.ToolVersion, Time: words.Time(b.Now),
		Cluster: b.Cluster, From: b.From, To: to, Architecture: b.Architecture, Graphs: []string{},
		Updates: []Update{}, Alternatives: []Alternative{}, Pools: []Pool{}, Missing: []string{}, Notices: []string{},
		Duration: report.Duration{Basis: []string{}},
	}
}

func (b Basis) notices() []string {
	messages := append(append([]string{}, b.Notices...), b.Rollout.Notices...)
	for _, notice := range b.Graph.Notices {
		if !slices.Contains(messages, notice.Message) {
			messages = append(messages, notice.Message)
		}
	}
	return messages
}

func (b Basis) updates(best path.Path) []Update {
	channels := channelsOf(b.Channel, best)
	updates := make([]Update, 0, len(best))
	for i, hop := range best {
		made := Update{
			From: hop.From.Version, To: hop.To.Version, Kind: update.KindOf(hop.From.Version, hop.To.Version), Image: hop.To.Image,
			URL: hop.To.Errata, Channel: channels[i], Channels: hop.Sources, Provisional: i > 0,
			Risks: []Risk{}, Findings: append([]finding.Finding{}, b.Findings[hop.To.Version]...), Unpause: []string{},
		}
		accepted := b.Accepted(hop.To.Version)
		for _, risk := range hop.Risks {
			made.Risks = append(made.Risks, Risk{
				Name: risk.Name, Message: risk.Message, URL: risk.URL, Assessment: b.Assess(risk),
				Accepted: accepted[risk.Name], Open: slices.Contains(hop.Open, risk.Name),
			})
		}
		updates = append(updates, made)
	}
	return updates
}

// channelsOf returns the channel of each update, with as few changes as possible; among equally good ones the
// current channel, then the channel of the highest minor version.
func channelsOf(present string, best path.Path) []string {
	chosen := make([]string, 0, len(best))
	for len(chosen) < len(best) {
		name, length := "", 0
		for _, candidate := range best[len(chosen)].Sources {
			count := covered(best[len(chosen):], candidate)
			if count > length || count == length && name != present && (candidate == present || laterChannel(candidate, name)) {
				name, length = candidate, count
			}
		}
		for range max(length, 1) {
			chosen = append(chosen, name)
		}
		present = name
	}
	return chosen
}

// covered is how many updates from the first on a channel has.
func covered(rest path.Path, channel string) int {
	for i, hop := range rest {
		if !slices.Contains(hop.Sources, channel) {
			return i
		}
	}
	return len(rest)
}

// laterChannel reports whether a channel belongs to a higher minor version.
func laterChannel(channel, than string) bool {
	first, second := minorOf(channel), minorOf(than)
	return first.GT(second) || first.EQ(second) && channel > than
}

// minorOf is the minor version in the name of a channel such as eus-4.18; zero if there is none.
func minorOf(channel string) semver.Version {
	_, minor, _ := strings.Cut(channel, "-")
	parsed, err := semver.Parse(minor + ".0")
	if err != nil {
		return semver.Version{}
	}
	return parsed
}

// decide is the decision of the first update, unless the risks of the path are worse.
func decide(updates []Update) Decision {
	risks := ofRisks(updates)
	switch first := ofFindings(updates[:min(1, len(updates))]); {
	case first == Blocked:
		return Blocked
	case risks == OpenRisks:
		return OpenRisks
	case first == Undecided:
		return Undecided
	case risks != Clear:
		return risks
	}
	if ofFindings(updates) != Clear {
		return LaterFindings
	}
	return Clear
}

// ofFindings is Blocked or Undecided where a finding about the updates is against them, Clear otherwise.
func ofFindings(updates []Update) Decision {
	decision := Clear
	for _, each := range updates {
		for _, f := range each.Findings {
			switch {
			case f.Open() && f.Stops():
				return Blocked
			case f.Open():
				decision = Undecided
			}
		}
	}
	return decision
}

// ofRisks is the decision by the risks of the path alone.
func ofRisks(updates []Update) Decision {
	decision := Clear
	for _, each := range updates {
		for _, risk := range each.Risks {
			switch {
			case risk.Open && risk.Applies == True:
				return OpenRisks
			case risk.Open:
				decision = Inconclusive
			}
		}
	}
	return decision
}

func alternatives(paths path.Paths) []Alternative {
	found := []Alternative{}
	for _, each := range []struct {
		name string
		path path.Path
	}{{FewestUpdates, paths.Fewest}, {Recommended, paths.Recommended}} {
		if len(each.path) > 0 {
			found = append(found, Alternative{
				Name: each.name, Versions: each.path.Versions(), Updates: len(each.path), OpenRisks: each.path.Open(), Risks: each.path.OpenRisks(),
			})
		}
	}
	return found
}

// schedule decides when each pool is unpaused.
func (p *Plan) schedule(b Basis, best path.Path) {
	versions := []semver.Version{best[0].From.Parsed}
	crosses := false
	for _, hop := range best {
		versions = append(versions, hop.To.Parsed)
		crosses = crosses || update.Update{From: hop.From.Parsed, To: hop.To.Parsed}.LeavesMinor()
	}
	p.Pools = []Pool{}
	for _, nodes := range b.Rollout.Pools {
		pool := Pool{
			Name: nodes.Name, Nodes: nodes.Nodes, Parallel: nodes.Parallel, Paused: nodes.Paused,
			Unpause: []string{}, Reboots: len(best), RebootsUnpaused: len(best),
		}
		at, err := rollout.Unpause(versions, nodes.Kubelet)
		switch {
		case err != nil:
			p.Missing = append(p.Missing, fmt.Sprintf("when to unpause the pool %s: %v", nodes.Name, err))
		case crosses && (len(at) < len(best) || nodes.Paused):
			pool.Reboots = len(at)
			for _, i := range at {
				pool.Unpause = append(pool.Unpause, best.Versions()[i])
				if i < len(p.Updates) {
					p.Updates[i].Unpause = append(p.Updates[i].Unpause, nodes.Name)
				}
			}
		}
		p.Pools = append(p.Pools, pool)
	}
}

// UnpausedAt are the positions on the path at which a pool is unpaused.
func (p Plan) UnpausedAt(pool Pool) []int {
	var at []int
	for i, version := range p.Versions() {
		if slices.Contains(pool.Unpause, version) {
			at = append(at, i)
		}
	}
	return at
}

// Versions lists the versions of the path, the current one first.
func (p Plan) Versions() []string {
	versions := []string{p.From}
	for _, each := range p.Updates {
		versions = append(versions, each.To)
	}
	return versions
}

func (p *Plan) estimate(on Rollout) {
	kinds := make([]update.Kind, 0, len(p.Updates))
	for _, each := range p.Updates {
		kinds = append(kinds, update.Kind(each.Kind))
	}
	pools := make([]rollout.Pool, 0, len(p.Pools))
	for _, pool := range p.Pools {
		pools = append(pools, rollout.Pool{Name: pool.Name, Nodes: pool.Nodes, Parallel: pool.Parallel, Unpause: p.UnpausedAt(pool)})
	}
	estimate := on.Model.Estimate(kinds, pools)
	var control rollout.Range
	for i, each := range estimate.ControlPlane {
		p.Updates[i].ControlPlane = report.RangeOf(each)
		control = rollout.Range{Low: control.Low + each.Low, Expected: control.Expected + each.Expected, High: control.High + each.High}
	}
	p.Duration = report.Duration{
		ControlPlane: report.RangeOf(control), Total: report.RangeOf(estimate.Total), DrainsRehearsed: on.Model.Drains != nil,
		Basis: on.Basis, ProlongedBy: on.ProlongedBy,
	}
}
