package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/objects"
)

// fits reports whether a kind is that of the resource by the rules of Kubernetes, or a plural itself
// such as Endpoints and SecurityContextConstraints.
func (r Resource) fits(group, kind string) bool {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind})
	singular := strings.ToLower(kind)
	return r.Group == group && slices.Contains([]string{plural.Resource, singular, singular + "s", singular + "es"}, r.Name)
}

// irregular reports whether the name of a resource of the group need not follow from its kind: that
// of NodeMetrics is nodes, and a definition of another vendor may have any plural.
func irregular(group string) bool {
	if group == "metrics.k8s.io" {
		return true
	}
	known := strings.HasSuffix(group, "k8s.io") || strings.HasSuffix(group, "openshift.io") || group == "operators.coreos.com"
	return strings.Contains(group, ".") && !known
}

// refuseKind returns an error for an object that is not of the resource of its place, if it has one.
func refuseKind(place layout.Place, group, kind string) error {
	expected := Resource{place.Group, place.Resource}
	if place.Resource == "" || expected.fits(group, kind) || group == expected.Group && irregular(group) {
		return nil
	}
	return fmt.Errorf("it has the kind %s, where %s are expected", schema.GroupKind{Group: group, Kind: kind}, expected)
}

// refuseList is refuseKind for a list; one that kubectl has put together has objects of any kind.
func refuseList(place layout.Place, list objects.List) error {
	if list.Kind == "" || list.Kind == objects.AnyList {
		return nil
	}
	group := schema.FromAPIVersionAndKind(list.APIVersion, list.Kind).Group
	kind, ok := itemKind(list)
	if err := refuseKind(place, group, kind); ok && err == nil {
		return nil
	}
	return fmt.Errorf("its list has the kind %s, where %s are expected", schema.GroupKind{Group: group, Kind: list.Kind}, Resource{place.Group, place.Resource})
}

func itemKind(list objects.List) (string, bool) {
	kind, ok := strings.CutSuffix(list.Kind, "List")
	return kind, ok && kind != ""
}

// of is the resource of a kind. Where that can be the resource by which a file is named, it is; a
// name without a group matches any.
func (r Resource) of(apiVersion, kind string) Resource {
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	if named := (Resource{plural.Group, r.Name}); r.names(named) && named.fits(plural.Group, kind) {
		return named
	}
	return Resource{plural.Group, plural.Resource}
}

// names reports whether a file with this name, whose group may be empty, has objects of the resource.
func (r Resource) names(other Resource) bool {
	return r.Name == other.Name && (r.Group == "" || r.Group == other.Group)
}

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
