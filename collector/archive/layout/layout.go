// Package layout answers: where in an archive is each object?
//
// [Roots] finds the trees of objects among the paths of an archive, and [Root.Place] returns the objects that a
// file contains: in a tree of "oc adm inspect" (a must-gather has one for each image), in an archive of the
// insights-operator, or among files of lists.
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
	// Namespace is empty if the objects are cluster-scoped, or belong to several namespaces.
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

// Wanted reports whether the content of a file can be needed. Logs and events are not needed, and neither are
// Secrets, whose values an archive does not contain, except the ones whose annotations are read.
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
	return []string{
		"openshift-config-managed", "openshift-etcd", "openshift-kube-apiserver", "openshift-kube-apiserver-operator",
		"openshift-kube-controller-manager-operator",
	}
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

// Place returns the objects that the file contains; name is relative to the root. If Resource is empty, it follows
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

// gathered is a resource of an insights archive. Its objects, which are read with typed clients,
// have neither apiVersion nor kind (pkg/record/resource_marshaller.go).
type gathered struct {
	place Place
	// namespaced is true where the directory has a directory for each namespace.
	namespaced bool
	// complete is true where all objects are gathered, and not only those that an alert or a
	// condition is about. Then gatherer is the one whose errors gathers.json has.
	complete bool
	gatherer Gatherer
}

// Gatherer is a part of the insights-operator, as insights-operator/gathers.json names it.
type Gatherer struct {
	Name string
	// Counts is true if it records nothing but the objects of one resource.
	Counts bool
}

func configOf(resource, kind string) Place {
	return Place{Group: "config.openshift.io", Resource: resource, APIVersion: "config.openshift.io/v1", Kind: kind}
}

func webhooksOf(resource, kind string) Place {
	return Place{Group: "admissionregistration.k8s.io", Resource: resource, APIVersion: "admissionregistration.k8s.io/v1", Kind: kind}
}

// insightsDirectories are the directories with a file for each object.
func insightsDirectories() map[string]gathered {
	return map[string]gathered{
		"config/clusteroperator": {
			place: configOf("clusteroperators", "ClusterOperator"), complete: true,
			gatherer: Gatherer{Name: "clusterconfig/operators"},
		},
		"config/node": {
			place: Place{Resource: "nodes", APIVersion: "v1", Kind: "Node"}, complete: true,
			gatherer: Gatherer{Name: "clusterconfig/nodes", Counts: true},
		},
		"config/machineconfigpools": {place: Place{
			Group: "machineconfiguration.openshift.io", Resource: "machineconfigpools", APIVersion: "machineconfiguration.openshift.io/v1",
			Kind: "MachineConfigPool",
		}, complete: true, gatherer: Gatherer{Name: "clusterconfig/machine_config_pools", Counts: true}},
		"machinesets": {place: Place{
			Group: "machine.openshift.io", Resource: "machinesets", APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet",
		}, namespaced: true, complete: true, gatherer: Gatherer{Name: "clusterconfig/machine_sets", Counts: true}},
		"config/mutatingwebhookconfigurations": {
			place: webhooksOf("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"), complete: true,
			gatherer: Gatherer{Name: "clusterconfig/mutating_webhook_configurations", Counts: true},
		},
		"config/validatingwebhookconfigurations": {
			place: webhooksOf("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"), complete: true,
			gatherer: Gatherer{Name: "clusterconfig/validating_webhook_configurations", Counts: true},
		},
		"config/certificatesigningrequests": {place: Place{
			Group: "certificates.k8s.io", Resource: "certificatesigningrequests", APIVersion: "certificates.k8s.io/v1",
			Kind: "CertificateSigningRequest",
		}},
		"config/crd": {place: Place{
			Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", APIVersion: "apiextensions.k8s.io/v1",
			Kind: "CustomResourceDefinition",
		}},
		"config/pdbs": {
			place:      Place{Group: "policy", Resource: "poddisruptionbudgets", APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			namespaced: true,
		},
		"config/pod": {place: Place{Resource: "pods", APIVersion: "v1", Kind: "Pod"}, namespaced: true},
	}
}

func insightsFiles() map[string]Place {
	named := func(place Place, name string) Place {
		place.Name = name
		return place
	}
	return map[string]Place{
		"config/version":        named(configOf("clusterversions", "ClusterVersion"), "version"),
		"config/infrastructure": named(configOf("infrastructures", "Infrastructure"), "cluster"),
		"config/network":        named(configOf("networks", "Network"), "cluster"),
		"config/featuregate":    named(configOf("featuregates", "FeatureGate"), "cluster"),
		"config/proxy":          named(configOf("proxies", "Proxy"), "cluster"),
		"config/image":          named(configOf("images", "Image"), "cluster"),
	}
}

func ofInsights(parts []string) (Place, bool) {
	file := parts[len(parts)-1]
	for _, length := range []int{1, 2} {
		if len(parts) <= length {
			break
		}
		known, ok := insightsDirectories()[path.Join(parts[:length]...)]
		depth := length + 1
		if known.namespaced {
			depth++
		}
		if !ok || len(parts) != depth {
			continue
		}
		place := known.place
		place.Name = file
		if known.namespaced {
			place.Namespace = parts[length]
		}
		return place, true
	}
	place, ok := insightsFiles()[path.Join(parts...)]
	return place, ok
}

// Complete returns the resources whose objects an insights archive contains completely unless their gatherer
// failed, with the gatherers; the zero value for a single object.
func Complete() map[Place]Gatherer {
	found := map[Place]Gatherer{}
	for _, known := range insightsDirectories() {
		if known.complete {
			found[Place{Group: known.place.Group, Resource: known.place.Resource}] = known.gatherer
		}
	}
	for _, place := range insightsFiles() {
		found[Place{Group: place.Group, Resource: place.Resource}] = Gatherer{}
	}
	return found
}

// Extent is which objects can be below a directory.
type Extent struct {
	// AnyGroup and AnyResource are true where Group and Resource do not limit them.
	AnyGroup, AnyResource bool
	Group, Resource       string
	// Namespace is empty for the objects of all namespaces, and for cluster-scoped ones.
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
