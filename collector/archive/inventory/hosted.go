package inventory

import (
	"context"
	"fmt"
	"strings"
)

// OpenHosted reads both clusters of a dump of HyperShift ("hypershift dump cluster"): the management
// cluster, and below hostedcluster-NAME the guest of the hosted cluster of that name, nil where there
// is none.
func OpenHosted(ctx context.Context, name string, paths ...string) (management, guest *Inventory, err error) {
	management, guest = &Inventory{tables: map[part]*Table{}}, &Inventory{tables: map[part]*Table{}}
	trees, err := loadAll(ctx, paths, &management.leftOut)
	if err != nil {
		return nil, nil, err
	}
	var below, above []*tree
	for _, each := range trees {
		switch {
		case strings.Contains("/"+each.root.Dir+"/", "/hostedcluster-"+name+"/"):
			below = append(below, each)
		case each.hosted(), strings.Contains(each.root.Dir, "external-infra-clusters"):
			management.leftOut.add(each.title, "it is of another cluster")
		default:
			above = append(above, each)
		}
	}
	if len(above) == 0 {
		return nil, nil, fmt.Errorf("no management cluster was found; found: %s", titles(trees))
	}
	if err := management.holdOne(above); err != nil {
		return nil, nil, err
	}
	if len(below) == 0 {
		return management, nil, nil
	}
	return management, guest, guest.holdOne(below)
}

// holdOne is hold for trees of one cluster, which may name none.
func (i *Inventory) holdOne(trees []*tree) error {
	trees, unread := separate(trees)
	if len(trees) == 0 { // of which nothing else is there
		trees, unread = unread, nil
	}
	for _, each := range unread {
		i.leftOut.add(each.title, "it is not known to be of the cluster: "+each.unreadVersion())
	}
	id := ""
	for _, each := range trees {
		found := each.clusterID()
		if id != "" && found != "" && found != id {
			return fmt.Errorf("several clusters were found, %s and %s, where one is expected: %s", id, found, titles(trees))
		}
		if found != "" {
			id = found
		}
	}
	i.hold(id, trees)
	return nil
}
