package podtemplate

import (
	"cmp"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// maxItems bounds the items of today that are consulted for one that it lacks.
const maxChanges, maxPath, maxValue, maxItems = 20, 300, 100, 100

// Change is a field in which the admitted pod differs from what was sent, in a way in which pods of today do not
// differ from their template.
type Change struct {
	// Path is such as spec.containers["istio-proxy"].
	Path string
	// Value is that of the admitted pod, or what became of the field: "removed", and "changed" for environment variables,
	// whose values may be secret. It is empty for a whole item or object that was added.
	Value string
}

// String is such as: spec.containers["app"].image: example.org/app.
func (c Change) String() string { return c.Path + ": " + cmp.Or(c.Value, "added") }

// Sample is a pod of today and the template that it was made from; another template would have its differences taken for
// those of admission.
type Sample struct {
	Template Template
	Pod      *corev1.Pod
}

// Constraint is the SecurityContextConstraints that admitted a pod; empty where none did.
func Constraint(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Annotations[snapshot.AdmittedSCC]
}

// Changes are at most 20 changes of admission, in the order of their paths; where there are more, those of containers,
// images, commands, arguments and environments.
//
// What admission does to today's pod as well is no change, whatever the values: the API server sets defaults, and its
// plugins add a priority and a security context to every pod. Nor is a value that is added where today's pod has one:
// templates of the cluster have the defaults already, and those of a release do not. A container, variable, volume or port
// that today lacks is compared with all others of today, and what is added within an object that today lacks is not judged.
// Tokens, pull secrets and tolerations of the conditions of nodes are not compared: they depend on the rest of the pod and
// on its ServiceAccount. Without a pod of today only what the API server never does is a change: it adds and removes no
// containers, and leaves their image, command, arguments and environment.
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

// evidence is what today has of a field.
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
