package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/collector/words"
)

// Statements are what the clusters of a hub state about their updates, of any version. They count whenever they were
// made, since they are final: also where the cluster does not answer any more. Each is about the cluster that reports
// it, or it does not count. An error means that the hub could not be read.
func Statements(ctx context.Context, hub *cluster.Cluster, query Query) ([]evidence.Item, error) {
	reader := reader{hub.Dynamic}
	managed, err := reader.managed(ctx)
	if err != nil {
		return nil, err
	}
	placed, incomplete, err := reader.placed(ctx, query)
	if err != nil {
		return nil, err
	}
	reports, err := reader.reports(ctx, query)
	if err != nil {
		return nil, err
	}
	var items []evidence.Item
	if incomplete != "" {
		items = append(items, evidence.Item{Name: "Placement " + query.Placement.String(), Problem: incomplete})
	}
	if len(reports.unread) > 0 {
		items = append(items, evidence.Item{Name: strings.Join(reports.unread, " and ") + " of the hub", Problem: "the user may not list them; have an administrator apply the roles that this prints: " + reports.roles().Command})
	}
	shared := sharedIDs(managed)
	for _, name := range slices.Sorted(maps.Keys(reports.of)) {
		group, selected := placed[name]
		if query.Placement.Name != "" && (!selected || query.Group != "" && group != query.Group) {
			continue
		}
		of := managed[name]
		of.shared = shared[strings.ToLower(of.id)]
		items = append(items, statementsOf(of, name, reports.of[name])...)
	}
	return items, nil
}

func statementsOf(of managedCluster, name string, all []reported) []evidence.Item {
	var items []evidence.Item
	for _, each := range all {
		if each.values.statement == "" {
			continue
		}
		item := evidence.Item{Name: fmt.Sprintf("%s of the cluster %s", each.source, name), Text: []byte(each.values.statement), Cluster: of.id}
		switch {
		case of.id == "":
			item.Problem = "the hub does not know the ID of the cluster"
		case of.shared:
			item.Problem = "another cluster of this hub claims the same ID " + words.External(of.id)
		}
		items = append(items, item)
	}
	return items
}
