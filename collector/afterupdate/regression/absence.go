package regression

import (
	"maps"
	"slices"

	"github.com/openshift/update-preflight/collector/baseline"
)

// Loss is a loss of so much in a namespace of users that no owner is assumed.
type Loss struct {
	Namespace string
	// Objects is how many are gone.
	Objects int
}

// loss counts the workloads of a namespace of users, and those that are gone.
type loss struct{ had, gone, objects int }

// absence finds what is gone.
type absence struct {
	states states
	seen   Seen
}

// absences adds what was in the baseline and is gone.
func (c absence) absences(made *Comparison) {
	losses := map[string]*loss{}
	for key, was := range c.states.before.Objects {
		_, exists := c.states.now.Objects[key]
		c.count(losses, key, was, exists)
		if exists || c.states.unread(key.Kind) || baseline.RowOf(key.Kind).Absence == baseline.Fleeting || c.states.now.Deleting[key] ||
			c.states.left(key) {
			continue
		}
		class, text := c.missing(key, was)
		switch {
		case class != "":
			made.Found = append(made.Found, Found{
				Key: key, Class: class, Was: good(was),
				Problem: baseline.Problem{Reason: baseline.Missing, Message: text},
			})
		case was.Owner == (baseline.Key{}) && key.Kind != baseline.Node && key.Kind != baseline.CSINode: // otherwise its owner decides
			made.Gone = append(made.Gone, key)
		}
	}
	slices.SortFunc(made.Gone, baseline.Key.Compare)
	made.Lost = lost(losses)
}

// unread reports whether the objects of a kind are unknown. If the kind is no longer served, its objects were
// deleted with its CustomResourceDefinition.
func (c states) unread(kind baseline.Kind) bool {
	_, served := c.now.APIs[kind]
	return c.now.Unread[kind] != "" || !kind.Known() && !served && kind != baseline.Namespace && kind != baseline.Pod
}

// left reports whether an object went with its namespace, which is a deed by itself.
func (c states) left(key baseline.Key) bool {
	if key.Namespace == "" || c.unread(baseline.Namespace) {
		return c.now.Leaving[key.Namespace] || key.Kind == baseline.Namespace && c.now.Leaving[key.Name]
	}
	namespace := baseline.Key{Kind: baseline.Namespace, Name: key.Namespace}
	_, had := c.before.Objects[namespace]
	_, has := c.now.Objects[namespace]
	return had && !has
}

// missing is the class of an object that is gone, and a clause about it; none where that is listed only.
func (c absence) missing(key baseline.Key, was baseline.Object) (class Class, text string) {
	row := baseline.RowOf(key.Kind)
	switch {
	case row.Absence == baseline.OfNodes:
		return c.missingNode(key, was)
	case key.Kind == baseline.CSINode:
		_, node := c.states.now.Objects[baseline.Key{Kind: baseline.Node, Name: key.Name}]
		return when(node, Worse), "the node has no CSINode, so no volume can be mounted there"
	case key.Kind == baseline.StorageClass && was.Detail == baseline.Default:
		return when(!c.hasDefaultClass(), Worse), "it was the default class of claims, and there is no other one"
	case key.Kind == baseline.MachineConfigPool:
		return when(key.Name == "master" || key.Name == "worker", Worse), "the pool does not exist"
	case was.Release && (row.Absence == baseline.Lost || c.states.now.Named[key] != "" || key.Kind == baseline.Pod):
		return Worse, "it does not exist"
	case was.Release && row.Pods && c.isUsed(key):
		return Worse, "it does not exist, and a Service still selects its pods"
	case !was.Release && key.Kind == baseline.PersistentVolumeClaim:
		return when(!c.clearedAway(key), Unattributed), "it does not exist, and who deleted it is unknown"
	}
	return "", ""
}

// when is a class where a condition holds, and none otherwise.
func when(holds bool, class Class) Class { //nolint:revive // a conditional value, not a mode
	if holds {
		return class
	}
	return ""
}

// missingNode is the class of a node that is not registered any more. A Machine is deleted when a MachineSet is scaled, and a
// MachineSet without all its machines has a problem of its own. Who removes a node without a Machine cordons it first.
func (c absence) missingNode(key baseline.Key, was baseline.Object) (class Class, text string) {
	switch {
	case was.Release:
		return Worse, "the node of the control plane is not registered"
	case was.Revision != "":
		return "", ""
	case c.seen.Cordoned[key]:
		return Excused, "the node is not registered; it was cordoned before"
	}
	return Worse, "the node is not registered"
}

func (c absence) hasDefaultClass() bool {
	for key, object := range c.states.now.Objects {
		if key.Kind == baseline.StorageClass && object.Detail == baseline.Default {
			return true
		}
	}
	return false
}

// isUsed reports whether a Service that selected the pods of a workload still exists, and selects pods of no other
// workload.
func (c absence) isUsed(workload baseline.Key) bool {
	for key, was := range c.states.before.Objects {
		if key.Kind != baseline.Service || key.Namespace != workload.Namespace || !slices.Contains(was.Refs, workload) {
			continue
		}
		if is, exists := c.states.now.Objects[key]; exists && len(is.Refs) == 0 {
			return true
		}
	}
	return false
}

// clearedAway reports whether the workload of a claim is gone, or scaled to none, as one whose volumes are deleted is.
func (c absence) clearedAway(claim baseline.Key) bool {
	for key, was := range c.states.before.Objects {
		if is, exists := c.states.now.Objects[key]; key.Namespace == claim.Namespace && slices.Contains(was.Refs, claim) &&
			(!exists || is.Desired == 0) {
			return true
		}
	}
	return false
}

// isWorkload reports whether an object has parts: pods, machines or instances.
func isWorkload(key baseline.Key, object baseline.Object) bool {
	return baseline.RowOf(key.Kind).Pods || !key.Kind.Known() && object.Desired > 0
}

// count counts a workload of users, but in a namespace that is deleted.
func (c absence) count(losses map[string]*loss, key baseline.Key, was baseline.Object, exists bool) { //nolint:revive // a fact, not a mode
	if was.Release || key.Namespace == "" || c.states.unread(key.Kind) || c.states.now.Deleting[key] || c.states.left(key) {
		return
	}
	at := losses[key.Namespace]
	if at == nil {
		at = &loss{}
		losses[key.Namespace] = at
	}
	if !exists && was.Owner == (baseline.Key{}) {
		at.objects++
	}
	if isWorkload(key, was) && was.Owner == (baseline.Key{}) {
		at.had++
		if !exists {
			at.gone++
		}
	}
}

// What is a loss of so much that no owner is assumed: all workloads of a namespace, or a tenth of all, but not one or two.
const (
	fewWorkloads = 2
	tenth        = 10
)

// lost states which namespaces lost so much.
func lost(losses map[string]*loss) []Loss {
	var had, gone int
	for _, each := range losses {
		had, gone = had+each.had, gone+each.gone
	}
	var found []Loss
	for _, namespace := range slices.Sorted(maps.Keys(losses)) {
		each := losses[namespace]
		if mass := each.gone == each.had || tenth*gone >= had; each.gone > 0 && mass && gone > fewWorkloads {
			found = append(found, Loss{Namespace: namespace, Objects: each.objects})
		}
	}
	return found
}
