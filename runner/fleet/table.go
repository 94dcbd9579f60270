package fleet

import (
	"cmp"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// Table is the state of a fleet before an update.
type Table struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the table was made, RFC 3339 in UTC; its caller sets it.
	Time        string `json:"time"`
	ToolVersion string `json:"toolVersion,omitempty"`
	// Target is the version that was requested; empty where each row has its own.
	Target string `json:"target,omitempty"`
	// Decision is the worst of all rows.
	Decision verdict.Decision `json:"decision"`
	Counts   Counts           `json:"counts"`
	// Groups are the causes: those first without which the most clusters are free.
	Groups []Group `json:"groups"`
	// Rows are sorted by state, the worst first, then by name.
	Rows []Row `json:"rows"`
	// Notices are further remarks about the members, such as duplicates.
	Notices []string `json:"notices,omitempty"`
	// Actions are the next steps. The program that shows the table adds them.
	Actions []finding.Action `json:"actions,omitempty"`
}

// Counts are the numbers of clusters by state.
type Counts struct {
	Clusters     int `json:"clusters"`
	Ready        int `json:"ready"`
	Clear        int `json:"clear"`
	Blocked      int `json:"blocked"`
	Undecided    int `json:"undecided"`
	Unreachable  int `json:"unreachable"`
	Hibernating  int `json:"hibernating"`
	NotInstalled int `json:"notInstalled"`
	Updated      int `json:"updated"`
	// Taken are how the update was in the clusters of which it is the last one: to the requested version, or to those that
	// a cluster may be updated to, the newest first.
	Taken []Taken `json:"taken,omitempty"`
}

// Group is a cause and the clusters that have it.
type Group struct {
	// Cause is the cause of the first cluster by name.
	Cause Cause `json:"cause"`
	// Clusters are their names, sorted.
	Clusters []string `json:"clusters"`
	// Frees is the number of clusters that only this cause keeps from the update. Causes that
	// repeat others do not count. A cluster that was not read may have any others.
	Frees int `json:"frees"`
}

// Of returns the table of the rows. target is the requested version; empty for none. The order of the rows does not
// matter. Rows with the same cluster ID are merged into the worst one, preferring the newest archive, and the cluster
// itself over archives, unless they come from one source.
func Of(target string, rows []Row) Table {
	table := Table{
		APIVersion: report.APIVersion, Kind: Kind, Target: line(target, maxName),
		Decision: verdict.Undecided, Groups: []Group{}, Rows: make([]Row, 0, len(rows)),
	}
	for _, row := range rows {
		table.Rows = append(table.Rows, Bounded(row))
	}
	slices.SortStableFunc(table.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Cluster.Name, b.Cluster.Name), cmp.Compare(a.Cluster.ID, b.Cluster.ID),
			cmp.Compare(a.Cluster.Source, b.Cluster.Source))
	})
	table.Rows, table.Notices = merged(table.Rows)
	number(table.Rows)
	table.Groups = groups(table.Rows)
	updates := taken(table.Target, table.Rows)
	slices.SortStableFunc(table.Rows, func(a, b Row) int { return cmp.Compare(a.State.rank(), b.State.rank()) })
	table.Counts = count(table.Rows)
	table.Counts.Taken = updates
	table.Decision = table.Counts.decide()
	return table
}

func groups(rows []Row) []Group {
	byCause := map[identity]int{}
	found := []Group{}
	for _, row := range rows {
		for _, cause := range row.Causes {
			is := identity{cause.Name, cause.Reason}
			at, known := byCause[is]
			if !known {
				at = len(found)
				byCause[is] = at
				found = append(found, Group{Cause: cause})
			}
			found[at].Clusters = append(found[at].Clusters, row.Cluster.Name)
			if row.only(cause) {
				found[at].Frees++
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Frees, a.Frees), cmp.Compare(len(b.Clusters), len(a.Clusters)),
			a.Cause.Outcome.Compare(b.Cause.Outcome), cmp.Compare(a.Cause.Name, b.Cause.Name), cmp.Compare(a.Cause.Reason, b.Cause.Reason))
	})
	return found
}

// only reports whether the update is possible without this cause of the row: each other one repeats it.
func (r Row) only(cause Cause) bool {
	if r.State != Blocked && r.State != Undecided {
		return false
	}
	own := 0
	for _, each := range r.Causes {
		if !r.repeated(each) {
			own++
		}
	}
	return own == 1 && !r.repeated(cause)
}

// repeated reports whether a cause of the row is one that ends with others of the row. One that repeats a
// finding which the row does not have is a cause of its own.
func (r Row) repeated(cause Cause) bool {
	if len(cause.Repeats) == 0 {
		return false
	}
	for _, name := range cause.Repeats {
		has := func(other Cause) bool {
			return other.Name == name && other.Name != cause.Name && !slices.Contains(other.Repeats, cause.Name)
		}
		if !slices.ContainsFunc(r.Causes, has) {
			return false
		}
	}
	return true
}

func count(rows []Row) Counts {
	counts := Counts{Clusters: len(rows)}
	for _, row := range rows {
		switch row.State {
		case Ready:
			counts.Ready++
		case Clear:
			counts.Clear++
		case Blocked:
			counts.Blocked++
		case Unreachable:
			counts.Unreachable++
		case Hibernating:
			counts.Hibernating++
		case NotInstalled:
			counts.NotInstalled++
		case Updated:
			counts.Updated++
		case Undecided:
			counts.Undecided++
		}
	}
	return counts
}

// decide returns the decision of the worst row. Clusters that do not exist, or that already run the release, are
// ignored: if there are no others, it is Undecided, because nothing was evaluated.
func (c Counts) decide() verdict.Decision {
	switch {
	case c.Blocked > 0:
		return verdict.Blocked
	case c.Undecided+c.Unreachable+c.Hibernating > 0 || c.Ready+c.Clear == 0:
		return verdict.Undecided
	case c.Clear > 0:
		return verdict.NothingKnown
	}
	return verdict.Ready
}

func (s State) rank() int {
	return slices.Index([]State{Blocked, Undecided, Unreachable, Hibernating, NotInstalled, Updated, Clear, Ready}, s)
}

// Offered returns the row of a cluster from the verdicts on its updates: about the best of them, or about the requested
// one. The checks of the releases did not run, so no row is Ready.
func Offered(cluster Cluster, judged report.Targets) Row {
	if judged.Cluster.ID != "" {
		cluster.ID = judged.Cluster.ID
	}
	row := Row{Cluster: cluster, State: Undecided, Version: judged.Cluster.Version, Observed: judged.Time}
	best, ok := judged.Next()
	if !ok {
		row.Message = "the cluster knows no update"
		return row
	}
	row.State, row.Target = clearState(best.Verdict), best.Version
	for _, each := range judged.ByUrgency() {
		row.Targets = append(row.Targets, Candidate{Version: each.Version, State: clearState(each.Verdict)})
		// A version may have two images: the worst decides.
		if state := clearState(each.Verdict); each.Version == best.Version && state.rank() < row.State.rank() {
			row.State = state
		}
	}
	var about []finding.Finding
	for _, each := range judged.Findings {
		if len(each.Targets) == 0 || slices.Contains(each.Targets, best.Version) {
			about = append(about, each.Finding)
		}
	}
	row.Causes = CausesOf(about)
	if len(row.Causes) == 0 && row.State != Clear {
		row.Message = "not every check has reported"
	}
	return row
}

// clearState is the state of an update that was evaluated without the checks of its release.
func clearState(of verdict.Verdict) State {
	if of.Decision == verdict.Ready {
		return Clear
	}
	return StateOf(of.Decision)
}
