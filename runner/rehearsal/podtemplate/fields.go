package podtemplate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fieldsOf are the fields of a pod that a template has, as objects of values. Items of a list and entries of a map are
// fields whose names have brackets; what is empty is absent. A list of scalars, such as a command, is a value.
func fieldsOf(pod *corev1.Pod) any {
	of := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return err.Error()
	}
	delete(content, "status")
	return fields("", content)
}

// fields is the content of the field of a name; nil where it is empty.
func fields(name string, content any) any {
	var found map[string]any
	switch content := content.(type) {
	case map[string]any:
		found = fieldsOfMap(name, content)
	case []any:
		if len(content) > 0 && fieldsIn(content[0]) == nil {
			return content
		}
		found = items(name, content)
	default:
		return content
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

func fieldsOfMap(name string, content map[string]any) map[string]any {
	if limits := fieldsIn(content["limits"]); limits != nil { // they are requests, too, in a pod, but not in a template
		requests := maps.Clone(limits)
		maps.Copy(requests, fieldsIn(content["requests"]))
		content["requests"] = requests
	}
	found := map[string]any{}
	for key, value := range content {
		within := fields(key, value)
		if slices.Contains([]string{"labels", "annotations", "nodeSelector", "limits", "requests", "overhead"}, name) {
			key = bracket(key) // it is no field of the API
		}
		if within != nil {
			found[key] = within
		}
	}
	return found
}

func items(list string, content []any) map[string]any {
	found, seen := map[string]any{}, map[string]int{}
	for i, value := range content {
		item := fields("", value)
		if item == nil || isDerived(list, fieldsIn(item)) {
			continue
		}
		name := itemName(i, fieldsIn(item))
		if seen[name]++; seen[name] > 1 && !reflect.DeepEqual(found[name], item) {
			name += "#" + strconv.Itoa(seen[name])
		}
		found[name] = item
	}
	return found
}

// isDerived is true for an item that the API server adds or not by the rest of the pod, or by what its ServiceAccount has at
// that time: the volume of the token and its mount, pull secrets, and tolerations of the conditions of nodes.
func isDerived(list string, item map[string]any) bool {
	begins := func(field, prefix string) bool { return strings.HasPrefix(fmt.Sprint(item[field]), prefix) }
	switch list {
	case "volumes", "volumeMounts":
		return begins("name", "kube-api-access-")
	case "tolerations":
		return begins("key", "node.kubernetes.io/")
	default:
		return list == "imagePullSecrets"
	}
}

// itemName is the name of an item by the first field that its list has once, or by the object that it refers to; its index
// if it has neither.
func itemName(index int, item map[string]any) string {
	once := []string{"mountPath", "devicePath", "name", "containerPort", "ip", "topologyKey", "key", "configMapRef", "secretRef"}
	for _, field := range once {
		name := item[field]
		if reference := fieldsIn(name); reference != nil {
			name = reference["name"]
		}
		if name != nil {
			return bracket(fmt.Sprint(name))
		}
	}
	return "[" + strconv.Itoa(index) + "]"
}

func bracket(name string) string { return "[" + strconv.Quote(name) + "]" }

func isItem(name string) bool { return strings.HasPrefix(name, "[") }

func isIndex(name string) bool { return isItem(name) && !strings.HasPrefix(name, `["`) }

// alike are the lists of one object whose items have the same defaults.
func alike(list string) []string {
	if list == "containers" || list == "initContainers" {
		return []string{"containers", "initContainers"}
	}
	return []string{list}
}

// path has the names of the fields from the pod to one of them.
type path []string

func (p path) String() string { return strings.ReplaceAll(strings.Join(p, "."), ".[", "[") }

// isUnusual is true for what the API server never does itself. To a variable it adds fields, but no value.
func (p path) isUnusual(now pair) bool {
	if len(p) < 3 || p[0] != "spec" || len(alike(p[1])) == 1 {
		return false
	}
	if len(p) == 3 || slices.Contains([]string{"image", "command", "args"}, p[3]) {
		return true
	}
	return p.isEnvironment() && (len(p) == 5 || !now.added() || p[len(p)-1] == "value")
}

func (p path) isEnvironment() bool { return len(p) > 3 && (p[3] == "env" || p[3] == "envFrom") }

// pair is a field before and after admission; nil where it is absent.
type pair struct{ before, after any }

func (p pair) sent() bool     { return p.before != nil }
func (p pair) admitted() bool { return p.after != nil }
func (p pair) exists() bool   { return p.sent() || p.admitted() }
func (p pair) added() bool    { return !p.sent() && p.admitted() }
func (p pair) removed() bool  { return p.sent() && !p.admitted() }

// isValue is true where one side is no object of fields.
func (p pair) isValue() bool {
	return p.sent() && fieldsIn(p.before) == nil || p.admitted() && fieldsIn(p.after) == nil
}

// same reports whether nothing has changed. Quantities may be written in another way.
func (p pair) same(at path) bool {
	if reflect.DeepEqual(p.before, p.after) {
		return true
	}
	if !slices.ContainsFunc(at, func(name string) bool { return name == "resources" || name == "overhead" || name == "sizeLimit" }) {
		return false
	}
	before, err := resource.ParseQuantity(fmt.Sprint(p.before))
	after, failure := resource.ParseQuantity(fmt.Sprint(p.after))
	return err == nil && failure == nil && before.Cmp(after) == 0
}

func (p pair) field(name string) pair { return pair{fieldsIn(p.before)[name], fieldsIn(p.after)[name]} }

// names are the sorted names of the fields of both.
func (p pair) names() []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(fieldsIn(p.before))), maps.Keys(fieldsIn(p.after)))
	slices.Sort(all)
	return slices.Compact(all)
}

func fieldsIn(content any) map[string]any {
	fields, ok := content.(map[string]any)
	if !ok {
		return nil
	}
	return fields
}

// textOf is a value for readers; empty for what has fields or is absent.
func textOf(content any) string {
	switch {
	case content == nil || fieldsIn(content) != nil:
		return ""
	case content == "":
		return `""`
	default:
		return fmt.Sprint(content)
	}
}
