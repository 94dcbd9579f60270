package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// merged are the rows with those of one cluster ID once: the worst of them, so that a cluster
// that states the ID of another cannot hide what is against the update of that; of archives the newest, and before archives the
// cluster itself.
// Rows of one source are not one cluster: neither is in favor of the update then. The notices state
// which rows were left out, and which clusters claim one ID.
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
			notices = append(notices, fmt.Sprintf("%s and %s (%s) claim the cluster ID %s: what is known of neither counts",
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

// present reports whether a row is of a cluster as it was read by this survey.
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

// status is empty where nothing is stated.
func (j *Judgement) status() string {
	if j == nil {
		return ""
	}
	return j.Status
}
