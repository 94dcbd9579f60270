package inventory

import (
	"encoding/json"
	"strings"

	"github.com/openshift/update-preflight/collector/archive/layout"
)

// extend marks what was gathered completely, though its objects have a file each: as far as the
// archive proves it.
func (i *Inventory) extend(t *Table) {
	for _, complete := range i.index.Complete {
		t.all = t.all || complete == t.resource.String()
	}
	t.nonexistent = i.index.Nonexistent
	for _, missing := range i.index.Missing {
		if (Resource{missing.Group, missing.Resource}) == t.resource {
			t.unread = append(t.unread, missing)
		}
	}
	for _, tree := range i.trees {
		switch {
		case tree.root.Kind == layout.Insights:
			t.all = t.all || tree.insightsComplete(t.resource)
		case tree.files[".git/HEAD"] != nil: // resourcewatch writes every object of a resource
			t.all = t.all || len(tree.places[t.resource]) > 0
		case tree.ended() && tree.gatherNamed(t):
			t.all = true
		}
	}
	for namespace := range i.relations()[t.resource] {
		t.namespaces[namespace] = true
		t.all = t.all || namespace == ""
	}
	// The operators of the machine API read only this namespace.
	t.all = t.all || t.resource.Group == "machine.openshift.io" && t.namespaces["openshift-machine-api"]
	delete(t.namespaces, "")
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

// insightsComplete reports whether the insights-operator has gathered all objects of a resource.
func (t *tree) insightsComplete(of Resource) bool {
	gatherer, ok := layout.Complete()[layout.Place{Group: of.Group, Resource: of.Name}]
	if !ok || len(t.places[of]) == 0 {
		return false
	}
	var gathers struct {
		Reports []struct {
			Name   string            `json:"name"`
			Errors []json.RawMessage `json:"errors"`
			Panic  json.RawMessage   `json:"panic"`
		} `json:"status_reports"`
	}
	if err := json.Unmarshal([]byte(t.text("insights-operator/gathers.json")), &gathers); err != nil {
		return false
	}
	for _, report := range gathers.Reports {
		if report.Name == gatherer && (len(report.Errors) > 0 || len(report.Panic) > 0 && string(report.Panic) != "null") {
			return false
		}
	}
	return true
}
