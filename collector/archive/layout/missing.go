package layout

import (
	"path"
	"strings"
)

// Extent is which objects can be below a directory.
type Extent struct {
	// AnyGroup and AnyResource are true where Group and Resource do not limit them.
	AnyGroup, AnyResource bool
	Group, Resource       string
	// Namespace is empty for those of all namespaces, and cluster-scoped ones.
	Namespace string
	// ClusterScoped and Namespaced are true where only such objects can be there.
	ClusterScoped, Namespaced bool
}

// Holds reports whether objects of a resource can be in the extent.
func (e Extent) Holds(group, resource string) bool {
	return (e.AnyGroup || e.Group == group) && (e.AnyResource || e.Resource == resource)
}

// Extent is which objects can be below a directory of the archive, as far as the tree has them.
// Nothing is known to be complete by lists, so none are missing there.
func (r Root) Extent(dir string) (Extent, bool) {
	if dir = path.Clean(dir); r.Kind == Lists {
		return Extent{}, false
	}
	if dir == "." || dir == r.Dir || strings.HasPrefix(r.Dir, dir+"/") {
		return Extent{AnyGroup: true, AnyResource: true}, true
	}
	below, ok := r.Below(dir)
	switch {
	case !ok:
		return Extent{}, false
	case r.Kind == Insights:
		return insightsExtent(below)
	}
	return inspectedExtent(strings.Split(below, "/"))
}

// inspectedExtent is the extent of a directory of "oc adm inspect".
func inspectedExtent(parts []string) (Extent, bool) {
	extent := Extent{}
	switch parts[0] {
	case clusterScoped:
		extent.ClusterScoped, parts = true, parts[1:]
	case namespaces:
		extent.Namespaced = true
		if parts = parts[1:]; len(parts) > 0 {
			extent.Namespace, parts = parts[0], parts[1:]
		}
	case "web_hooks":
		return Extent{Group: "admissionregistration.k8s.io", AnyResource: true}, len(parts) == 1
	default:
		return Extent{}, false
	}
	switch {
	case len(parts) == 0:
		extent.AnyGroup, extent.AnyResource = true, true
	case extent.Namespace != "" && parts[0] == "pods":
		extent.Resource = "pods"
	case len(parts) == 1:
		extent.Group, extent.AnyResource = group(parts[0]), true
	default:
		extent.Group, extent.Resource = group(parts[0]), parts[1]
	}
	return extent, len(parts) <= 2
}

// insightsExtent is the extent of a directory of an insights archive.
func insightsExtent(dir string) (Extent, bool) {
	for known, of := range insightsDirectories() {
		if namespace, below := strings.CutPrefix(dir, known+"/"); below && of.namespaced || dir == known {
			extent := Extent{Group: of.place.Group, Resource: of.place.Resource}
			if below {
				extent.Namespace = namespace
			}
			return extent, true
		}
	}
	return Extent{AnyGroup: true, AnyResource: true}, dir == "config"
}
