// Package merge answers: what does the cluster-version operator (CVO) write for a manifest, given the object in the
// cluster? Call Inject with the manifest first, then Of. An object that does not exist in the cluster is created from
// its manifest unchanged.
//
// Values are compared as CVO compares them: as the Go types of the API, after the defaults that CVO knows. So an empty
// list equals an absent one and "1000m" equals "1", while a field that only the object has is a difference. If the API
// server adds a default that CVO does not know, such as the port 443 of a webhook, CVO writes the object in every
// cycle, which changes nothing; Of reports this as a change too. It expects an existing object as the API server
// returns it, with the defaults of the API server.
//
// A manifest that does not have the structure of its kind replaces the content of the object: the API server rejects
// it.
package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Of returns the object that CVO writes for the manifest required over the existing object; it changes neither. changed
// is false if CVO writes nothing. The rules follow CVO's lib/resourcemerge and lib/resourceapply for the kinds of
// lib/resourcebuilder/resourcebuilder.go, in these versions; all other kinds follow pkg/cvo/internal/generic.go. The
// caller must have added to required everything that CVO adds to manifests before: the ClusterVersion as their owner
// (ownerReferenceModifier in pkg/cvo/cvo.go), the TLS profile in annotated ConfigMaps and the address of the API server
// in CVO's own Deployment (lib/resourcebuilder/core.go and apps.go), and the proxy, which Inject adds.
func Of(required, existing *unstructured.Unstructured) (merged *unstructured.Unstructured, changed bool) {
	if CreateOnly(required) {
		return existing.DeepCopy(), false
	}
	merge := ruleOf(required.GroupVersionKind())
	if merge == nil {
		return generic(required, existing)
	}
	is, changed := merge(existing.Object, required.Object)
	if !changed {
		return existing.DeepCopy(), false
	}
	content, _ := mapping(is) // the rule of a kind makes a map of maps
	return (&unstructured.Unstructured{Object: content}).DeepCopy(), true
}

// CreateOnly reports whether CVO creates the object but never updates it (lib/resourceapply/interface.go).
func CreateOnly(required *unstructured.Unstructured) bool {
	return strings.EqualFold(required.GetAnnotations()["release.openshift.io/create-only"], "true")
}

// Proxy has the values of the status of Proxy "cluster". Without any of them, CVO adds nothing.
type Proxy struct{ HTTP, HTTPS, No string }

// Inject adds the proxy to the environment of the containers that the annotation config.openshift.io/inject-proxy of a
// Deployment or DaemonSet of apps/v1 names (lib/resourcebuilder/apps.go and podspec.go); it changes the manifest. The error
// names a container that does not exist: CVO then fails to apply the manifest.
func Inject(required *unstructured.Unstructured, proxy Proxy) error {
	kind, names := required.GroupVersionKind(), required.GetAnnotations()["config.openshift.io/inject-proxy"]
	isWorkload := kind.GroupVersion() == appsv1.SchemeGroupVersion && (kind.Kind == "Deployment" || kind.Kind == "DaemonSet")
	if !isWorkload || names == "" || proxy == (Proxy{}) {
		return nil
	}
	for name := range strings.SplitSeq(names, ",") {
		if !injected(required, name, proxy) {
			return fmt.Errorf("the proxy must be injected into container %q, which does not exist", name)
		}
	}
	return nil
}

// injected is false where no container has the name.
func injected(required *unstructured.Unstructured, name string, proxy Proxy) bool {
	found := false
	for _, list := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedFieldNoCopy(required.Object, "spec", "template", "spec", list) // none with an error
		known, _ := rows(containers)
		for _, container := range known {
			if container["name"] != name {
				continue
			}
			found = true
			env, isList := container["env"].([]any)
			if container["env"] != nil && !isList {
				continue // the API server refuses it
			}
			container["env"] = append(slices.Clip(env),
				map[string]any{"name": "HTTP_PROXY", "value": proxy.HTTP},
				map[string]any{"name": "HTTPS_PROXY", "value": proxy.HTTPS},
				map[string]any{"name": "NO_PROXY", "value": proxy.No})
		}
	}
	return found
}

// generic is the rule of kinds without one of their own: a difference in any field, and be it a default of the API
// server, has all fields replaced that the manifest has, with the labels, annotations and owners.
func generic(required, existing *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	merged, needed := existing.DeepCopy(), required.DeepCopy()
	content, expected := copied(merged.Object), copied(needed.Object)
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(needed.Object, name)
		if value, found := content[name]; found {
			expected[name] = value
		}
	}
	if reflect.DeepEqual(expected, content) {
		return merged, false
	}
	maps.Copy(content, needed.Object)
	merged.Object = content
	merged.SetAnnotations(required.GetAnnotations())
	merged.SetLabels(required.GetLabels())
	merged.SetOwnerReferences(owners(required, existing))
	return merged, true
}

// owners returns the owners in the manifest. If it has none, CVO adds the ClusterVersion, which is kept.
func owners(required, existing *unstructured.Unstructured) []metav1.OwnerReference {
	if stated := required.GetOwnerReferences(); len(stated) > 0 {
		return stated
	}
	var kept []metav1.OwnerReference
	for _, owner := range existing.GetOwnerReferences() {
		if owner.Kind == "ClusterVersion" {
			kept = append(kept, owner)
		}
	}
	return kept
}

// A rule determines the new value from the object's value (was) and the manifest's (want), where nil means absent. It
// changes neither; is has no meaning if nothing changed.
type rule func(was, want any) (is any, changed bool)

// replace compares values as T, which is a pointer where CVO distinguishes an absent value from zero.
func replace[T any](was, want any) (any, bool) {
	var have, needed T
	if decode(was, &have) && decode(want, &needed) {
		return want, !equality.Semantic.DeepEqual(have, needed)
	}
	return want, !reflect.DeepEqual(was, want)
}

func decode(value, into any) bool {
	data, err := json.Marshal(value)
	return err == nil && kjson.UnmarshalCaseSensitivePreserveInts(data, into) == nil
}

// ifSet leaves the value of the object where the manifest states none.
func ifSet(of rule) rule {
	return func(was, want any) (any, bool) {
		if want == nil || want == "" {
			return was, false
		}
		return of(was, want)
	}
}

// orElse takes a default where the manifest states no value.
func orElse(value any, of rule) rule {
	return func(was, want any) (any, bool) {
		if want == nil || want == "" {
			want = value
		}
		return of(was, want)
	}
}

// pointer is for an object that is added and removed as a whole, and otherwise has a rule.
func pointer(of rule) rule {
	return func(was, want any) (any, bool) {
		if was == nil || want == nil {
			return want, was != nil || want != nil
		}
		return of(was, want)
	}
}

// shaped is the rule for values of one shape. One of another shape replaces what the object has.
func shaped[T any](as func(any) (T, bool), of func(was, want T) (any, bool)) rule {
	return func(was, want any) (any, bool) {
		have, isRead := as(was)
		needed, isStated := as(want)
		if !isRead || !isStated {
			return replace[any](was, want)
		}
		return of(have, needed)
	}
}

// fields are the rules of fields, by their names.
type fields map[string]rule

func all(have rule, names ...string) fields {
	of := fields{}
	for _, name := range names {
		of[name] = have
	}
	return of
}

// object merges fields, and leaves those without a rule as they are.
func object(parts ...fields) rule {
	of := fields{}
	for _, part := range parts {
		maps.Copy(of, part)
	}
	return shaped(mapping, func(was, want map[string]any) (any, bool) {
		is, changed := copied(was), false
		for name, merge := range of {
			if value, differs := merge(was[name], want[name]); differs {
				changed = true
				put(is, name, value)
			}
		}
		return is, changed
	})
}

// entries merges a map: the manifest determines the keys that it has.
func entries[T any]() rule {
	return shaped(mapping, func(was, want map[string]any) (any, bool) {
		is, changed := copied(was), false
		for name, value := range want {
			old, found := was[name]
			if _, differs := replace[T](old, value); differs || !found {
				is[name], changed = value, true
			}
		}
		return is, changed
	})
}

// added merges a list of objects by a key. Those that only the object has are left.
func added(key string, of rule) rule {
	return shaped(rows, func(was, want []map[string]any) (any, bool) { return joined(key, of, was, want) })
}

// exactly is added without those that only the object has.
func exactly(key string, of rule) rule {
	return shaped(rows, func(was, want []map[string]any) (any, bool) {
		kept := slices.DeleteFunc(slices.Clone(was), func(old map[string]any) bool { return indexOf(want, key, old) < 0 })
		is, changed := joined(key, of, kept, want)
		return is, changed || len(kept) < len(was)
	})
}

func joined(key string, of rule, was, want []map[string]any) (any, bool) {
	if len(was)+len(want) == 0 {
		return nil, false
	}
	is, changed := make([]any, len(was)), false
	for at, old := range was {
		is[at] = old
		if wanted := indexOf(want, key, old); wanted >= 0 {
			if value, differs := of(old, want[wanted]); differs {
				is[at], changed = value, true
			}
		}
	}
	for at, each := range want {
		if indexOf(was, key, each) < 0 && indexOf(want, key, each) == at {
			is, changed = append(is, each), true
		}
	}
	return is, changed
}

// missing appends the items that the object lacks.
func missing[T any]() rule {
	return shaped(items, func(was, want []any) (any, bool) {
		is := slices.Clone(was)
		for _, each := range want {
			if !has[T](is, each) {
				is = append(is, each)
			}
		}
		return is, len(is) > len(was)
	})
}

// distinct is missing, without repetitions of what the manifest has.
func distinct[T any]() rule {
	return shaped(items, func(was, want []any) (any, bool) {
		var kept []any
		for _, each := range was {
			if !has[T](want, each) || !has[T](kept, each) {
				kept = append(kept, each)
			}
		}
		is, changed := missing[T]()(kept, want)
		return is, changed || len(kept) < len(was)
	})
}

// with adds defaults to both values before they are merged: CVO adds them to the manifest, and the API server to what it
// has stored, but not yet to what CVO is about to write.
func with(of rule, defaults ...preset) rule {
	return func(was, want any) (any, bool) { return of(filled(was, defaults), filled(want, defaults)) }
}

// preset is the default of a field of an object that exists. The value may be computed.
type preset struct {
	path  []string
	value any
	isSet func(any) bool
}

// absent is the default of a field for which CVO distinguishes absence from the zero value, zero the default of any
// other field; * in the path is each item of a list.
func absent(path string, value any) preset {
	return preset{strings.Split(path, "."), value, func(value any) bool { return value != nil }}
}

func zero(path string, value any) preset {
	return preset{strings.Split(path, "."), value, func(value any) bool { return value != nil && value != "" && value != int64(0) }}
}

// computed is a default that depends on the object of the field, or on the whole value. It is nil for none.
type computed func(whole any, of map[string]any) any

func filled(value any, defaults []preset) any {
	whole := runtime.DeepCopyJSONValue(value)
	for _, each := range defaults {
		each.fill(whole, whole, each.path)
	}
	return whole
}

func (p preset) fill(whole, at any, path []string) {
	if list, ok := at.([]any); ok && path[0] == "*" {
		for _, each := range list {
			p.fill(whole, each, path[1:])
		}
		return
	}
	within, ok := at.(map[string]any)
	switch {
	case !ok || within == nil:
	case len(path) > 1:
		p.fill(whole, within[path[0]], path[1:])
	case !p.isSet(within[path[0]]):
		value := p.value
		if compute, isComputed := value.(computed); isComputed {
			value = compute(whole, within)
		}
		put(within, path[0], runtime.DeepCopyJSONValue(value))
	}
}

// mapping, items and rows are a value as a map, a list, and a list of maps. An absent value is an empty one.
func mapping(value any) (map[string]any, bool) {
	content, ok := value.(map[string]any)
	return content, ok || value == nil
}

func items(value any) ([]any, bool) {
	list, ok := value.([]any)
	return list, ok || value == nil
}

func rows(value any) ([]map[string]any, bool) {
	list, ok := items(value)
	found := make([]map[string]any, len(list))
	for at, each := range list {
		row, isMap := each.(map[string]any)
		if !isMap {
			return nil, false
		}
		found[at] = row
	}
	return found, ok
}

// indexOf is where the list has the first object with the key of another one, or -1. An absent key is an empty one.
func indexOf(list []map[string]any, key string, of map[string]any) int {
	name, _ := of[key].(string)
	return slices.IndexFunc(list, func(each map[string]any) bool {
		text, _ := each[key].(string)
		return text == name
	})
}

func has[T any](list []any, value any) bool {
	return slices.ContainsFunc(list, func(each any) bool {
		_, differs := replace[T](each, value)
		return !differs
	})
}

func copied(content map[string]any) map[string]any {
	copied := make(map[string]any, len(content))
	maps.Copy(copied, content)
	return copied
}

func put(into map[string]any, name string, value any) {
	if value == nil {
		delete(into, name)
		return
	}
	into[name] = value
}
