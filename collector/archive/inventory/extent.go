package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/words"
)

// The proofs that objects which have a file each are all of their resource. A resource without a
// file is never proven by the program that wrote the archive: another one may have removed them.
const (
	proofCollection = "the collection counts them"
	proofInsights   = "their gatherer reports no error"
	proofWatch      = "resourcewatch writes every object"
	proofRelated    = "a ClusterOperator relates to all of them"
	proofNamed      = "must-gather names the resource"
	proofMachines   = "the operators of the machine API read only this namespace"
)

// extend proves that all objects were gathered, though they have a file each, as far as the archive
// has what proves it.
func (i *Inventory) extend(t *Table) {
	t.nonexistent = i.index.Nonexistent
	for _, missing := range i.index.Missing {
		if (Resource{missing.Group, missing.Resource}) == t.resource {
			t.unread = append(t.unread, missing)
		}
	}
	t.count(i.index)
	for _, tree := range i.trees {
		if proof := tree.proof(t); proof != "" {
			t.prove("", proof)
		}
	}
	for namespace := range i.relations()[t.resource] {
		if len(t.In(namespace)) > 0 {
			t.prove(namespace, proofRelated)
		}
	}
	if t.resource.Group == "machine.openshift.io" && t.namespaces["openshift-machine-api"] != "" {
		t.prove("", proofMachines)
	}
	t.disprove(i.trees, i.references)
}

// Inferred reports whether the objects of a namespace, or all objects without one, are taken to be complete
// although neither a list of the API server nor an index that counts them proves it; name is the name of an object
// that the index may list as not existing, and may be empty.
func (t *Table) Inferred(namespace, name string) bool {
	return !t.isNonexistent(namespace, name) && t.all != proofList && t.all != proofCollection &&
		(namespace == "" || t.namespaces[namespace] != proofList)
}

// prove states that all objects of a namespace were gathered or, without one, of all.
func (t *Table) prove(namespace, proof string) {
	switch {
	case namespace == "" && t.all == "":
		t.all = proof
	case namespace != "" && t.namespaces[namespace] == "":
		t.namespaces[namespace] = proof
	}
}

// count compares the objects with the number that the collection states.
func (t *Table) count(index Collection) {
	if !slices.Contains(index.Complete, t.resource.String()) {
		return
	}
	stated, ok := index.Objects[t.resource.String()]
	switch {
	case !ok:
	case len(t.entries) < stated:
		t.lose(fmt.Sprintf("%d of %s are present", len(t.entries), words.Count(stated, "object")))
	default:
		t.prove("", proofCollection)
	}
}

func (t *Table) lose(cause string) { t.broken = append(t.broken, brokenFile{cause: cause}) }

// proof returns the proof that a tree has all objects of a table; empty if there is none.
func (t *tree) proof(of *Table) string {
	switch {
	case t.root.Kind == layout.Insights:
		if t.insightsComplete(of.resource) {
			return proofInsights
		}
	case len(t.places[of.resource]) == 0:
	case t.files[".git/HEAD"] != nil:
		return proofWatch
	case t.ended() && t.gatherNamed(of):
		return proofNamed
	}
	return ""
}

// gatherNamed reports whether the script of a must-gather has named the resource, as one of its
// objects proves that nothing else is related to (openshift/must-gather collection-scripts).
func (t *tree) gatherNamed(of *Table) bool {
	if !strings.HasPrefix(t.text("version"), "openshift/must-gather") {
		return false
	}
	switch of.resource.Group {
	case "operators.coreos.com": // the category "olm" of gather_olm
		return len(t.places[Resource{"operators.coreos.com", "operatorconditions"}]) > 0
	case "flowcontrol.apiserver.k8s.io": // mandatory objects have these names
		_, exempt := of.Find("", "exempt")
		_, other := of.Find("", "catch-all")
		return exempt && other
	}
	return false
}

// relations are the resources, by namespace, for which an inspected ClusterOperator relates to all objects: "oc
// adm inspect" gathers them. Without a namespace it gathers the objects of all namespaces.
type relations map[Resource]map[string]bool

func relationsOf(trees []*tree) relations {
	found := relations{}
	for _, tree := range trees {
		if tree.root.Kind != layout.Inspect || !tree.ended() {
			continue
		}
		for _, each := range tree.places[clusterOperators()] {
			if each.place.Name != "" { // an object of a list was not necessarily inspected
				found.add(each)
			}
		}
	}
	return found
}

func (r relations) add(operator *file) {
	_, _ = operator.objects(func(object []byte) error { // what cannot be read proves nothing
		if _, _, err := entryOf(object, operator.place, ""); err != nil {
			return err
		}
		var fields struct {
			Status struct {
				RelatedObjects []struct {
					Group     string `json:"group"`
					Resource  string `json:"resource"`
					Namespace string `json:"namespace"`
					Name      string `json:"name"`
				} `json:"relatedObjects"`
			} `json:"status"`
		}
		if err := json.Unmarshal(object, &fields); err != nil {
			return err
		}
		for _, each := range fields.Status.RelatedObjects {
			key := Resource{each.Group, each.Resource}
			if each.Name != "" {
				continue
			}
			if r[key] == nil {
				r[key] = map[string]bool{}
			}
			r[key][each.Namespace] = true
		}
		return nil
	})
}

// insightsComplete reports whether the insights-operator states that it has gathered all objects of a
// resource, and the tree has as many as it has recorded.
func (t *tree) insightsComplete(of Resource) bool {
	gatherer, ok := layout.Complete()[layout.Place{Group: of.Group, Resource: of.Name}]
	if !ok {
		return false
	}
	if gatherer.Name == "" { // one object, whose file is there
		return len(t.places[of]) == 1
	}
	var gathers struct {
		Reports []struct {
			Name    string            `json:"name"`
			Records *int              `json:"records_count"`
			Errors  []json.RawMessage `json:"errors"`
			Panic   json.RawMessage   `json:"panic"`
		} `json:"status_reports"`
	}
	if err := decodeExactly([]byte(t.text("insights-operator/gathers.json")), &gathers); err != nil {
		return false
	}
	for _, report := range gathers.Reports {
		if report.Name != gatherer.Name {
			continue
		}
		counted := gatherer.Counts && report.Records != nil
		return len(report.Errors) == 0 && (len(report.Panic) == 0 || string(report.Panic) == "null") &&
			(counted && *report.Records == len(t.places[of]) || !counted && len(t.places[of]) > 0)
	}
	return false
}

// discovered are the resources of the aggregated discovery in the archive. Without both of its
// files, they are not known.
func discovered(trees []*tree, leftOut *omissions) map[Resource]bool {
	served := map[Resource]bool{}
	for _, name := range []string{"aggregated-discovery-api.yaml", "aggregated-discovery-apis.yaml"} {
		for _, tree := range trees {
			found := tree.files[name]
			if found == nil || tree.extra {
				continue
			}
			if err := discover(found, served); err != nil { // the rest of the file may have any resource
				leftOut.add(tree.title+"/"+name, err.Error())
				return map[Resource]bool{}
			}
		}
	}
	if !served[Resource{"", "pods"}] || !served[clusterVersions()] { // one of the files is missing
		return map[Resource]bool{}
	}
	return served
}

// discover adds the resources of a file. The list of aggregated discovery has no resourceVersion, so
// that it has all groups where it was read to its end.
func discover(found *file, served map[Resource]bool) error {
	const kind = "APIGroupDiscoveryList"
	list, err := found.objects(func(object []byte) error { return discoverGroup(object, served) })
	switch {
	case err != nil:
		return err
	case list.Kind != kind:
		return fmt.Errorf("it has the kind %q, where %s is expected", list.Kind, kind)
	case list.Metadata != nil && list.Metadata.Continue != "":
		return errors.New("its list continues elsewhere")
	}
	return nil
}

// anyOf stands for the resources of a group of which discovery may lack some.
func anyOf(group string) Resource { return Resource{group, "*"} }

func discoverGroup(object []byte, served map[Resource]bool) error {
	var group apidiscoveryv2.APIGroupDiscovery
	if err := json.Unmarshal(object, &group); err != nil {
		return err
	}
	for _, version := range group.Versions {
		if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale { // its API server did not answer
			served[anyOf(group.Name)] = true
		}
		for _, each := range version.Resources {
			served[Resource{group.Name, each.Resource}] = true
		}
	}
	return nil
}

// Kubernetes is the version of the API server, such as "1.31.4"; empty if the archive does not contain it.
func (i *Inventory) Kubernetes() string {
	found, ok := i.Table(clusterOperators(), "").Find("", "kube-apiserver")
	if !ok {
		return strings.TrimPrefix(i.index.Version.GitVersion, "v")
	}
	var fields struct {
		Status struct {
			Versions []struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"status"`
	}
	object, err := found.Object()
	if err != nil || json.Unmarshal(object, &fields) != nil {
		return ""
	}
	for _, each := range fields.Status.Versions {
		if each.Name == "kube-apiserver" {
			return each.Version
		}
	}
	return ""
}

// aggregated returns the groups that neither Kubernetes nor CustomResourceDefinitions define.
func aggregated() []string {
	return []string{
		"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "oauth.openshift.io",
		"packages.operators.coreos.com",
		"project.openshift.io", "quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io", "user.openshift.io",
	}
}

// custom reports whether a CustomResourceDefinition defines the resource where the cluster serves it.
func (r Resource) custom() bool {
	return strings.Contains(r.Group, ".") && !strings.HasSuffix(r.Group, "k8s.io") && !slices.Contains(aggregated(), r.Group)
}

// introduction is when Kubernetes began to serve a resource that checks read.
type introduction struct {
	// gated is the version that serves it where a feature gate is on, and always the one that serves it without.
	gated, always string
}

// introductions of resources (KEP-3488: alpha in 1.26, beta and off in 1.28, stable in 1.30).
func introductions() map[Resource]introduction {
	policies := introduction{gated: "1.26.0", always: "1.30.0"}
	return map[Resource]introduction{
		{"admissionregistration.k8s.io", "validatingadmissionpolicies"}:       policies,
		{"admissionregistration.k8s.io", "validatingadmissionpolicybindings"}: policies,
	}
}

// before reports whether the cluster does not serve the resource by its version. Between the
// versions of an introduction, that depends on the feature set: the default one has no gate that is
// off by default.
func (i *Inventory) before(of introduction) bool {
	current, err := version.ParseGeneric(i.Kubernetes())
	switch {
	case err != nil || current.AtLeast(version.MustParseGeneric(of.always)):
		return false
	case current.LessThan(version.MustParseGeneric(of.gated)):
		return true
	}
	gates, ok := i.Table(Resource{"config.openshift.io", "featuregates"}, "").Find("", "cluster")
	if !ok {
		return false
	}
	var fields struct {
		Spec struct {
			FeatureSet string `json:"featureSet"`
		} `json:"spec"`
	}
	object, err := gates.Object()
	return err == nil && json.Unmarshal(object, &fields) == nil && fields.Spec.FeatureSet == ""
}

// Unserved reports whether the archive proves that the cluster does not serve a resource.
func (i *Inventory) Unserved(of Resource) bool {
	if slices.Contains(i.index.Unserved, of.String()) {
		return true
	}
	if served := i.served(); len(served) > 0 {
		return !served[of] && !served[anyOf(of.Group)]
	}
	if introduced, ok := introductions()[of]; ok {
		return i.before(introduced)
	}
	if !of.custom() {
		return false
	}
	if clusterScoped, namespaced := i.scope(of); clusterScoped || namespaced { // it has objects
		return false
	}
	definitions := i.Table(definitions(), "")
	if _, incomplete := definitions.Missing("", ""); incomplete {
		return false
	}
	_, defined := definitions.Find("", of.String())
	return !defined
}
