// Package updateplan answers: how does this cluster get to a release, what does it cost, and what blocks each
// update on the way?
//
// A plan is advice from an update graph: only a preflight of its release decides whether an update is safe. Only
// the first update can be evaluated as CVO will evaluate it; statements about later ones are provisional, since
// the cluster will have changed.
package updateplan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/updateplan/path"
	"github.com/openshift/update-preflight/collector/words"
)

// Kind is the kind of the document; its apiVersion is [report.APIVersion].
const Kind = "UpdatePlan"

// Decision is the conclusion of a plan.
type Decision string

// The decisions.
const (
	// Clear: no update of the path has an open risk, or a finding that is against it.
	Clear Decision = "Clear"
	// Blocked: a finding about the first update must be fixed before it.
	Blocked Decision = "Blocked"
	// Undecided: a finding about the first update is inconclusive.
	Undecided Decision = "Undecided"
	// LaterFindings: no finding is against the first update, and a finding is against a later one, based on the
	// current cluster.
	LaterFindings Decision = "LaterFindings"
	// OpenRisks: every path has open risks, and one on the best path applies to the cluster.
	OpenRisks Decision = "OpenRisks"
	// Inconclusive: every path has open risks, and it is unknown whether those on the best path apply.
	Inconclusive Decision = "Inconclusive"
	// NoPath: the graph has no path to the target.
	NoPath Decision = "NoPath"
)

// Plan is the document of a plan. Readers ignore fields that they do not know.
type Plan struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	ToolVersion string `json:"toolVersion"`
	// Time is when the plan was made, in UTC (RFC 3339).
	Time     string   `json:"time"`
	Decision Decision `json:"decision"`
	// Cluster is the ID of the cluster; empty for a plan without a cluster.
	Cluster string `json:"cluster,omitempty"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Architecture is the architecture of the graph, by the name that update services use.
	Architecture string `json:"architecture"`
	// Graphs are the sources of the graph: channels, or names of files.
	Graphs []string `json:"graphs"`
	// NoPath is why there is no path; nil unless Decision is NoPath.
	NoPath *NoPathCause `json:"noPath,omitempty"`
	// Updates are the updates of the path, in order; none if the cluster already runs the target or there is no path.
	Updates []Update `json:"updates"`
	// Steps are, for a hosted cluster, the updates of its control plane and of its NodePools, in order.
	Steps []Step `json:"steps,omitempty"`
	// Alternatives are other paths; none if the path has the fewest updates and no conditional one.
	Alternatives []Alternative   `json:"alternatives"`
	Pools        []Pool          `json:"pools"`
	Duration     report.Duration `json:"duration"`
	// Missing are the parts of the plan that could not be determined, and why.
	Missing []string `json:"missing"`
	// Notices are parts of the graph that are ignored, and limitations.
	Notices []string `json:"notices"`
	// Comparison is with a stored plan; nil if none was given.
	Comparison *Comparison `json:"comparison,omitempty"`

	// mirror is not part of the document.
	mirror []imageset.File
}

// NoPathCause is why there is no path to a target.
type NoPathCause struct {
	Reason  path.Cause `json:"reason"`
	Message string     `json:"message"`
	// Remedy is an imperative sentence.
	Remedy string `json:"remedy"`
}

// Update is one update of the path.
type Update struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Kind is Patch, Minor or Major.
	Kind string `json:"kind"`
	// Image is the pull spec of the release by digest.
	Image string `json:"image"`
	// URL is the address of the errata; empty if unknown.
	URL string `json:"url,omitempty"`
	// Channel is the channel to set before the update: one of Channels, which have it.
	Channel  string   `json:"channel"`
	Channels []string `json:"channels"`
	// Provisional is true for an update that does not start from the current release: its risks and findings were
	// evaluated on the current cluster.
	Provisional bool   `json:"provisional"`
	Risks       []Risk `json:"risks"`
	// Findings are the findings of all gates for the first update; for later ones, of the gates that can be evaluated
	// in advance: admin acknowledgements, removed APIs, and OLM operators.
	Findings []finding.Finding `json:"findings"`
	// Unpause are the pools to unpause before the update.
	Unpause []string `json:"unpause"`
	// ControlPlane is the duration without the nodes of other pools.
	ControlPlane report.Range `json:"controlPlane"`
}

// Step is the update of one object of a hosted cluster, which its management cluster has.
type Step struct {
	Object finding.Object `json:"object"`
	From   string         `json:"from"`
	To     string         `json:"to"`
	// Command is the request of the update in the management cluster; empty if there is none. It is written from Action.
	Command string         `json:"command,omitempty"`
	Action  finding.Action `json:"-"`
}

// Risk is a risk of a conditional update.
type Risk struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	URL     string `json:"url,omitempty"`

	Assessment

	// Accepted is who or what accepted the risk; empty if it was not accepted.
	Accepted string `json:"accepted,omitempty"`
	// Open is true for a risk that applies, or might, and is not accepted.
	Open bool `json:"open"`
}

// Applies is whether a risk applies to the cluster.
type Applies string

// The values of Applies.
const (
	True    Applies = "True"
	False   Applies = "False"
	Unknown Applies = "Unknown"
)

// Assessment says whether a risk currently applies to the cluster, and why that is unknown.
type Assessment struct {
	Applies Applies `json:"applies"`
	// EvaluatedBy is CVO or Preflight; empty for a risk that was not evaluated.
	EvaluatedBy Evaluator `json:"evaluatedBy,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Detail      string    `json:"detail,omitempty"`
}

// Evaluator names the program that evaluated a risk.
type Evaluator string

// The evaluators.
const (
	// CVO evaluated the risk: ClusterVersion has its assessment.
	CVO Evaluator = "CVO"
	// Preflight is this program.
	Preflight Evaluator = "Preflight"
)

// Alternative is another path, with its differences from the best one.
type Alternative struct {
	// Name is FewestUpdates, or Recommended for a path without conditional updates.
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
	Updates  int      `json:"updates"`
	// OpenRisks counts the open risks of each update; one of two updates counts twice.
	OpenRisks int `json:"openRisks"`
	// Risks are the names of the open risks, each once, sorted.
	Risks []string `json:"risks"`
}

// The names of alternatives.
const (
	FewestUpdates = "FewestUpdates"
	Recommended   = "Recommended"
)

// Pool is a pool of nodes outside the control plane.
type Pool struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	// Parallel is how many of its nodes are updated at a time.
	Parallel int `json:"parallel"`
	// Paused is true if the pool is currently paused.
	Paused bool `json:"paused"`
	// Unpause are the versions at which to unpause the pool until its nodes are updated, if
	// it is paused otherwise; empty if it is not paused and pausing saves no reboot, or
	// that is unknown.
	Unpause []string `json:"unpause"`
	// Reboots is how often each node is rebooted with that schedule, and RebootsUnpaused how often without.
	Reboots         int `json:"reboots"`
	RebootsUnpaused int `json:"rebootsUnpaused"`
}

// Comparison is the result of comparing a stored plan with the current graph.
type Comparison struct {
	// Time is when the stored plan was made.
	Time string `json:"time"`
	// Rest are the versions that the stored plan still goes through, including the current one.
	Rest []string `json:"rest"`
	// Holds is true if nothing changed about the rest.
	Holds   bool     `json:"holds"`
	Changes []Change `json:"changes"`
}

// ChangeReason names a kind of change.
type ChangeReason string

// The reasons of a Change.
const (
	// LeftPath: the cluster has a version that the stored plan does not go through.
	LeftPath ChangeReason = "LeftPath"
	// UpdateGone: the graph has the update no longer.
	UpdateGone ChangeReason = "UpdateGone"
	// ImageChanged: a release has another image.
	ImageChanged ChangeReason = "ImageChanged"
	// RiskOpen: a risk is open that was not.
	RiskOpen ChangeReason = "RiskOpen"
)

// Change is a difference to a stored plan.
type Change struct {
	Reason  ChangeReason `json:"reason"`
	Message string       `json:"message"`
}

// Mirror are the configurations of oc-mirror for the releases of the path, in the order in
// which they are mirrored; none for a plan that was read.
func (p Plan) Mirror() []imageset.File { return p.mirror }

// The bounds of a stored plan.
const (
	maxStored  = 16 << 20
	maxUpdates = 1000
	maxPools   = 200
)

// Read reads a plan that was stored as JSON. The error says what is wrong with it.
func Read(r io.Reader) (Plan, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxStored+1))
	if err != nil {
		return Plan{}, err
	}
	if len(content) > maxStored {
		return Plan{}, fmt.Errorf("the plan is larger than %d bytes", maxStored)
	}
	var stored Plan
	if err := json.Unmarshal(content, &stored); err != nil {
		return Plan{}, fmt.Errorf("the plan is not JSON: %w", err)
	}
	if stored.APIVersion != report.APIVersion || stored.Kind != Kind {
		return Plan{}, fmt.Errorf("the document is %q %q, not %q %q",
			words.Line(stored.APIVersion, 64), words.Line(stored.Kind, 64), report.APIVersion, Kind)
	}
	return stored, stored.consistent()
}

// consistent returns an error for a plan that is too large or contradicts itself.
func (p Plan) consistent() error {
	if len(p.Updates) > maxUpdates {
		return fmt.Errorf("the plan has %d updates, more than %d", len(p.Updates), maxUpdates)
	}
	if len(p.Pools) > maxPools {
		return fmt.Errorf("the plan has %d pools, more than %d", len(p.Pools), maxPools)
	}
	if (p.Decision == NoPath) != (p.NoPath != nil) || p.NoPath != nil && len(p.Updates) > 0 {
		return fmt.Errorf("the plan contradicts itself: its decision is %q, and it has %s", words.Line(string(p.Decision), 64),
			words.Count(len(p.Updates), "update"))
	}
	if p.NoPath != nil {
		return nil
	}
	at := p.From
	for _, each := range p.Updates {
		if each.From != at || update.KindOf(each.From, each.To) == "" {
			return fmt.Errorf("the plan contradicts itself: an update from %q to %q follows %q",
				words.Line(each.From, 64), words.Line(each.To, 64), words.Line(at, 64))
		}
		at = each.To
	}
	if at != p.To {
		return errors.New("the plan contradicts itself: its updates do not end at its target")
	}
	// Earlier versions stored the decision of the risks alone.
	if decided := decide(p.Updates); p.Decision != decided && p.Decision != ofRisks(p.Updates) {
		return fmt.Errorf("the plan contradicts itself: its decision is %q, but its risks and findings make it %s",
			words.Line(string(p.Decision), 64), decided)
	}
	return nil
}

// Compare compares the rest of a stored plan with the graph and the cluster as they are now.
func (b Basis) Compare(stored Plan) Comparison {
	compared := Comparison{Time: stored.Time, Rest: []string{}, Changes: []Change{}}
	first := slices.IndexFunc(stored.Updates, func(each Update) bool { return each.From == b.From })
	switch {
	case stored.To == b.From:
		compared.Rest, compared.Holds = []string{b.From}, true
		return compared
	case first < 0:
		compared.add(LeftPath, "%s is not on the path of the stored plan from %s to %s", b.From, stored.From, stored.To)
		return compared
	}
	compared.Rest = append(compared.Rest, b.From)
	for _, each := range stored.Updates[first:] {
		compared.Rest = append(compared.Rest, each.To)
		b.compareUpdate(&compared, each)
	}
	compared.Holds = len(compared.Changes) == 0
	return compared
}

func (b Basis) compareUpdate(compared *Comparison, stored Update) {
	from, to := b.Graph.Find(stored.From), b.Graph.Find(stored.To)
	i := slices.IndexFunc(b.Graph.Updates, func(each graph.Update) bool { return each.From == from && each.To == to })
	if i < 0 {
		compared.add(UpdateGone, "the graph no longer has the update from %s to %s", stored.From, stored.To)
		return
	}
	if image := b.Graph.Releases[to].Image; image != stored.Image {
		compared.add(ImageChanged, "the image of %s is %s, and was %s", stored.To, image, stored.Image)
	}
	accepted := b.Accepted(stored.To)
	for _, risk := range b.Graph.Updates[i].Risks {
		_, isAccepted := accepted[risk.Name]
		wasOpen := slices.ContainsFunc(stored.Risks, func(before Risk) bool { return before.Name == risk.Name && before.Open })
		if applies := b.Assess(risk).Applies; !isAccepted && !wasOpen && applies != False {
			compared.add(RiskOpen, "the update from %s to %s has the open risk %s (applies: %s), which was not open",
				stored.From, stored.To, risk.Name, applies)
		}
	}
}

func (c *Comparison) add(reason ChangeReason, format string, args ...any) {
	c.Changes = append(c.Changes, Change{Reason: reason, Message: words.Line(fmt.Sprintf(format, args...), 1<<10)})
}
