package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/archive/layout"
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
	i.count(t)
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
	i.disprove(t)
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
func (i *Inventory) count(t *Table) {
	if !slices.Contains(i.index.Complete, t.resource.String()) {
		return
	}
	stated, ok := i.index.Objects[t.resource.String()]
	switch {
	case !ok:
	case len(t.entries) < stated:
		t.lose(fmt.Sprintf("%d of %d objects are there", len(t.entries), stated))
	default:
		t.prove("", proofCollection)
	}
}

// lose states why objects are missing.
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

// disprove looks for references to objects that the table should have, where no index counts them. A program that removes files,
// such as one that cleans an archive, leaves the references.
func (i *Inventory) disprove(t *Table) {
	if t.all == "" || t.all == proofList || t.all == proofCollection {
		return
	}
	switch t.resource {
	case Resource{Name: "nodes"}:
		if machines := i.machines(); machines > len(t.entries) {
			t.lose(fmt.Sprintf("%d of %d nodes of the MachineConfigPools are there", len(t.entries), machines))
		}
	case machineConfigPools():
		if pool := i.unknownPool(t); pool != "" {
			t.lose(fmt.Sprintf("nodes have a configuration of the pool %q, which is not there", pool))
		}
	case definitions():
		if undefined := i.undefined(t); undefined != "" {
			t.lose(fmt.Sprintf("the archive has objects of %s, whose CustomResourceDefinition is not there", undefined))
		}
	}
}

// machines is the number of nodes according to the MachineConfigPools: a node is counted by one pool
// (machine-config-operator pkg/controller/node, calculateStatus).
func (i *Inventory) machines() int {
	count := 0
	i.each(machineConfigPools(), func(object []byte) {
		var pool struct {
			Status struct {
				MachineCount int `json:"machineCount"`
			} `json:"status"`
		}
		if json.Unmarshal(object, &pool) == nil {
			count += max(pool.Status.MachineCount, 0)
		}
	})
	return count
}

// unknownPool is a pool by whose rendered configuration a node runs, and which the table lacks.
func (i *Inventory) unknownPool(pools *Table) string {
	const prefix = "rendered-" // before the pool, a dash and a hash (machine-config-operator pkg/controller/render)
	unknown := ""
	i.each(Resource{Name: "nodes"}, func(object []byte) {
		var node struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if json.Unmarshal(object, &node) != nil {
			return
		}
		config, ok := strings.CutPrefix(node.Metadata.Annotations["machineconfiguration.openshift.io/currentConfig"], prefix)
		end := strings.LastIndex(config, "-")
		if !ok || end < 0 {
			return
		}
		if _, found := pools.Find("", config[:end]); !found {
			unknown = config[:end]
		}
	})
	return unknown
}

// undefined is a resource of which the archive has objects, and whose definition the table lacks.
func (i *Inventory) undefined(definitions *Table) string {
	var found []string
	for _, tree := range i.trees {
		if tree.root.Kind != layout.Inspect || tree.extra {
			continue
		}
		for key := range tree.places {
			if _, defined := definitions.Find("", key.String()); key.custom() && !defined {
				found = append(found, key.String())
			}
		}
	}
	slices.Sort(found)
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// each calls do with the objects of a resource in the trees of the cluster; what cannot be read is
// left out. The table of the resource is not needed, so that tables may refer to each other.
func (i *Inventory) each(of Resource, do func(object []byte)) {
	seen := map[string]bool{}
	for _, tree := range i.trees {
		for _, found := range tree.places[of] {
			if tree.extra {
				continue
			}
			_, _ = found.objects(func(object []byte) error { // what cannot be read refers to nothing
				made, _, err := entryOf(object, found.place, "")
				if err == nil && !seen[made.Name] {
					seen[made.Name] = true
					do(object)
				}
				return nil
			})
		}
	}
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
	if err := json.Unmarshal([]byte(t.text("insights-operator/gathers.json")), &gathers); err != nil {
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
