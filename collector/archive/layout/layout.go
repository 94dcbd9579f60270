// Package layout answers: where in an archive is each object?
//
// [Roots] finds the trees of objects among the paths of an archive, and [Root.Place] is what a
// file is about: in the tree of "oc adm inspect", of which a must-gather
// has one for each image, in an archive of the insights-operator, or among files of lists.
package layout

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Kind is the layout of a tree.
type Kind string

// The layouts.
const (
	// Inspect is the tree that "oc adm inspect" writes (openshift/oc pkg/cli/admin/inspect), a
	// must-gather and resourcewatch too.
	Inspect Kind = "inspect"
	// Insights is the layout of the insights-operator (docs/gathered-data.md).
	Insights Kind = "insights"
	// Lists are files of objects or lists of them, as "oc get -o yaml" prints them. The name of
	// a file that has all objects of a resource is "RESOURCE.GROUP.yaml", or without a group
	// "RESOURCE.yaml".
	Lists Kind = "lists"
)

// Root is a tree of objects.
type Root struct {
	// Dir is its path in the archive; empty for the archive itself.
	Dir  string
	Kind Kind
}

// Place is the resource, and the object or namespace, of a file.
type Place struct {
	Group, Resource string
	// Namespace is empty where the objects are cluster-scoped, or of several namespaces.
	Namespace string
	// Name is empty for a list.
	Name string
	// APIVersion and Kind complete objects that lack them.
	APIVersion, Kind string
}

const (
	clusterScoped = "cluster-scoped-resources"
	namespaces    = "namespaces"
	// CollectionFile is the file in the root of a tree by which "oc preflight collect" describes it.
	CollectionFile = "preflight-collection.json"
	// maxDepth bounds the depth of a root.
	maxDepth = 4
)

// Wanted reports whether the content of a file can be needed. Logs and events are not, and neither are Secrets, whose
// values an archive does not have, except those of which the annotations are read.
func Wanted(name string) bool {
	base := path.Base(name)
	switch {
	case strings.HasPrefix(base, "."), strings.Contains("/"+name, "/."):
		return base == "HEAD" && path.Base(path.Dir(name)) == ".git" // of resourcewatch
	case base == "timestamp", base == "version":
		return true
	case base == "secrets.yaml" && slices.Contains(withCertificates(), path.Base(path.Dir(path.Dir(name)))):
		return true
	case base == "events.yaml", base == "secrets.yaml", strings.Contains(name, "/core/events/"), strings.Contains(name, "/core/secrets/"):
		return false
	}
	switch path.Ext(base) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// withCertificates are the namespaces in which Secrets have the validity of certificates as annotations (package
// health/certificate).
func withCertificates() []string {
	return []string{"openshift-config-managed", "openshift-etcd", "openshift-kube-apiserver", "openshift-kube-apiserver-operator", "openshift-kube-controller-manager-operator"}
}

// Roots are the trees in which at least one of the files is, sorted.
func Roots(files []string) []Root {
	found := map[Root]bool{}
	for _, name := range files {
		if root, ok := rootOf(name); ok {
			found[root] = true
		}
	}
	roots := make([]Root, 0, len(found))
	for root := range found {
		roots = append(roots, root)
	}
	if len(roots) == 0 && slices.ContainsFunc(files, func(name string) bool { return isObjects(name) && strings.Count(name, "/") <= 1 }) {
		roots = append(roots, Root{Kind: Lists})
	}
	slices.SortFunc(roots, func(a, b Root) int { return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Kind, b.Kind)) })
	return roots
}

func rootOf(name string) (Root, bool) {
	if !isObjects(name) {
		return Root{}, false
	}
	parts := strings.Split(name, "/")
	for i, part := range parts[:min(len(parts), maxDepth+1)] {
		dir := path.Join(parts[:i]...)
		switch {
		case (part == clusterScoped || part == namespaces) && i < len(parts)-2:
			return Root{Dir: dir, Kind: Inspect}, true
		case part == CollectionFile && i == len(parts)-1:
			return Root{Dir: dir, Kind: Inspect}, true
		case part == "config" && i == len(parts)-2 && parts[i+1] == "version.json", part == "insights-operator" && i == len(parts)-2:
			return Root{Dir: dir, Kind: Insights}, true
		}
	}
	return Root{}, false
}

func isObjects(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml" || ext == ".json"
}

// Below is the path relative to the root.
func (r Root) Below(name string) (string, bool) {
	if r.Dir == "" {
		return name, true
	}
	return strings.CutPrefix(name, r.Dir+"/")
}

// Place is what the file is about; name is relative to the root. A Resource that is empty follows
// from the kinds of the objects.
func (r Root) Place(name string) (Place, bool) {
	if !isObjects(name) {
		return Place{}, false
	}
	parts := strings.Split(strings.TrimSuffix(name, path.Ext(name)), "/")
	switch r.Kind {
	case Inspect:
		return inspected(parts)
	case Insights:
		return ofInsights(parts)
	case Lists:
		resource, group, _ := strings.Cut(parts[len(parts)-1], ".")
		return Place{Group: group, Resource: resource}, true
	}
	return Place{}, false
}

// inspected is the place of a file of "oc adm inspect" (util.go, dirPathForInfo and
// filenameForInfo): an object or a list, depending on how it was asked for.
func inspected(parts []string) (Place, bool) {
	switch {
	case len(parts) == 3 && parts[0] == clusterScoped:
		return Place{Group: group(parts[1]), Resource: parts[2]}, true
	case len(parts) == 4 && parts[0] == clusterScoped:
		return Place{Group: group(parts[1]), Resource: parts[2], Name: parts[3]}, true
	case len(parts) == 2 && parts[0] == "web_hooks": // a must-gather up to 4.9
		return Place{Group: "admissionregistration.k8s.io", Resource: parts[1]}, true
	case len(parts) < 3 || parts[0] != namespaces:
		return Place{}, false
	case len(parts) == 3 && parts[1] == parts[2]:
		return Place{Resource: namespaces, Name: parts[1]}, true
	case parts[2] == "pods":
		return Place{Resource: "pods", Namespace: parts[1], Name: parts[len(parts)-1]}, len(parts) == 5 && parts[3] == parts[4]
	case len(parts) == 4:
		return Place{Group: group(parts[2]), Resource: parts[3], Namespace: parts[1]}, true
	case len(parts) == 5:
		return Place{Group: group(parts[2]), Resource: parts[3], Namespace: parts[1], Name: parts[4]}, true
	}
	return Place{}, false
}

// Path is the path of the file in the layout [Inspect].
func (p Place) Path() string {
	group := p.Group
	if group == "" {
		group = "core"
	}
	switch {
	case p.Group == "" && p.Resource == namespaces && p.Name != "":
		return path.Join(namespaces, p.Name, p.Name+".yaml")
	case p.Namespace == "" && p.Name == "":
		return path.Join(clusterScoped, group, p.Resource+".yaml")
	case p.Namespace == "":
		return path.Join(clusterScoped, group, p.Resource, p.Name+".yaml")
	case p.Name == "":
		return path.Join(namespaces, p.Namespace, group, p.Resource+".yaml")
	}
	return path.Join(namespaces, p.Namespace, group, p.Resource, p.Name+".yaml")
}

func group(dir string) string {
	if dir == "core" {
		return ""
	}
	return dir
}
