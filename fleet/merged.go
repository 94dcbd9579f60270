package fleet

import (
	"fmt"
	"slices"
)

// merged are the rows with those of one cluster ID once: the worst of them, so that a cluster
// that states the ID of another cannot hide what is against the update of that. The notices
// state which rows were left out.
func merged(rows []Row) (kept []Row, notices []string) {
	byID := map[string]int{}
	for _, row := range rows {
		at, known := byID[row.Cluster.ID]
		if row.Cluster.ID == "" || !known {
			byID[row.Cluster.ID] = len(kept)
			kept = append(kept, row)
			continue
		}
		shown, left := kept[at], row
		if left.State.rank() < shown.State.rank() {
			shown, left = left, shown
		}
		if (shown.Update == nil) != (left.Update == nil) || shown.Update != nil && shown.Update.Stage != left.Update.Stage {
			shown.Update = nil // the rows contradict each other
		}
		kept[at] = shown
		notices = append(notices, fmt.Sprintf("%s (%s) and %s (%s) have the cluster ID %s: listed once, as %s",
			shown.Cluster.Name, shown.Cluster.Source, left.Cluster.Name, left.Cluster.Source, shown.Cluster.ID, shown.Cluster.Name))
	}
	slices.Sort(notices)
	return kept, notices
}
