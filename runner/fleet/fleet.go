// Package fleet answers: which of many clusters may be updated, and what prevents the update of the others?
//
// [Of] returns the [Table] with the rows of all clusters; it is pure. [OfReport] returns the row of a cluster from its
// report; other packages of this wing create the other rows.
//
// Every text of a row may come from an untrusted cluster: Of bounds it and removes terminal control sequences.
package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Kind of a Table; its APIVersion is report.APIVersion.
const Kind = "PreflightFleet"

// Cluster is one member of a fleet.
type Cluster struct {
	// Name is the name of the cluster at its source. [Of] makes the names in a table unique.
	Name string `json:"name"`
	// ID is spec.clusterID of ClusterVersion; empty if it could not be read.
	ID string `json:"id,omitempty"`
	// Labels are the labels of the object that represents the cluster, such as its ClusterDeployment or ManagedCluster.
	Labels map[string]string `json:"labels,omitempty"`
	// Source is the source that lists the cluster, such as "context admin".
	Source string `json:"source"`
	// Archived is true for the cluster of an archive, which was read when the archive was gathered.
	Archived bool `json:"archived,omitempty"`
}

// State is whether a cluster may be updated, in one word.
type State string

// The states. Only Ready and Clear are in favor of the update.
const (
	// Ready means that all checks of the release ran, and none is against the update.
	Ready State = "Ready"
	// Clear means that no gate, risk or health check is against the update; the checks of the release were not run.
	Clear State = "Clear"
	// Blocked means that a finding must be fixed first.
	Blocked State = "Blocked"
	// Undecided means that a check was inconclusive, or that the verdict no longer holds.
	Undecided State = "Undecided"
	// Unreachable means that the cluster was not read, or not in time.
	Unreachable State = "Unreachable"
	// Hibernating means that the cluster is stopped on purpose: it has no verdict.
	Hibernating State = "Hibernating"
	// Updated means that the cluster runs the release already: nothing was evaluated.
	Updated State = "Updated"
	// NotInstalled means that there is no cluster to update, as yet or any longer.
	NotInstalled State = "NotInstalled"
)

// Row is the state of one cluster, as far as it is known.
type Row struct {
	Cluster Cluster `json:"cluster"`
	State   State   `json:"state"`
	// Version is the release that the cluster runs; empty if unknown.
	Version string `json:"version,omitempty"`
	// Target is the version that the row is about; empty for none.
	Target string `json:"target,omitempty"`
	// Targets are the updates that the cluster has, best first, if none is requested.
	Targets []Candidate `json:"targets,omitempty"`
	// Message is why there is no verdict, or how far it is limited; empty for neither.
	Message string `json:"message,omitempty"`
	// Causes are the causes against the update, without duplicates.
	Causes []Cause `json:"causes,omitempty"`
	// Observed is when the cluster was read, and Until when the verdict ends: RFC 3339 in UTC, empty where unknown.
	Observed string `json:"observed,omitempty"`
	Until    string `json:"until,omitempty"`
	// Update is the progress of the update to the target; nil if it was not read.
	Update *Update `json:"update,omitempty"`
	// LastUpdate is the last update of the cluster, to any release; nil if unknown.
	LastUpdate *LastUpdate `json:"lastUpdate,omitempty"`
	// Evidence is the origin of the row if it is not the cluster itself, such as an earlier result; empty otherwise.
	Evidence string `json:"evidence,omitempty"`
}

// Update is how far the update of a cluster is.
type Update struct {
	// Stage is a stage of package wave, such as Updated.
	Stage string `json:"stage"`
	// Since is when it became Updated, or Updating; RFC 3339 in UTC, empty if unknown.
	Since string `json:"since,omitempty"`
	// Message is why it is not Updated.
	Message string `json:"message,omitempty"`
	// Judgement is whether the update was good, as the cluster reports it; nil if no judgement is stored.
	Judgement *Judgement `json:"judgement,omitempty"`
}

// Judgement is whether an update was good.
type Judgement struct {
	// Status is the status of the condition AfterUpdate of an UpdatePreflight: True for Good, False for Regressed or
	// RolledBack, and Unknown if it is undecided or unknown. It is empty if a cluster of a hub does not report it.
	Status string `json:"status"`
	// Since is the start time; RFC 3339 in UTC, empty if unknown.
	Since string `json:"since,omitempty"`
	// Message is why the status is not True.
	Message string `json:"message,omitempty"`
}

// Candidate is one update that a cluster has.
type Candidate struct {
	Version string `json:"version"`
	State   State  `json:"state"`
}

// Cause is a finding that is against the update. Clusters have the same cause where name and
// reason are equal; message and remediation may differ.
type Cause struct {
	Name        string            `json:"name"`
	Outcome     preflight.Outcome `json:"outcome"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message"`
	Remediation string            `json:"remediation,omitempty"`
	Actions     []finding.Action  `json:"actions,omitempty"`
	// Acceptable is true if an administrator may accept it by name.
	Acceptable bool `json:"acceptable"`
	// Repeats are the names of other causes of the cluster that this cause only repeats: it disappears with them. Empty
	// for an independent cause.
	Repeats []string `json:"repeats,omitempty"`
}

var _ = catalog.Reasons("A cluster of the fleet has a decision without a finding.", `
Incomplete | A check has not reported yet. | Run the preflight of this cluster again.`)

// Causes returns the findings of the report against the update, in its order, without duplicates by name and reason.
// For a report that is against it without a finding, it returns a cause that says so.
func Causes(judged report.Report) []Cause {
	causes := CausesOf(judged.Findings)
	if len(causes) > 0 || judged.Verdict.Decision == verdict.Ready {
		return causes
	}
	return []Cause{{
		Name: "Checks", Outcome: preflight.Unknown, Reason: "Incomplete",
		Message: "Not every check has reported: " + words.Count(judged.Expected.Reported, "report") +
			" of " + words.Count(judged.Expected.Checks, "check") + ".",
		Remediation: "Run the preflight of this cluster again.",
		Actions:     []finding.Action{finding.Retry("")},
	}}
}

// CausesOf returns the findings against the update, without duplicates by name and reason.
func CausesOf(findings []finding.Finding) []Cause {
	var causes []Cause
	seen := map[identity]bool{}
	for _, f := range findings {
		is := identity{f.Name, f.Reason}
		if !f.Open() || seen[is] {
			continue
		}
		seen[is] = true
		causes = append(causes, Cause{
			Name: f.Name, Outcome: f.Outcome, Reason: f.Reason, Message: f.Message,
			Remediation: f.Remediation, Actions: f.Actions, Acceptable: f.Source.Acceptable(),
			Repeats: f.CausedBy,
		})
	}
	return causes
}

// CauseUnread is the name of the cause of a cluster that was not read.
const CauseUnread = "ClusterUnreachable"

// Unread is the row of a cluster that was not read, with why, as one word in CamelCase and as a
// sentence, and with what to do about it.
func Unread(cluster Cluster, reason, message, remedy string, actions ...finding.Action) Row {
	return Row{Cluster: cluster, State: Unreachable, Message: message, Causes: []Cause{{
		Name: CauseUnread, Outcome: preflight.Unknown, Reason: reason, Message: message, Remediation: remedy, Actions: actions,
	}}}
}

// StateOf returns the state of a cluster with that decision of a run; an unknown decision is Undecided.
func StateOf(decision verdict.Decision) State {
	switch decision {
	case verdict.Ready:
		return Ready
	case verdict.NothingKnown:
		return Clear
	case verdict.Blocked:
		return Blocked
	case verdict.Undecided:
	}
	return Undecided
}

// OfReport returns the row of a cluster from the report of a run.
func OfReport(cluster Cluster, judged report.Report) Row {
	if judged.Cluster.ID != "" {
		cluster.ID = judged.Cluster.ID
	}
	row := Row{
		Cluster: cluster, State: StateOf(judged.Verdict.Decision), Version: judged.Cluster.Version,
		Target: judged.Target.Version, Causes: Causes(judged),
		Observed: judged.Run.CompletionTime, Until: judged.Verdict.ValidUntil,
	}
	if left := judged.Verdict.Narrowed; row.State == Ready && len(left) > 0 {
		row.Message = "Ready for what was requested; excluded by the request: " + words.List(left, 3)
	}
	if !judged.Holds() {
		row.State, row.Message = Undecided, "the verdict is no longer valid: "+words.Clauses(judged.Standing.Ended, 3)
	}
	return row
}

// identity is equal for findings that are one cause.
type identity struct{ name, reason string }

// Remedies returns the actions of the cause. The action that accepts it, if it may be accepted, is last.
func (c Cause) Remedies() []finding.Action {
	accepts := func(action finding.Action) bool { return action.Type == finding.ActionAccept }
	if !c.Acceptable || slices.ContainsFunc(c.Actions, accepts) {
		return c.Actions
	}
	return append(slices.Clone(c.Actions), finding.Accept(c.Name))
}

// merged keeps one row per cluster ID: the worst, so that a cluster that claims the ID of another cannot hide the
// causes against its update. It prefers the newest archive, and the cluster itself over archives. Rows of one source
// are not one cluster: neither is in favor of the update then. The notices name the rows that were dropped, and the
// clusters that claim the same ID.
func merged(rows []Row) (kept []Row, notices []string) {
	byID := map[string]int{}
	for _, row := range rows {
		id := strings.ToLower(row.Cluster.ID) // a UUID in any case of its letters
		at, known := byID[id]
		switch {
		case id == "" || !known:
			byID[id] = len(kept)
			kept = append(kept, row)
		case kept[at].Cluster.Source == row.Cluster.Source:
			notices = append(notices, fmt.Sprintf("%s and %s (%s) claim the cluster ID %s: the data of both is ignored",
				kept[at].Cluster.Name, row.Cluster.Name, row.Cluster.Source, row.Cluster.ID))
			kept[at] = kept[at].disputed()
			kept = append(kept, row.disputed())
		default:
			shown, notice := one(kept[at], row)
			kept[at] = shown
			notices = append(notices, notice)
		}
	}
	slices.Sort(notices)
	return kept, notices
}

// disputed is the row of a cluster whose ID another one claims: what it states, such as how far the update is,
// may be about that.
func (r Row) disputed() Row {
	r.Update, r.LastUpdate = nil, nil
	if slices.Contains([]State{Ready, Clear, Updated, Blocked}, r.State) {
		r.State, r.Message = Undecided, "another cluster claims the same ID"
	}
	return r
}

// one is the row that counts of two of one cluster, with a notice about the other.
func one(a, b Row) (shown Row, notice string) {
	shown, left, why := a, b, ""
	switch order := gathered(a, b); {
	case order < 0:
		shown, left, why = b, a, "its archive is newer"
	case order > 0:
		why = "its archive is newer"
	case present(a) && b.Cluster.Archived:
		why = "an archive is older than the cluster"
	case present(b) && a.Cluster.Archived:
		shown, left, why = b, a, "an archive is older than the cluster"
	case b.State.rank() < a.State.rank():
		shown, left = b, a
	}
	if why == "" && ((shown.Update == nil) != (left.Update == nil) || shown.Update != nil && shown.Update.Stage != left.Update.Stage) {
		shown.Update = nil // the rows contradict each other
	}
	if why == "" {
		shown.LastUpdate = agreed(shown.LastUpdate, left.LastUpdate)
	}
	if why == "" && shown.Update != nil {
		shown.Update = shown.Update.with(left.Update.Judgement)
	}
	notice = fmt.Sprintf("%s (%s) and %s (%s) have the cluster ID %s: listed once, as %s",
		shown.Cluster.Name, shown.Cluster.Source, left.Cluster.Name, left.Cluster.Source, shown.Cluster.ID, shown.Cluster.Name)
	if why != "" && left.Observed == "" {
		notice += ", since " + why
	} else if why != "" {
		notice += fmt.Sprintf(", since %s: %s instead of %s", why, shown.Observed, left.Observed)
	}
	return shown, notice
}

// present reports whether the row describes a cluster that this survey has read.
func present(row Row) bool {
	isRead := slices.Contains([]State{Ready, Clear, Updated, Blocked, Undecided}, row.State)
	return isRead && !row.Cluster.Archived && row.Evidence == ""
}

// gathered compares the times at which two archives were gathered; 0 where one is no archive, or
// does not state its time.
func gathered(a, b Row) int {
	first, err := time.Parse(time.RFC3339, a.Observed)
	second, other := time.Parse(time.RFC3339, b.Observed)
	if !a.Cluster.Archived || !b.Cluster.Archived || cmp.Or(err, other) != nil {
		return 0
	}
	return first.Compare(second)
}

// with is the update of a cluster whose other row has another judgement: one that is False counts, and otherwise two that
// differ are Unknown.
func (u Update) with(other *Judgement) *Update {
	if u.Judgement.status() == other.status() {
		return &u
	}
	const isFalse, isUnknown = "False", "Unknown"
	switch isFalse {
	case u.Judgement.status():
	case other.status():
		u.Judgement = other
	default:
		u.Judgement = &Judgement{Status: isUnknown, Message: "the rows of the cluster differ on whether the update was good"}
	}
	return &u
}

// status is empty if nothing is reported.
func (j *Judgement) status() string {
	if j == nil {
		return ""
	}
	return j.Status
}
