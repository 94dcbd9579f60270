// Package regression answers: what is worse in this cluster than in its baseline, and may the update have caused
// it?
//
// [Compare] classifies every problem of a later state, and every missing object. It is pure, and knows neither
// times nor limits: package afterupdate decides how long a problem must last. A change by an owner excuses only
// the problems of that object and of its dependents.
package regression

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
)

// Class is the result of a comparison for a problem.
type Class string

// The classes.
const (
	// Worse means that the object did not have the problem in the baseline.
	Worse Class = "Worse"
	// Unchanged means that it had the problem, or one like it, in the baseline.
	Unchanged Class = "Unchanged"
	// Excused means that the owner of the object, or of one that it depends on, changed, scaled, deleted or created that since
	// the baseline.
	Excused Class = "Excused"
	// Unattributed means that the baseline does not show whether the object had the problem, or that it is unknown who
	// deleted the object.
	Unattributed Class = "Unattributed"
)

// Reasons of problems that only a comparison finds.
const (
	// DriverMissing is a node without a driver for volumes that it had.
	DriverMissing = "DriverMissing"
	// Rolled is a StatefulSet whose pods were replaced, although its owner did not change it.
	Rolled = "Rolled"
	// PhaseLeft is an object that has left a phase in which all was well.
	PhaseLeft = "PhaseLeft"
	// PartsGone is an object without any of the pods that it had.
	PartsGone = "PartsGone"
)

var _ = catalog.Reasons("A comparison with the time before the update finds this problem.", `
DriverMissing | A CSI driver that the node had is not registered there, so its volumes cannot be mounted on the node. | Check the pod of the driver on the
	node. | oc get pods -A --field-selector spec.nodeName=NODE
Missing | The object existed before the update and is gone. | Find out who deleted it, in the audit log of the API server, and recreate it; if it is a
	node, start it, and it joins by itself.
PartsGone | It had pods before the update, and has none. | Read its conditions, and the log of its controller. | oc describe KIND NAME -n NAMESPACE
PhaseLeft | It was in a healthy phase before the update, and is in another phase. | Read its status, and the log of its controller. | oc describe KIND NAME
	-n NAMESPACE
Rolled | The pods of a StatefulSet were replaced although its owner did not change it: the new release has another default. | Check that its application has
	recovered; the object needs no change.`)

// Progressing is the reason of an operator whose rollout is in progress, which is a problem only after its limit.
const Progressing = "Progressing"

// Found is one problem of one object, in comparison with the baseline.
type Found struct {
	Key     baseline.Key
	Problem baseline.Problem
	Class   Class
	// Was is the object in the baseline, as a clause.
	Was string
	// Origin is the same for the problems of one cause.
	Origin Origin
}

// Origin identifies the common cause of related problems: the object, or for conditions, which are independent of
// each other, the object and the reason.
type Origin struct {
	Key    baseline.Key
	Reason string
}

// Comparison is the result of comparing a state with the baseline.
type Comparison struct {
	// Found are sorted by object and reason.
	Found []Found
	// Good is how many objects have no problem.
	Good int
	// Gone are the objects that no longer exist, without this being a problem: a release or their owner deleted them.
	Gone []baseline.Key
	// Stopped are the objects that their owners scaled to none. Lost are sorted by namespace.
	Stopped []baseline.Key
	// Leaving are the namespaces that are being deleted, whose objects are left out.
	Leaving []string
	Lost    []Loss
}

// Seen is the summary of earlier states after the update.
type Seen struct {
	// Cordoned are the nodes that were unschedulable.
	Cordoned map[baseline.Key]bool
}

// Compare classifies the problems of a state. Without a baseline, every problem is Unattributed.
func Compare(before *baseline.State, now baseline.State, seen Seen) Comparison {
	both := states{before, now}
	c := comparer{states: both, nodes: countNodes(before, now)}
	var made Comparison
	for _, key := range now.Keys() {
		object := now.Objects[key]
		problems := c.problems(key, object)
		if len(problems) == 0 {
			made.Good++
			if was, known := both.was(key); known && !object.Release && isWorkload(key, was) && was.Desired > 0 && object.Desired == 0 {
				made.Stopped = append(made.Stopped, key)
			}
		}
		for _, each := range problems {
			class, was := c.classify(key, object, each)
			made.Found = append(made.Found, Found{Key: key, Problem: each, Class: class, Was: was})
		}
	}
	if before != nil {
		absence{both, seen}.absences(&made)
	}
	for namespace := range now.Leaving {
		made.Leaving = append(made.Leaving, namespace)
	}
	slices.Sort(made.Leaving)
	follow := dependents{both}
	made.Found = follow.excuseDependents(made.Found)
	follow.originate(made.Found)
	slices.SortStableFunc(made.Found, compare)
	return made
}

func compare(a, b Found) int {
	if by := a.Key.Compare(b.Key); by != 0 {
		return by
	}
	return strings.Compare(a.Problem.Reason, b.Problem.Reason)
}

// states are the two that are compared.
type states struct {
	before *baseline.State
	now    baseline.State
}

// comparer classifies the problems of objects that are there.
type comparer struct {
	states states
	nodes  nodes
}

// was is the object in the baseline; false where it was not there.
func (c states) was(key baseline.Key) (baseline.Object, bool) {
	if c.before == nil {
		return baseline.Object{}, false
	}
	found, ok := c.before.Objects[key]
	return found, ok
}

// problems returns the current problems of the object that can be regressions, including the ones that only the
// comparison finds.
func (c comparer) problems(key baseline.Key, object baseline.Object) []baseline.Problem {
	var all []baseline.Problem
	for _, each := range object.Problems {
		if !expected(key) {
			all = append(all, each)
		}
	}
	was, known := c.states.was(key)
	if known && widened(key, was, object) && len(all) > 0 {
		all[0].Since, all[0].Message = time.Time{}, "it is firing for "+words.Count(int64(object.Desired), "instance")
	}
	if !known {
		return slices.DeleteFunc(all, func(p baseline.Problem) bool {
			return p.Reason == baseline.NoEndpoints && c.states.before != nil && !object.Release
		})
	}
	if found, ok := c.compared(key, was, object); ok {
		all = append(all, found)
	}
	return all
}

// compared is the problem that only the comparison finds; false for none.
func (c comparer) compared(key baseline.Key, was, is baseline.Object) (baseline.Problem, bool) {
	switch {
	case key.Kind == baseline.CSINode:
		lost := c.lostDrivers(was.Detail, is.Detail)
		return baseline.Problem{Reason: DriverMissing, Message: "the node has no driver " + strings.Join(lost, ", "), Node: key.Name},
			len(lost) > 0
	case key.Kind == baseline.StatefulSet && !is.Release:
		rolled := is.Generation > 0 && was.Generation == is.Generation && was.UID == is.UID && was.Detail != "" && is.Detail != "" &&
			was.Detail != is.Detail
		return baseline.Problem{Reason: Rolled, Message: fmt.Sprintf("its pods were replaced: revision %s in place of %s, of the same spec",
			is.Detail, was.Detail)}, rolled
	case key.Kind.Known() || len(is.Problems) > 0:
		return baseline.Problem{}, false
	case was.Ready > 0 && is.Ready == 0 && was.Desired == is.Desired && len(was.Problems) == 0:
		return baseline.Problem{Reason: PartsGone, Message: fmt.Sprintf("none of its %d pods remains", was.Ready)}, true
	case isGoodPhase(was.Detail) && is.Detail != "" && was.Detail != is.Detail && !isGoodPhase(is.Detail) && !hasEnded(is.Detail):
		return baseline.Problem{Reason: PhaseLeft, Message: fmt.Sprintf("its phase is %q in place of %q", is.Detail, was.Detail)}, true
	}
	return baseline.Problem{}, false
}

// hasEnded reports whether a phase means that the object has done its work, such as a volume whose claim was
// deleted.
func hasEnded(phase string) bool {
	lower := strings.ToLower(phase)
	return slices.ContainsFunc([]string{"complete", "finish", "done", "released"},
		func(word string) bool { return strings.HasPrefix(lower, word) })
}

func isGoodPhase(phase string) bool {
	return phase != "" && (strings.EqualFold(phase, "running") ||
		reported.MeaningOf(strings.ToUpper(phase[:1])+strings.ToLower(phase[1:])) == reported.Good)
}

// expectedAlerts fire because of an update that is good: about the next one.
//
// APIRemovedInNextReleaseInUse means another release after an update to another minor version, and CannotRetrieveUpdates fires
// where the channel of before has not the present version.
func expectedAlerts() []string {
	return []string{
		"APIRemovedInNextEUSReleaseInUse", "APIRemovedInNextReleaseInUse", "CannotRetrieveUpdates", "ClusterNotUpgradeable",
		"UpdateAvailable", "Watchdog",
	}
}

func expected(key baseline.Key) bool {
	return key.Kind == baseline.Alert && slices.Contains(expectedAlerts(), of(key))
}

// lostDrivers are those that the node had and that the cluster still has.
func (c comparer) lostDrivers(was, is string) []string {
	present := strings.Split(is, ",")
	var lost []string
	for driver := range strings.SplitSeq(was, ",") {
		if driver == "" || slices.Contains(present, driver) {
			continue
		}
		_, had := c.states.was(baseline.Key{Kind: baseline.CSIDriver, Name: driver})
		if _, has := c.states.now.Objects[baseline.Key{Kind: baseline.CSIDriver, Name: driver}]; had && !has {
			continue // the driver was removed from the cluster
		}
		lost = append(lost, driver)
	}
	return lost
}

// nodes counts the nodes that are not ready: joining were added since the baseline, and dead were not ready in it.
type nodes struct{ joining, dead int32 }

func countNodes(before *baseline.State, now baseline.State) nodes {
	var counted nodes
	if before == nil || before.Unread[baseline.Node] != "" {
		return counted
	}
	for key, object := range now.Objects {
		if _, notReady := object.Problem("NotReady"); key.Kind != baseline.Node || !notReady {
			continue
		}
		was, known := before.Objects[key]
		_, dead := was.Problem("NotReady")
		switch {
		case !known:
			counted.joining++
		case dead:
			counted.dead++
		}
	}
	return counted
}

// lacksNodes explains missing parts of an object by nodes that the update cannot reach; empty if it does not.
func (c comparer) lacksNodes(is baseline.Object) (class Class, text string) {
	missing := is.Desired - is.Ready
	switch {
	case c.nodes.joining > 0 && missing <= c.nodes.joining:
		return Excused, "nodes that were added since are not ready"
	case c.nodes.dead > 0 && missing <= c.nodes.dead:
		return Unchanged, "nodes that were not ready before are not ready"
	}
	return "", ""
}
