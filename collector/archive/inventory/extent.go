package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// Inferred reports whether the objects of a namespace or, without one, of all are complete by no list of the API server, and no
// index that counts them; name is that of an object that the index may state not to exist, and may be empty.
func (t *Table) Inferred(namespace, name string) bool {
	return !t.isNonexistent(namespace, name) && t.all != proofList && t.all != proofCollection && (namespace == "" || t.namespaces[namespace] != proofList)
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
		t.lose(fmt.Sprintf("%d of %s are there", len(t.entries), words.Count(stated, "object")))
	default:
		t.prove("", proofCollection)
	}
}

func (t *Table) lose(cause string) { t.broken = append(t.broken, brokenFile{cause: cause}) }

// proof is what proves that a tree has all objects of a table; empty where nothing does.
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

// relations are the resources, by namespace, of which a ClusterOperator that was inspected relates
// to all objects: "oc adm inspect" gathers them. Without a namespace it gathers those of all.
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
