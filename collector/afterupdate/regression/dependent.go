package regression

import (
	"cmp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/baseline"
)

// act describes, as a clause, a change by the owner of an object since the baseline that explains a problem; empty
// if there is none. The update itself changes objects of the release.
func (c states) act(key baseline.Key, reason string) string {
	was, known := c.was(key)
	is, exists := c.now.Objects[key]
	row := baseline.RowOf(key.Kind)
	switch {
	case c.now.Leaving[key.Namespace]:
		return "its namespace is being deleted"
	case c.now.Deleting[key]:
		return "it is being deleted"
	case known && exists && row.Changes != nil: // which administrators do to objects of the release, too
		return row.Changes(was, is)
	case !known && !exists, is.Release || was.Release:
		return ""
	case !exists && c.unread(key.Kind), key.Kind == baseline.Alert:
		return ""
	case !exists && (key.Kind == baseline.Service && c.serves(was) || key.Kind == baseline.PersistentVolumeClaim):
		return "" // who deleted it is not known
	case !exists:
		return "it was deleted since"
	case !known:
		return "it was created since"
	case key.Namespace != "" && was.UID != "" && is.UID != "" && was.UID != is.UID:
		return "it was deleted and recreated since"
	case was.Desired > 0 && is.Desired == 0 && key.Kind != baseline.Service:
		return "it was scaled to none since"
	case reason != Rolled && !c.isPart(was, is) && c.changed(key, was, is):
		return "its owner changed it since"
	case key.Kind == baseline.ClusterServiceVersion:
		return c.replaced(was, is)
	case key.Kind == baseline.Service && reason == baseline.NoEndpoints && was.Detail == baseline.Ephemeral:
		return "it selected only pods that no controller recreates: pods of a Job, or without an owner"
	}
	return ""
}

// changed reports whether the owner of an object changed more of it than the number of its replicas.
func (c states) changed(key baseline.Key, was, is baseline.Object) bool {
	switch key.Kind { //nolint:exhaustive // other kinds are compared by their revisions below
	case baseline.StatefulSet: // an update may change the revision of the pods, but not the generation of the spec
		return was.Generation != is.Generation && was.Detail != is.Detail
	case baseline.Node:
		return false
	}
	revised := was.Revision != "" && is.Revision != "" && was.Revision != is.Revision
	if !key.Kind.Known() && was.Generation > 0 && is.Generation > 0 { // a new definition may have other defaults, which no owner wrote
		return was.Generation != is.Generation && (revised || was.Desired == is.Desired)
	}
	return revised
}

// isPart reports whether another object makes this one, now and in the baseline: what is done to that excuses it, and not what its
// controller does to it.
func (c states) isPart(was, is baseline.Object) bool {
	_, exists := c.now.Objects[is.Owner]
	return is.Owner != (baseline.Key{}) && is.Owner == was.Owner && exists
}

// serves reports whether a workload is still there that a Service selected: who deletes what a webhook is deletes both.
func (c states) serves(service baseline.Object) bool {
	return slices.ContainsFunc(service.Refs, func(workload baseline.Key) bool { return c.now.Objects[workload].Desired > 0 })
}

// replaced is who replaced an operator of OLM by another version; empty where OLM did so by itself.
func (c states) replaced(was, is baseline.Object) string {
	if was.Detail == "" || is.Detail == "" || was.Detail == is.Detail {
		return ""
	}
	for _, subscription := range is.Refs {
		before, known := c.was(subscription)
		now := c.now.Objects[subscription]
		automatic := known && now.Detail == baseline.Automatic && before.Detail == now.Detail && before.Generation == now.Generation
		ofUser := slices.ContainsFunc(now.Refs, func(catalog baseline.Key) bool {
			source, exists := c.now.Objects[catalog]
			return exists && !source.Release
		})
		if automatic && !ofUser {
			return ""
		}
	}
	return was.Detail + " was replaced by " + is.Detail + " since"
}

// dependencies are the objects that one depends on: its controller, those that it names or selects, now and in the baseline, and the
// Service that serves it.
func (c states) dependencies(key baseline.Key) []baseline.Key {
	was, _ := c.was(key)
	is := c.now.Objects[key]
	all := append(slices.Clone(is.Refs), was.Refs...)
	for _, owner := range []baseline.Key{is.Owner, was.Owner} {
		if owner != (baseline.Key{}) {
			all = append(all, owner)
		}
	}
	if namespace, name, ok := strings.Cut(cmp.Or(is.Detail, was.Detail), "/"); ok && baseline.RowOf(key.Kind).Served {
		all = append(all, baseline.Key{Kind: baseline.Service, Namespace: namespace, Name: name})
	}
	return all
}

// maxDepth bounds how far dependencies are followed.
const maxDepth = 4

// dependents finds the problems that depend on other objects.
type dependents struct{ states states }

// excuseDependents excuses what depends on objects that their owners changed, scaled to none, deleted or created, unless it also
// depends on one that is worse. A router admits a Route without regard to its pods.
func (c dependents) excuseDependents(found []Found) []Found {
	if c.states.before == nil {
		return found
	}
	for range maxDepth { // what follows from an object that is excused now is so in the next round
		if !c.excuseOnce(found) {
			break
		}
	}
	namespaces := map[string]bool{"": false}
	for _, each := range found {
		namespaces[each.Key.Namespace] = namespaces[each.Key.Namespace] || each.Class == Worse && each.Key.Namespace != ""
	}
	for i := range found { // an alert about a namespace of users counts where something else there is worse
		if each := &found[i]; each.Was == ofUsers && namespaces[each.Key.Namespace] {
			each.Class, each.Was = Worse, "it was not firing"
		}
	}
	return found
}

func (c dependents) excuseOnce(found []Found) (changed bool) {
	worse, unknown := map[baseline.Key]bool{}, map[baseline.Key]bool{}
	for _, each := range found {
		if each.Class == Worse && each.Key.Kind != baseline.Alert {
			worse[each.Key] = true
		}
		unknown[each.Key] = unknown[each.Key] || each.Class == Unattributed
	}
	for i := range found {
		each := &found[i]
		if each.Class != Worse || each.Key.Kind == baseline.Route || each.Problem.Reason == baseline.Missing || each.Problem.Reason == Rolled {
			continue
		}
		dependency, text, unread := c.excuse(each.Key, worse)
		switch {
		case text != "":
			each.Class, each.Was, changed = Excused, each.Was+"; "+dependency.String()+": "+text, true
		case unread && each.Problem.Reason == baseline.NoEndpoints, c.isOf(each.Key, worse, unknown):
			each.Class, each.Was, changed = Unattributed, "unknown: its workload was not read", true
		}
	}
	return changed
}

// isOf reports whether a Service of which it is not known why it is bad serves an object.
func (c dependents) isOf(key baseline.Key, worse, unknown map[baseline.Key]bool) bool {
	if !baseline.RowOf(key.Kind).Served {
		return false
	}
	return slices.ContainsFunc(c.states.dependencies(key), func(each baseline.Key) bool {
		return each.Kind == baseline.Service && unknown[each] && !worse[each]
	})
}

// excuse describes a change of an object that another one depends on. If that object is worse, its problem
// explains the dependent one, and more.
func (c dependents) excuse(of baseline.Key, worse map[baseline.Key]bool) (dependency baseline.Key, text string, unread bool) {
	for _, each := range c.states.reached(of) {
		if worse[each] {
			return baseline.Key{}, "", false
		}
		if _, exists := c.states.now.Objects[each]; !exists && c.states.unread(each.Kind) {
			unread = true
		}
		if done := c.states.act(each, ""); done != "" && text == "" {
			dependency, text = each, done
		}
	}
	return dependency, text, unread
}

// reached are the objects that one depends on, and those that these depend on, the nearest first.
func (c states) reached(of baseline.Key) []baseline.Key {
	seen, all, level := map[baseline.Key]bool{of: true}, []baseline.Key(nil), []baseline.Key{of}
	for range maxDepth {
		var next []baseline.Key
		for _, key := range level {
			next = append(next, c.dependencies(key)...)
		}
		next = slices.DeleteFunc(next, func(key baseline.Key) bool {
			known := seen[key]
			seen[key] = true
			return known
		})
		all, level = append(all, next...), next
	}
	return all
}

// originate sets the origin of each problem: for an object that uses another one, the used object; for an owner,
// the objects that it owns; for an object that a ClusterOperator names, the operator; and otherwise the object
// itself. A workload with a ready pod does not explain a Service without endpoints, because that Service then
// selects other pods.
func (c dependents) originate(found []Found) {
	worse, operators := map[baseline.Key]bool{}, map[baseline.Key]string{}
	owned := map[baseline.Key]baseline.Key{}
	for _, each := range found {
		if each.Class == Worse || each.Class == Unattributed {
			worse[each.Key] = true
		}
		if each.Key.Kind == baseline.ClusterOperator && each.Class == Worse {
			operators[each.Key] = each.Problem.Reason
		}
	}
	for _, each := range found {
		if owner := c.states.now.Objects[each.Key].Owner; worse[each.Key] && worse[owner] && owner != (baseline.Key{}) && !owner.Kind.Known() {
			owned[owner] = each.Key
		}
	}
	for i := range found {
		found[i].Origin = c.origin(found[i], worse, owned, operators)
	}
}

func (c dependents) origin(found Found, worse map[baseline.Key]bool, owned map[baseline.Key]baseline.Key,
	operators map[baseline.Key]string,
) Origin {
	key := found.Key
	if independent(key.Kind) {
		return Origin{Key: key, Reason: found.Problem.Reason}
	}
	operator := baseline.Key{Kind: baseline.ClusterOperator, Name: c.states.now.Named[key]}
	if reason := operators[operator]; reason != "" {
		return Origin{Key: operator, Reason: reason}
	}
	if found.Class != Worse && found.Class != Unattributed {
		return Origin{Key: key}
	}
	for range maxDepth {
		next, follows := c.follows(key, worse)
		if part, exists := owned[key]; !follows && exists {
			next, follows = part, true
		}
		if !follows || next == found.Key || next == key {
			break
		}
		key = next
	}
	if independent(key.Kind) {
		return Origin{Key: found.Key}
	}
	return Origin{Key: key}
}

// independent reports whether each problem of an object of the kind is a cause by itself.
func independent(kind baseline.Kind) bool { return kind.Known() && baseline.RowOf(kind).Independent }

// follows is the object that is worse and is used by one; false for none. The owner of an object is none.
func (c dependents) follows(key baseline.Key, worse map[baseline.Key]bool) (baseline.Key, bool) {
	is, owner := c.states.now.Objects[key], c.states.now.Objects[key].Owner
	for _, each := range c.states.dependencies(key) {
		at := c.states.now.Objects[each]
		serves := key.Kind != baseline.Service || at.Ready == 0 || is.Ready > 0
		if each != owner && worse[each] && serves {
			return each, true
		}
	}
	return baseline.Key{}, false
}

// CompareCauses orders the problems of one origin: the origin's own problems come first, and among them a cause
// that keeps pods from running comes before the number of pods that are not ready.
func CompareCauses(a, b Found) int {
	rank := func(f Found) int {
		switch {
		case f.Key != f.Origin.Key:
			return 2
		case slices.Contains([]string{"Unavailable", "RolloutIncomplete", "ProgressDeadlineExceeded", "PartsNotReady"}, f.Problem.Reason):
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), compare(a, b))
}
