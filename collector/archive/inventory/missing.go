package inventory

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/packaging"
	"github.com/openshift/update-preflight/collector/words"
)

// lost are objects that are missing with a directory of which nothing could be read.
type lost struct {
	extent layout.Extent
	cause  string
}

// lose notes a directory in the trees that may have objects there, and reports whether there are any.
func lose(trees []*tree, entry packaging.Entry) bool {
	found := false
	for _, each := range trees {
		if below, ok := each.root.Below(entry.Path); ok {
			each.hidden[below] = entry.Cause
		}
		if extent, ok := each.root.Extent(entry.Path); ok {
			cause := words.Line(fmt.Sprintf("%s cannot be read: %s", entry.Path, entry.Cause), 500)
			each.lost, found = append(each.lost, lost{extent, cause}), true
		}
	}
	return found
}

// lost stand for the objects of a resource that are missing with directories.
func (i *Inventory) lost(of Resource) []brokenFile {
	clusterScoped, namespaced := i.scope(of)
	var files []brokenFile
	for _, tree := range i.trees {
		for _, each := range tree.lost {
			within := each.extent
			switch {
			case !within.Holds(of.Group, of.Name):
			case within.Namespaced && of == Resource{Name: "namespaces"}: // whose files are in them
				files = append(files, brokenFile{place: layout.Place{Name: within.Namespace}, cause: each.cause})
			case within.Namespaced && clusterScoped && !namespaced, within.ClusterScoped && namespaced && !clusterScoped:
			default:
				files = append(files, brokenFile{place: layout.Place{Namespace: within.Namespace}, cause: each.cause})
			}
		}
	}
	return files
}

// scope reports which objects of a resource the archive has.
func (i *Inventory) scope(of Resource) (clusterScoped, namespaced bool) {
	for _, tree := range i.trees {
		for _, each := range tree.places[of] {
			clusterScoped = clusterScoped || each.place.Namespace == ""
			namespaced = namespaced || each.place.Namespace != ""
		}
	}
	return clusterScoped, namespaced
}
