package report

import (
	"cmp"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
)

const (
	// TargetsKind is the kind of Targets.
	TargetsKind = "PreflightTargets"
	// AnyTarget stands for the version of the target in the texts of findings that are about more than one.
	AnyTarget = "TARGET"
)

// Targets is the verdict of gates, risks and health on every update that the cluster
// knows. The releases are not verified and their checks not run, so no target is
// proven to be Ready.
type Targets struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the cluster was read, RFC 3339 in UTC.
	Time        string  `json:"time"`
	ToolVersion string  `json:"toolVersion"`
	Cluster     Cluster `json:"cluster"`
	// Channel is spec.channel of ClusterVersion.
	Channel string `json:"channel"`
	// Targets are the newest first; versions that are not SemVer come last.
	Targets []Candidate `json:"targets"`
	// Findings are sorted as in a Report. A finding about several targets is listed
	// once: in its texts AnyTarget stands for each of them.
	Findings []TargetFinding `json:"findings"`
	// Actions are the next steps. The program that shows the document adds them.
	Actions []finding.Action `json:"actions,omitempty"`
}

// Next is the target to continue with: the newest that is clear, or the newest if none
// is, and an available update rather than a conditional one; false if there are no targets.
func (t Targets) Next() (Candidate, bool) {
	listed := t.ByUrgency()
	if len(listed) == 0 {
		return Candidate{}, false
	}
	for _, each := range listed {
		if each.Available && each.Verdict.Decision == listed[0].Verdict.Decision {
			return each, true
		}
	}
	return listed[0], true
}

// ByUrgency are the targets that are clear, then the undecided and the blocked ones, each the newest first.
func (t Targets) ByUrgency() []Candidate {
	rank := func(target Candidate) int {
		switch target.Verdict.Decision {
		case verdict.Ready:
			return 0
		case verdict.Blocked:
			return 2
		case verdict.Undecided, verdict.NothingKnown:
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(t.Targets), func(a, b Candidate) int { return cmp.Compare(rank(a), rank(b)) })
}

// Candidate is one update, and the verdict about it.
type Candidate struct {
	Version string `json:"version"`
	Image   string `json:"image"`
	// URL links to the errata of the release.
	URL string `json:"url,omitempty"`
	// UpdateKind is as in Target, and empty where the version is not SemVer.
	UpdateKind string `json:"updateKind,omitempty"`
	// Available and Conditional are the lists of ClusterVersion's status that have it:
	// CVO lists a conditional update that it recommends in both.
	Available   bool `json:"available"`
	Conditional bool `json:"conditional"`
	// Recommended is CVO's condition: True, False or Unknown.
	Recommended string              `json:"recommended"`
	Verdict     verdict.Verdict     `json:"verdict"`
	Expected    verdict.Expectation `json:"expected"`
	CVO         CVO                 `json:"cvo"`
	// Duration is as in Report.
	Duration *Duration `json:"duration,omitempty"`
	// Actions have the one that starts the update, once a run of the target is Ready; none unless no finding
	// counts, and the request left nothing out.
	Actions []finding.Action `json:"actions,omitempty"`
}

// TargetFinding is one finding that is the same for some targets.
type TargetFinding struct {
	finding.Finding

	// Targets are the versions that it is about; none where it is about the list.
	Targets []string `json:"targets"`
}

// PathKind is the kind of Path.
const PathKind = "PreflightPath"

// Path is the result of the preflights of all updates of a path. The first starts from
// the present release; the others are provisional, since the cluster will have changed.
type Path struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	ToolVersion string `json:"toolVersion"`
	// Time is when the last of the preflights ended, RFC 3339 in UTC.
	Time    string  `json:"time"`
	Cluster Cluster `json:"cluster"`
	// Versions are those that the cluster goes through, its own first. That of an update
	// that is selected by image and was not read is empty.
	Versions []string `json:"versions"`
	// Decision is Blocked if that of an update is; otherwise Undecided if one is Undecided
	// or has no report; otherwise that of the first update.
	Decision verdict.Decision `json:"decision"`
	// Forced is true when force was requested.
	Forced bool `json:"forced"`
	// ForceReason is why, and ForcedBy the user who requested it; empty without force, and where it is not known.
	ForceReason string `json:"forceReason,omitempty"`
	ForcedBy    string `json:"forcedBy,omitempty"`
	// Updates are the reports in order. There are fewer than updates of the path if the preflight ended before.
	Updates []Report `json:"updates"`
	// Notices are limitations of the update graph, such as the age of a stored one.
	Notices []string `json:"notices,omitempty"`
}

// NewPath makes the document of a path from the reports of its updates, in order. At least
// one is required; versions are the releases of the whole path.
func NewPath(versions []string, updates []Report) Path {
	first, last := updates[0], updates[len(updates)-1]
	made := Path{
		APIVersion: APIVersion, Kind: PathKind, ToolVersion: first.Run.ToolVersion, Time: last.Run.CompletionTime,
		Cluster: first.Cluster, Versions: versions, Updates: updates,
		Forced: first.Verdict.Forced, ForceReason: first.Verdict.ForceReason, ForcedBy: first.Verdict.ForcedBy,
	}
	made.Decision = made.fold()
	return made
}

func (p Path) fold() verdict.Decision {
	var decisions []verdict.Decision
	for _, each := range p.Updates {
		decisions = append(decisions, each.Verdict.Decision)
	}
	for range max(0, p.planned()-len(p.Updates)) {
		decisions = append(decisions, verdict.Undecided)
	}
	return verdict.Whole(decisions)
}

// Holds reports whether the verdicts of all updates are current.
func (p Path) Holds() bool {
	return !slices.ContainsFunc(p.Updates, func(r Report) bool { return !r.Holds() })
}

func (p Path) planned() int { return len(p.Versions) - 1 }

// Interrupted reports whether a preflight of the path was interrupted or canceled.
func (p Path) Interrupted() bool {
	for _, each := range p.Updates {
		if each.Run.Phase == PhaseInterrupted || each.Run.Phase == PhaseCanceled {
			return true
		}
	}
	return false
}
