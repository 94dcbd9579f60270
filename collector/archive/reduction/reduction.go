// Package reduction answers: which fields of an object are in a collection?
//
// [Reducer.Reduce] removes the fields that no check reads, by a list of the fields that checks read for each
// resource. It rejects an object of a resource that the list lacks, so a check that reads it finds that the
// collection has none. The template of a pod is reduced wherever it occurs, even in objects whose other fields are
// all kept. User info of URLs is removed from every text.
package reduction

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/nodeconfig"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Reducer reduces the objects of one collection.
type Reducer struct {
	rules map[inventory.Resource]tree
	// reporting are the groups of which checks read what objects report (package reported).
	reporting []string
	// named are the ConfigMaps that are read by their names, NAMESPACE/NAME.
	named []string
}

// New returns the reducer for objects that these requests read.
func New(reads []access.Request) *Reducer {
	r := &Reducer{rules: rules()}
	for _, each := range reads {
		if each.Resource == access.All {
			r.reporting = append(r.reporting, each.Group)
		}
		if each.Group == "" && each.Resource == "configmaps" && each.Name != "" {
			r.named = append(r.named, each.Namespace+"/"+each.Name)
		}
	}
	return r
}

// Reduce returns an object with only the fields that checks read, and changes the given one. It returns an error
// for a resource whose fields are unknown.
func (r *Reducer) Reduce(object map[string]any, resource inventory.Resource) (map[string]any, error) {
	rule, known := r.rules[resource]
	reports := slices.Contains(r.reporting, resource.Group)
	if !known && reports {
		rule, known = metadataOnly(), true
	}
	if !known {
		return nil, fmt.Errorf("the fields of %s that checks read are unknown, so none is collected", resource)
	}
	if (resource == inventory.Resource{Name: "configmaps"}) && !r.keepsData(object) {
		rule = metadataOnly()
	}
	if (resource == inventory.Resource{Name: "secrets"}) {
		hideValues(object)
	}
	if reports {
		rule = rule.withReport(object)
	}
	reduced, _ := rule.of(object).(map[string]any)
	if (resource == inventory.Resource{Name: "nodes"}) {
		keepHolds(object, reduced)
	}
	if (resource == inventory.Resource{Group: "apps", Name: "deployments"}) {
		keepSettings(object, reduced)
	}
	if slices.Contains([]string{"pods", "replicasets", "daemonsets", "statefulsets", "jobs"}, resource.Name) {
		keepKeys(object, reduced)
	}
	if (resource == inventory.Resource{Group: "machineconfiguration.openshift.io", Name: "machineconfigs"}) {
		keepConfiguration(object, reduced)
	}
	return reduced, nil
}

// keepHolds keeps the annotations by which programs state that they drain or reboot a node.
func keepHolds(object, reduced map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	into, _ := reduced["metadata"].(map[string]any)
	for name, value := range annotations {
		text, _ := value.(string)
		if into == nil || !snapshot.Holds(name, text) {
			continue
		}
		kept, _ := into["annotations"].(map[string]any)
		if kept == nil {
			kept = map[string]any{}
			into["annotations"] = kept
		}
		kept[name] = text
	}
}

// hideValues replaces the values of a Secret as "oc adm inspect" does (pkg/cli/admin/inspect/secret.go).
func hideValues(secret map[string]any) {
	data, _ := secret["data"].(map[string]any) // nil where it has none
	for key, value := range data {
		text, _ := value.(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			plain = nil
		}
		data[key] = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%d bytes long", len(plain)))
	}
}

// Labels by which ConfigMaps are listed: the labels of signatures of releases (library-go
// pkg/verify/store/configmap), and the labels of recorded runs.
const (
	signatureLabel = "release.openshift.io/verification-signatures"
	ownPrefix      = "preflight.openshift.io/"
)

// keepsData reports whether checks read the data of a ConfigMap, and not only that it exists.
func (r *Reducer) keepsData(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for label := range labels {
		if label == signatureLabel || strings.HasPrefix(label, ownPrefix) {
			return true
		}
	}
	return slices.Contains(r.named, fmt.Sprint(metadata["namespace"], "/", metadata["name"]))
}

// The place of the cluster-version operator.
const versionNamespace, versionOperator = "openshift-cluster-version", "cluster-version-operator"

// settings are variables of the cluster-version operator that decide which manifests of a release apply.
func settings() []string { return []string{"CLUSTER_PROFILE", "EXCLUDE_MANIFESTS"} }

// keepSettings keeps the settings of the cluster-version operator, the only environment that is read.
func keepSettings(object, reduced map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["namespace"] != versionNamespace || metadata["name"] != versionOperator {
		return
	}
	from, into := containersOf(object), containersOf(reduced)
	for i := range min(len(from), len(into)) {
		variables, _ := from[i]["env"].([]any)
		var kept []any
		for _, each := range variables {
			variable, _ := each.(map[string]any)
			name, _ := variable["name"].(string)
			if value, ok := variable["value"].(string); ok && slices.Contains(settings(), name) {
				kept = append(kept, map[string]any{"name": name, "value": WithoutUsers(value)})
			}
		}
		if kept != nil {
			into[i]["env"] = kept
		}
	}
}

// keepKeys keeps the keys of the annotations of pods in the namespaces of the cluster itself, and of their templates, without
// their values: they show which webhooks of users have changed a pod.
func keepKeys(object, reduced map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	if !strings.HasPrefix(namespace, "openshift-") && !strings.HasPrefix(namespace, "kube-") {
		return
	}
	for _, path := range [][]string{{"metadata", "annotations"}, {"spec", "template", "metadata", "annotations"}} {
		annotations, _, _ := unstructured.NestedMap(object, path...)
		kept, _, _ := unstructured.NestedMap(reduced, path...)
		for key := range annotations {
			if _, known := kept[key]; !known && strings.Contains(key, "/") {
				_ = unstructured.SetNestedField(reduced, "", append(path, key)...) // an error is for a part that was not kept
			}
		}
	}
}

// keepConfiguration keeps of the kernel arguments and files of a MachineConfig what checks read. Both may have secrets: of
// the files the name of the default runtime remains, in one that has nothing else, and the paths of network scripts.
func keepConfiguration(object, reduced map[string]any) {
	from, _ := object["spec"].(map[string]any)
	into, _ := reduced["spec"].(map[string]any)
	if from == nil || into == nil {
		return
	}
	if listed, ok := from["kernelArguments"].([]any); ok {
		var arguments []string
		for _, each := range listed {
			argument, _ := each.(string) // another value is none
			arguments = append(arguments, argument)
		}
		kept := []any{}
		for _, each := range nodeconfig.KeptArguments(arguments) {
			kept = append(kept, each)
		}
		into["kernelArguments"] = kept
	}
	files := nodeconfig.Files{RuntimeUnread: nodeconfig.ErrUnread, ScriptsUnread: nodeconfig.ErrScriptsUnread}
	if encoded, err := json.Marshal(from["config"]); err == nil {
		files = nodeconfig.FilesOf(encoded)
	}
	if config := files.Ignition(); config != nil {
		into["config"] = config
	}
}

// containersOf are the containers of the template of an object; an item that is none is nil.
func containersOf(object map[string]any) []map[string]any {
	at := object
	for _, field := range []string{"spec", "template", "spec"} {
		at, _ = at[field].(map[string]any)
	}
	items, _ := at["containers"].([]any)
	containers := make([]map[string]any, len(items))
	for i, item := range items {
		containers[i], _ = item.(map[string]any)
	}
	return containers
}
