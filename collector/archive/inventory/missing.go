package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// ends are last fields that every object of a kind has, by the types of its API: one of them is there in a file that is whole, since
// printers sort fields, and what stands before them decides findings. The newest types are no such source: a CSINode has had a
// status since 2025 only.
func ends() map[string][]string {
	const counted, hook, status = "status.updatedMachineCount", "webhooks.timeoutSeconds", "status"
	return map[string][]string{
		"ClusterVersion": {"status.versionHash"}, "ClusterOperator": {"status.extension", "status.relatedObjects", "status.versions"},
		"APIRequestCount": {"status.requestCount"}, "MachineConfigPool": {counted}, "ClusterServiceVersion": {"spec.version", status},
		"MutatingWebhookConfiguration": {hook}, "ValidatingWebhookConfiguration": {hook},
		"CustomResourceDefinition": {status}, "APIService": {status}, "Namespace": {status}, "Pod": {status}, "PersistentVolume": {status},
		"Node": {"status.nodeInfo"}, "CSINode": {"spec.drivers"}, "StorageClass": {"volumeBindingMode"},
	}
}

// refuseTorn returns an error for the object of a file of YAML that ends within it, at the end of a line: whatever is there is YAML.
// What an API server has stored has a UID. Of a list, the end has its resourceVersion; an object without a time of creation was
// written by people.
func (f *file) refuseTorn(object []byte, kind string) error {
	if f.place.Name == "" || f.place.Kind != "" || f.isJSON() { // of "oc adm inspect" are files of one object of YAML
		return nil
	}
	var of map[string]any
	if err := json.Unmarshal(object, &of); err != nil {
		return err
	}
	if value, _, err := unstructured.NestedFieldNoCopy(of, "metadata", "creationTimestamp"); err == nil && value == nil && has(of, "metadata.name") {
		return nil
	}
	required := [][]string{{"metadata.name"}, {"metadata.uid"}}
	if end := ends()[kind]; end != nil && (has(of, "webhooks") || !strings.HasSuffix(kind, "WebhookConfiguration")) { // which need not have any
		required = append(required, end)
	}
	if configured, _, _ := unstructured.NestedString(of, "metadata", "annotations", mcoGroup+"/generated-by-controller-version"); kind == "MachineConfig" && configured != "" {
		required = append(required, []string{"spec.osImageURL"})
	}
	for _, alternatives := range required {
		if !slices.ContainsFunc(alternatives, func(path string) bool { return has(of, path) }) {
			return fmt.Errorf("the %s %q has no %s, as where the end of a file is missing", kind, f.place.Name, alternatives[0])
		}
	}
	return nil
}

// has reports whether an object has a field; of a list, its last element.
func has(of any, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	if list, ok := of.([]any); ok {
		return len(list) == 0 || has(list[len(list)-1], path)
	}
	fields, _ := of.(map[string]any)
	value, ok := fields[name]
	return ok && (!deeper || has(value, rest))
}

// isJSON reports whether the content is JSON, whose end is never missing without an error.
func (f *file) isJSON() bool {
	found := false
	_ = f.lines(func(line []byte, _ bool) (more bool) {
		found = bytes.HasPrefix(bytes.TrimSpace(line), []byte("{"))
		return len(bytes.TrimSpace(line)) == 0
	}) // what cannot be read is refused elsewhere
	return found
}
