package report

import (
	"slices"

	"github.com/openshift/update-preflight/collector/verdict"
)

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
