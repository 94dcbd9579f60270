package regression

import (
	"cmp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/baseline"
)

// origin is what a problem follows from: a webhook or API without endpoints from its Service, a Service without endpoints
// from the workload of its name that has no ready pod, and any other problem from its own object. A workload with a
// ready pod explains no Service without endpoints, which selects other pods then.
func (c comparer) origin(found Found) Origin {
	key := found.Key
	if isCondition(key.Kind) {
		return Origin{Key: key, Reason: found.Problem.Reason}
	}
	if namespace, name, ok := strings.Cut(c.now.Objects[key].Detail, "/"); ok && isServed(key.Kind) {
		if service := (baseline.Key{Kind: baseline.Service, Namespace: namespace, Name: name}); len(c.now.Objects[service].Problems) > 0 {
			key = service
		}
	}
	if key.Kind != baseline.Service {
		return Origin{Key: key}
	}
	for _, kind := range workloads() {
		workload := baseline.Key{Kind: kind, Namespace: key.Namespace, Name: key.Name}
		if is := c.now.Objects[workload]; is.Ready == 0 && len(is.Problems) > 0 {
			key = workload
		}
	}
	return Origin{Key: key}
}

// isServed is true for the kinds that a Service serves, by which their Detail names it.
func isServed(kind baseline.Kind) bool {
	return slices.Contains([]baseline.Kind{baseline.ValidatingWebhook, baseline.MutatingWebhook, baseline.APIService}, kind)
}

// CompareCauses orders the problems of one origin: those of the origin itself first, and of these what keeps pods from
// running before how many are not ready.
func CompareCauses(a, b Found) int {
	rank := func(f Found) int {
		switch {
		case f.Key != f.Origin.Key:
			return 2
		case slices.Contains([]string{"Unavailable", "RolloutIncomplete", "ProgressDeadlineExceeded"}, f.Problem.Reason):
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), compare(a, b))
}

// excuseDependents excuses what depends on workloads that their owners changed, scaled to none or deleted: Services, the
// webhooks and APIs that they serve, and alerts. A router admits a Route without regard to its pods.
func (c comparer) excuseDependents(found []Found) []Found {
	owners := c.owners(found)
	services := map[string]Class{}
	for i := range found {
		if found[i].Key.Kind == baseline.Service {
			found[i] = owners.excuse(found[i], found[i].Key.Namespace, found[i].Key.Name)
			services[found[i].Key.Namespace+"/"+found[i].Key.Name] = found[i].Class
		}
	}
	for i := range found {
		key := found[i].Key
		switch {
		case key.Kind == baseline.Alert:
			found[i] = owners.excuse(found[i], key.Namespace, "")
		case isServed(key.Kind) && found[i].Class == Worse:
			switch services[c.now.Objects[key].Detail] { //nolint:exhaustive // the others say nothing about it
			case Excused:
				found[i].Class, found[i].Was = Excused, found[i].Was+"; its Service, or a workload behind it, was changed by its owner since"
			case Unattributed:
				found[i].Class, found[i].Was = Unattributed, notRead
			}
		}
	}
	return found
}

// notRead is why it is not known whether an owner changed what an object depends on.
const notRead = "unknown: its workload was not read"

// owners are what the owners of workloads did since the baseline.
type owners struct {
	// of are the workloads by namespace and name: true for one that its owner changed, scaled to none or deleted.
	of map[string]bool
	// unread are those of before of which it is not known whether they exist.
	unread map[string]bool
	// changed are the namespaces with such a workload, and worse those with one whose problem its owner did not cause.
	changed, worse map[string]bool
}

func (c comparer) owners(found []Found) owners {
	made := owners{of: map[string]bool{}, unread: map[string]bool{}, changed: map[string]bool{}, worse: map[string]bool{}}
	if c.before == nil {
		return made
	}
	for key, was := range c.before.Objects {
		is, exists := c.now.Objects[key]
		switch {
		case !isWorkload(key.Kind) || key.Platform():
		case !exists && c.now.Unread[key.Kind] != "":
			made.unread[key.Namespace+"/"+key.Name] = true
		default:
			made.note(key, was.Desired > 0 && is.Desired == 0)
		}
	}
	for _, each := range found {
		if isWorkload(each.Key.Kind) {
			made.note(each.Key, each.Class == Excused)
			made.worse[each.Key.Namespace] = made.worse[each.Key.Namespace] || each.Class == Worse
		}
	}
	return made
}

// note notes a workload, and whether its owner changed it.
func (o owners) note(key baseline.Key, byOwner bool) {
	name := key.Namespace + "/" + key.Name
	o.of[name] = o.of[name] || byOwner
	o.changed[key.Namespace] = o.changed[key.Namespace] || byOwner
}

// excuse excuses a problem in a namespace of a user: by the workload of that name, or, where there is none, by any one
// of the namespace, if no other is worse.
func (o owners) excuse(found Found, namespace, name string) Found {
	if found.Class != Worse || (baseline.Key{Namespace: namespace}).Platform() {
		return found
	}
	byOwner, exists := o.of[namespace+"/"+name]
	if !exists && o.unread[namespace+"/"+name] && found.Problem.Reason == baseline.NoEndpoints {
		found.Class, found.Was = Unattributed, notRead
		return found
	}
	if !exists {
		byOwner = o.changed[namespace] && !o.worse[namespace]
	}
	if byOwner {
		found.Class, found.Was = Excused, found.Was+"; a workload was changed by its owner since"
	}
	return found
}
