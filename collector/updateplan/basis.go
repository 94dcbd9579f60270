package updateplan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// Basis is the input of a plan.
type Basis struct {
	Graph *graph.Graph
	// Sources are the names of the graphs that Graph is the union of.
	Sources      []string
	From         string
	Architecture string
	// Channel is the current channel; empty without a cluster.
	Channel string
	// Accepted are the details of the acceptances for a version, by the name of the risk.
	Accepted func(version string) map[string]string
	// Assess is whether a risk applies.
	Assess   func(graph.Risk) Assessment
	ImageSet imageset.Format

	// Cluster is the ID of the cluster; empty without one.
	Cluster string
	Rollout Rollout
	// Findings are the findings of gates, by the version that they are about.
	Findings map[string][]finding.Finding
	// Missing are parts that could not be determined, and Notices limitations of the input.
	Missing     []string
	Notices     []string
	Now         time.Time
	ToolVersion string
}

// Rollout has the inputs of the times and reboots.
type Rollout struct {
	Model rollout.Model
	// Basis lists the sources of the model's numbers.
	Basis []string
	Pools []Nodes
	// ProlongedBy names what makes the updates take longer.
	ProlongedBy []string
	// Notices are limitations that follow from the topology.
	Notices []string
}

// Nodes are the nodes of one pool outside the control plane.
type Nodes struct {
	Name            string
	Nodes, Parallel int
	Paused          bool
	// Kubelet is the minor version of the oldest kubelet.
	Kubelet uint64
}

func (b Basis) finder() *path.Finder {
	accepted := map[string]map[string]string{}
	return path.NewFinder(b.Graph, func(to graph.Node, risk graph.Risk) bool {
		if accepted[to.Version] == nil {
			accepted[to.Version] = b.Accepted(to.Version)
		}
		_, isAccepted := accepted[to.Version][risk.Name]
		return !isAccepted && b.Assess(risk).Applies != False
	})
}

// Target is the release to plan for: a version, or the newest that can be reached.
type Target struct {
	// Version is the version; empty for the newest that can be reached, of the minor
	// version Minor, such as 4.18, or of the highest one if that is empty as well.
	Version, Minor string
}

// Resolve returns the version of a target. The notice is about newer releases that cannot be reached; empty if
// there are none. The error is an *Unreachable.
func (b Basis) Resolve(target Target) (version, notice string, err error) {
	if target.Version != "" {
		return target.Version, "", nil
	}
	reachable, newest, err := b.finder().Newest(b.From, target.Minor)
	if err != nil {
		return "", "", b.unreachable(err)
	}
	if newest.Version != reachable.Version {
		notice = fmt.Sprintf("%s is newer than %s, but no release that can be reached from %s has an update to it", newest.Version,
			reachable.Version, b.From)
	}
	return reachable.Version, notice, nil
}

// Unreachable is the error for a target without a path.
type Unreachable struct {
	Cause *path.Error
	// Sources are the graphs that were searched.
	Sources []string
	// Remediation is an imperative sentence.
	Remediation string
}

// Remedy is the remediation, which has no commands.
func (e *Unreachable) Remedy() (sentence string, commands []finding.Action) {
	return e.Remediation, nil
}

// Error implements error.
func (e *Unreachable) Error() string {
	return fmt.Sprintf("%v; the channels are %s", e.Cause, strings.Join(e.Sources, ", "))
}

// Unwrap is the cause.
func (e *Unreachable) Unwrap() error { return e.Cause }

func (b Basis) unreachable(err error) error {
	cause, ok := errors.AsType[*path.Error](err)
	if !ok {
		return err
	}
	return &Unreachable{Cause: cause, Sources: b.Sources, Remediation: b.remedy(cause)}
}

// remedy names channels by the metadata of the releases that the graph has.
func (b Basis) remedy(cause *path.Error) string {
	from, to := b.channels(cause.From), b.channels(cause.To)
	switch cause.Reason {
	case path.SourceNotInChannel:
		if len(to) > 0 {
			return fmt.Sprintf("Add a channel that has both releases; %s is in %s.", cause.To, strings.Join(to, ", "))
		}
		return fmt.Sprintf("Add a channel that has %s, such as stable-%s.", cause.From, lineOf(cause.From))
	case path.TargetNotInChannel:
		line := lineOf(cause.To)
		also := slices.DeleteFunc(from, func(channel string) bool { return !strings.HasSuffix(channel, "-"+line) })
		if len(also) > 0 {
			return fmt.Sprintf("Add a channel of %s; %s is also in %s.", line, cause.From, strings.Join(also, ", "))
		}
		return fmt.Sprintf("Add channels of %s and of the minor versions before it, such as stable-%[1]s or eus-%[1]s.", line)
	case path.TargetNotNewer:
		return "Choose a release that is newer than the current one."
	case path.NoPath:
	}
	both := slices.DeleteFunc(from, func(channel string) bool { return !slices.Contains(to, channel) || slices.Contains(b.Sources, channel) })
	if len(both) > 0 {
		return fmt.Sprintf("Add a channel that has both releases: %s.", strings.Join(both, ", "))
	}
	return "Choose a newer release: an older one may have been published before the current release. Or add the channels of the minor " +
		"versions between them."
}

// channels lists the channels of a release by its metadata; none for a release that the graph does not have.
func (b Basis) channels(version string) []string {
	i := b.Graph.Find(version)
	if i < 0 {
		return nil
	}
	return slices.Sorted(slices.Values(b.Graph.Releases[i].Channels))
}

func lineOf(version string) string {
	parsed, err := semver.Parse(version)
	if err != nil {
		return version
	}
	return update.Line(parsed)
}

// Risks are the risks of all updates on any path to a version, each once by its Key.
func (b Basis) Risks(to string) []graph.Risk {
	seen := map[string]bool{}
	return slices.DeleteFunc(path.Risks(b.Graph, b.From, to), func(risk graph.Risk) bool {
		twice := seen[Key(risk)]
		seen[Key(risk)] = true
		return twice
	})
}

// Key identifies the evaluated part of a risk: its name and rules.
func Key(risk graph.Risk) string {
	parts := []string{risk.Name}
	for _, rule := range risk.Rules {
		parts = append(parts, rule.Type, rule.PromQL)
	}
	return strings.Join(parts, "\x00")
}
