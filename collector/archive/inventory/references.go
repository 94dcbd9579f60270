package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/words"
)

// references between the objects of one cluster. A program that removes files of an archive leaves them.
type references []*tree

// disprove is why a table that has all objects of its resource, as far as the program that wrote the archive
// is known, has not; empty where nothing refers to a missing object. The objects have a file each, and no
// index counts them.
func (r references) disprove(t *Table) string {
	switch t.resource {
	case Resource{Name: "nodes"}:
		if machines := r.machines(); machines > len(t.entries) {
			return fmt.Sprintf("%d of %s of the MachineConfigPools are there", len(t.entries), words.Count(machines, "node"))
		}
	case machineConfigPools():
		if pool := r.unknownPool(t); pool != "" {
			return fmt.Sprintf("nodes have a configuration of the pool %q, which is not there", pool)
		}
	case definitions():
		if undefined := r.undefined(t); undefined != "" {
			return fmt.Sprintf("the archive has objects of %s, whose CustomResourceDefinition is not there", undefined)
		}
	}
	return ""
}

// machines is the number of nodes according to the MachineConfigPools: a node is counted by one pool
// (machine-config-operator pkg/controller/node, calculateStatus).
func (r references) machines() int {
	count := 0
	r.each(machineConfigPools(), func(object []byte) {
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
func (r references) unknownPool(pools *Table) string {
	const prefix = "rendered-" // before the pool, a dash and a hash (machine-config-operator pkg/controller/render)
	unknown := ""
	r.each(Resource{Name: "nodes"}, func(object []byte) {
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
func (r references) undefined(definitions *Table) string {
	var found []string
	for _, tree := range r {
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
func (r references) each(of Resource, do func(object []byte)) {
	seen := map[string]bool{}
	for _, tree := range r {
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
