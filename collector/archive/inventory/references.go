package inventory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxReferring bounds the files in which references are looked for, in bytes of all.
	maxReferring = 8 << 20
	// maxReferences bounds the references.
	maxReferences = 100_000
	mcoGroup      = "machineconfiguration.openshift.io"
)

// reference is how an object names another one.
type reference struct {
	// by is the object that refers to the other, such as `MachineConfigPool "worker"`.
	by          string
	group, kind string
	// namespace is empty for an object that is cluster-scoped, or may be.
	namespace, name string
}

// disprove states for a table that has all objects of its resource, as far as the program that wrote the archive is known,
// which of them are missing: a program that removes files of an archive leaves what refers to them. Lists of the API server, and
// what an index counts, are not disproved: there an object that another one names does not exist.
func (t *Table) disprove(trees []*tree, references func() []reference) {
	if t.all == proofList || t.all == proofCollection || t.all == "" && len(t.namespaces) == 0 {
		return
	}
	switch t.resource {
	case Resource{Name: "nodes"}:
		if machines := machines(trees); machines > len(t.entries) {
			t.lose(fmt.Sprintf("%d of %s of the MachineConfigPools are present", len(t.entries), words.Count(machines, "node")))
		}
	case definitions():
		if undefined := undefined(trees, t); undefined != "" {
			t.lose(fmt.Sprintf("the archive contains objects of %s, but not their CustomResourceDefinition", undefined))
		}
	}
	for _, each := range references() {
		if t.resource.fits(each.group, each.kind) && !t.has(each) {
			t.broken = append(t.broken, brokenFile{place: layout.Place{Namespace: each.namespace}, cause: words.Line(
				fmt.Sprintf("%s refers to %s %q, which is not in the archive", each.by, each.kind, each.name), 500)})
		}
	}
}

// has reports whether an object to which another one refers is there, or is proven not to exist.
func (t *Table) has(of reference) bool {
	_, found := t.Find(of.namespace, of.name)
	if !found && of.namespace != "" { // an owner may be cluster-scoped
		_, found = t.Find("", of.name)
	}
	return found || t.namespaces[of.namespace] == proofList
}

// referencesOf returns the references in the files of one object each, and of cluster-scoped objects: first of the
// machine-config-operator, then the others, small ones first, up to a bound. A definition refers to nothing.
func referencesOf(trees []*tree) []reference {
	var files []*file
	for _, tree := range trees {
		for _, places := range tree.places {
			files = append(files, slices.DeleteFunc(slices.Clone(places),
				func(f *file) bool { return tree.extra || f.rank() < 0 || !f.refers() })...)
		}
	}
	slices.SortFunc(files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.size, b.size), strings.Compare(a.path, b.path))
	})
	found, size := map[reference]bool{}, 0
	for _, each := range files {
		if each.rank() > 0 {
			size += each.size
		}
		if size > maxReferring || len(found) > maxReferences {
			break
		}
		_, _ = each.objects(func(object []byte) error { // what cannot be read refers to nothing
			for _, made := range referencesIn(object, each.place) {
				found[made] = true
			}
			return nil
		})
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b reference) int {
		return cmp.Or(strings.Compare(a.by, b.by), strings.Compare(a.group, b.group), strings.Compare(a.kind, b.kind),
			strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
}

// rank orders files by what their references are worth; below 0, they have none that is.
func (f *file) rank() int {
	switch {
	case f.place.Group == definitions().Group, f.place.Namespace != "" && f.place.Name == "":
		return -1
	case f.place.Group == mcoGroup, f.place.Group == "" && f.place.Resource == "nodes":
		return 0
	case f.place.Namespace == "":
		return 1
	}
	return 2
}

// refers reports whether a file may have references, by the lines that printers of Kubernetes write.
func (f *file) refers() bool {
	refers := false
	_ = f.lines(func(line []byte, _ bool) (more bool) {
		before, value, _ := bytes.Cut(line, []byte(`apiVersion: `))
		nested := len(before) > 0 && len(bytes.TrimSpace(value)) > 0
		refers = nested || bytes.Contains(line, []byte("rendered-"))
		return !refers
	}) // what cannot be read refers to nothing
	return refers || f.isJSON()
}

// referencesIn returns the references of one object: to its owners, to objects that its spec names by apiVersion,
// kind and name, and the machine-config-operator's references, which are names alone. A status may name deleted
// objects.
func referencesIn(object []byte, place layout.Place) []reference {
	var of struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Namespace       string            `json:"namespace"`
			Name            string            `json:"name"`
			Annotations     map[string]string `json:"annotations"`
			OwnerReferences []any             `json:"ownerReferences"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	if json.Unmarshal(object, &of) != nil {
		return nil
	}
	kind := cmp.Or(of.Kind, place.Kind)
	referrer := reference{by: fmt.Sprintf("%s %q", kind, of.Metadata.Name), namespace: cmp.Or(of.Metadata.Namespace, place.Namespace)}
	found := append(referrer.objectsIn(of.Metadata.OwnerReferences), referrer.objectsIn(of.Spec)...)
	var configs []string
	switch kind {
	case "Node":
		configs = []string{of.Metadata.Annotations[mcoGroup+"/currentConfig"], of.Metadata.Annotations[mcoGroup+"/desiredConfig"]}
	case "MachineConfigPool":
		configuration, _ := of.Spec["configuration"].(map[string]any)
		name, _ := configuration["name"].(string)
		configs = []string{name}
	}
	for _, each := range configs {
		found = append(found, referrer.toConfig(each)...)
	}
	return found
}

// toConfig are the references by the name of a rendered MachineConfig: "rendered-", its pool, a dash and a hash
// (machine-config-operator pkg/controller/render).
func (r reference) toConfig(name string) []reference {
	pool, ok := strings.CutPrefix(name, "rendered-")
	end := strings.LastIndex(pool, "-")
	if !ok || end < 0 {
		return nil
	}
	return []reference{
		{by: r.by, group: mcoGroup, kind: "MachineConfig", name: name},
		{by: r.by, group: mcoGroup, kind: "MachineConfigPool", name: pool[:end]},
	}
}

// objectsIn are the references that a value of JSON has. An object of a namespace may go before a cluster-scoped one that names it.
func (r reference) objectsIn(value any) []reference {
	var found []reference
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			found = append(found, r.objectsIn(each)...)
		}
	case map[string]any:
		text := func(key string) string { text, _ := value[key].(string); return text }
		group, _, versioned := strings.Cut(text("apiVersion"), "/")
		if !versioned {
			group = ""
		}
		if to := cmp.Or(text("namespace"), r.namespace); text("apiVersion") != "" && text("kind") != "" && text("name") != "" &&
			(r.namespace != "" || to == "") {
			return []reference{{by: r.by, group: group, kind: text("kind"), namespace: to, name: text("name")}}
		}
		for _, each := range value {
			found = append(found, r.objectsIn(each)...)
		}
	}
	return found
}

// machines is the number of nodes according to the MachineConfigPools: a node is counted by one pool
// (machine-config-operator pkg/controller/node, calculateStatus).
func machines(trees []*tree) int {
	count := 0
	seen := map[string]bool{}
	for _, tree := range trees {
		for _, found := range tree.places[machineConfigPools()] {
			_, _ = found.objects(func(object []byte) error { // what cannot be read counts nothing
				var pool struct {
					Metadata struct {
						Name string `json:"name"`
					} `json:"metadata"`
					Status struct {
						MachineCount int `json:"machineCount"`
					} `json:"status"`
				}
				if err := json.Unmarshal(object, &pool); err == nil && !tree.extra && !seen[pool.Metadata.Name] {
					seen[pool.Metadata.Name] = true
					count += max(pool.Status.MachineCount, 0)
				}
				return nil
			})
		}
	}
	return count
}

// undefined is a resource of which the archive has objects, and whose definition the table lacks.
func undefined(trees []*tree, definitions *Table) string {
	var found []string
	for _, tree := range trees {
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
