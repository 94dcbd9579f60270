package podtemplate

import (
	"cmp"
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

	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// maxItems bounds the items of today that are consulted for one that it lacks.
const maxChanges, maxPath, maxValue, maxItems = 20, 300, 100, 100

// Change is a field in which the admitted pod differs from the sent pod, in a way in which running pods do not differ
// from their template.
type Change struct {
	// Path is such as spec.containers["istio-proxy"].
	Path string
	// Value is the value in the admitted pod, or the fate of the field: "removed", and "changed" for environment
	// variables, whose values may be secret. It is empty for a whole item or object that was added.
	Value string
}

// String is such as: spec.containers["app"].image: example.org/app.
func (c Change) String() string { return c.Path + ": " + cmp.Or(c.Value, "added") }

// Sample is a running pod and the template that it was created from; with another template, its differences would be
// mistaken for changes by admission.
type Sample struct {
	Template Template
	Pod      *corev1.Pod
}

// Constraint is the SecurityContextConstraints that admitted a pod; empty for none.
func Constraint(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Annotations[snapshot.AdmittedSCC]
}

// Changes returns at most 20 changes by admission, in the order of their paths; if there are more, changes of
// containers, images, commands, arguments and environments take precedence.
//
// A change that admission also made to the running pod does not count, whatever the values: the API server sets
// defaults, and its plugins add a priority and a security context to every pod. Nor does an added value count if the
// running pod has one: templates in the cluster contain the defaults already, templates in a release do not. A
// container, variable, volume or port that the running pod lacks is compared with all others of the running pod, and
// additions within an object that the running pod lacks are not evaluated. Tokens, pull secrets and tolerations of the
// conditions of nodes are not compared: they depend on the rest of the pod and on its ServiceAccount. Without a running
// pod, only changes that the API server never makes count: it adds and removes no containers, and does not touch their
// image, command, arguments and environment.
func Changes(sent, admitted *corev1.Pod, today *Sample) []Change {
	if sent == nil || admitted == nil {
		return nil
	}
	var known evidence
	if today != nil && today.Pod != nil && today.Template.Kind != "" {
		known.pairs = []pair{{fieldsOf(today.Template.Pod()), fieldsOf(today.Pod)}}
	}
	var found comparison
	found.compare(nil, pair{fieldsOf(sent), fieldsOf(admitted)}, known)
	changes := slices.Concat(found.unusual, found.others)
	changes = changes[:min(len(changes), maxChanges)]
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes
}

// comparison has the changes, by whether the API server does so itself.
type comparison struct{ unusual, others []Change }

// compare adds the changes of a field, or of the fields within.
func (c *comparison) compare(at path, now pair, today evidence) {
	within := now.names()
	switch {
	case now.isValue():
		if !now.same(at) && !today.explains(at, now) {
			c.report(at, now, today)
		}
	case len(within) > 0 && !isItem(within[0]) && today.lacks(now):
		c.report(at, now, today)
	default:
		for _, name := range within {
			c.compareWithin(at, name, now.field(name), today)
		}
	}
}

func (c *comparison) compareWithin(object path, name string, now pair, today evidence) {
	at, of := append(slices.Clone(object), name), today.of(name)
	isNamed := isItem(name) && !isIndex(name) && !now.isValue()
	switch {
	case isNamed && (now.added() || now.removed()):
		if !of.repeats(now) {
			c.report(at, now, of)
		}
		return
	case isIndex(name), isNamed && !of.any(pair.exists):
		of.pairs = append(of.pairs, today.items...)
	}
	c.compare(at, now, of)
}

// report adds a change. Where today lacks the object of the field, it may be a default.
func (c *comparison) report(at path, now pair, today evidence) {
	change := Change{Path: words.Line(at.String(), maxPath)}
	switch {
	case now.removed():
		change.Value = "removed"
	case !at.isEnvironment():
		change.Value = words.Line(textOf(now.after), maxValue)
	case !now.added():
		change.Value = "changed"
	}
	if at.isUnusual(now) {
		c.unusual = append(c.unusual, change)
	} else if today.known {
		c.others = append(c.others, change)
	}
}

// evidence is the state of a field in running pods.
type evidence struct {
	pairs []pair
	// items are all items of a list. They are the evidence for an item that today lacks.
	items []pair
	// known is whether today's pod has the object of the field, so that the absence of the field counts.
	known bool
}

func (e evidence) any(holds func(pair) bool) bool { return slices.ContainsFunc(e.pairs, holds) }

// explains reports whether a value is added, changed or removed today as well, or may be a default: the API server adds it to
// what a template does not state, and the template of today states it already.
func (e evidence) explains(at path, now pair) bool {
	return e.any(func(p pair) bool {
		switch {
		case now.removed():
			return p.removed()
		case now.added():
			return p.added() || p.admitted() && !at.isUnusual(now)
		case p.added(): // against what the target states, which today's template does not
			return reflect.DeepEqual(p.after, now.after)
		default:
			return p.admitted() && !p.same(nil)
		}
	})
}

// repeats reports whether an item is added or removed today as well. That a template has it is no reason to add it.
func (e evidence) repeats(now pair) bool {
	return e.any(func(p pair) bool { return now.added() && p.added() || now.removed() && p.removed() })
}

// lacks reports whether today has nothing to compare the fields of an object with that was added or removed.
func (e evidence) lacks(now pair) bool {
	return now.added() && !e.any(pair.admitted) || now.removed() && !e.any(func(p pair) bool { return p.sent() && !p.same(nil) })
}

// of is the evidence for the field of a name.
func (e evidence) of(name string) evidence {
	next := evidence{known: e.any(pair.admitted) || e.known && isItem(name)} // an absent list is an empty one
	for _, each := range e.pairs {
		next.pairs = append(next.pairs, each.field(name))
		for _, list := range alike(name) {
			items := each.field(list)
			for _, item := range items.names() {
				if of := items.field(item); of.sent() || isIndex(item) { // not what admission adds with a name of its own
					next.items = append(next.items, of)
				}
			}
		}
	}
	next.items = next.items[:min(len(next.items), maxItems)]
	return next
}

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
