package regression

import "github.com/openshift/update-preflight/collector/baseline"

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
		switch key.Kind { //nolint:exhaustive // the others depend on no workload
		case baseline.Alert:
			found[i] = owners.excuse(found[i], key.Namespace, "")
		case baseline.ValidatingWebhook, baseline.MutatingWebhook, baseline.APIService:
			if found[i].Class != Worse {
				continue
			}
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
