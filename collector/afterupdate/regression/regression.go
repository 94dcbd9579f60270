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
	// Unattributed means that the baseline does not state whether the object had the problem, or nothing who deleted it.
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
	// Gone are the objects that do not exist any more, and whose absence is no problem: a release or their owner deleted them.
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

// nodes count those that are not ready: the ones that were added since the baseline, and those that were not ready in it.
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

// lacksNodes is why an object lacks what is on nodes that the update cannot reach; empty where that does not explain it.
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

// classify is the class of a problem that the object has now.
func (c comparer) classify(key baseline.Key, object baseline.Object, problem baseline.Problem) (class Class, text string) {
	was, known := c.states.was(key)
	switch {
	case c.states.before == nil:
		return Unattributed, "unknown: there is no baseline"
	case !known && c.states.lacked(key):
		return Unattributed, "unknown: the baseline lacks objects of this kind"
	case !known && c.states.withoutHosted(key.Kind):
		return Unattributed, "unknown: the baseline was taken without the management cluster"
	case !known && key.Kind == baseline.CertificateSigningRequest:
		return c.request(object)
	case !known:
		return c.absent(key, object, problem)
	}
	if _, had := was.Problem(problem.Reason); had {
		return c.same(key, was, object)
	}
	if class, why := c.explained(key, object, problem); class != "" {
		return class, good(was) + "; " + why
	}
	row := baseline.RowOf(key.Kind)
	switch {
	case row.Pods:
		return c.workload(was, object, problem)
	case row.Independent || alone(problem.Reason) ||
		!slices.ContainsFunc(was.Problems, func(p baseline.Problem) bool { return !alone(p.Reason) }):
		return Worse, good(was)
	}
	return Unchanged, bad(was)
}

// explained is the class of a problem that nodes, machines or what was done to the object explain, with why; none where nothing does.
func (c comparer) explained(key baseline.Key, object baseline.Object, problem baseline.Problem) (class Class, why string) {
	if lacks := key.Kind == baseline.MachineConfigPool && problem.Reason == "NotUpdated" || key.Kind == baseline.DaemonSet &&
		lacksPods(problem.Reason); lacks {
		if class, why := c.lacksNodes(object); class != "" {
			return class, why
		}
	}
	if text := c.states.act(key, problem.Reason); text != "" {
		return Excused, text
	}
	if _, unscheduled := object.Problem("Unschedulable"); unscheduled && lacksPods(problem.Reason) && c.states.fewerMachines() {
		return Excused, "a MachineSet was scaled down since"
	}
	return "", ""
}

// alone reports whether a problem is independent of the others of its object: an address that never was, as is usual without a cloud, does
// not matter to endpoints.
func alone(reason string) bool { return reason == "NoAddress" || reason == "NoCABundle" }

// fewerMachines reports whether a MachineSet was scaled down, so that pods may have no room.
func (c states) fewerMachines() bool {
	for key, was := range c.before.Objects {
		is, exists := c.now.Objects[key]
		if key.Kind == baseline.MachineSet && exists && is.Desired < was.Desired {
			return true
		}
	}
	return false
}

// lacked reports whether the baseline does not state whether there were objects of a kind.
func (c states) lacked(key baseline.Key) bool {
	if c.before.Unread[key.Kind] != "" {
		return true
	}
	_, read := c.before.APIs[key.Kind]
	if key.Kind.Known() || read || key.Kind.Name() == string(key.Kind) { // what has no API group is a part of each cluster
		return false
	}
	_, group, _ := strings.Cut(string(key.Kind), ".")
	defined := baseline.Key{Kind: baseline.CustomResourceDefinition, Name: c.now.APIs[key.Kind].Resource + "." + group}
	_, wasDefined := c.before.Objects[defined]
	_, isDefined := c.now.Objects[defined]
	return wasDefined || !isDefined
}

// same is the class of a problem that the object had: alerts are counted, and many more of them are another problem.
func (c comparer) same(key baseline.Key, was, is baseline.Object) (class Class, text string) {
	if widened(key, was, is) {
		return Worse, "it was firing for " + words.Count(int64(was.Desired), "instance")
	}
	return Unchanged, bad(was)
}

// widened reports whether an alert fires for many more instances than in the baseline.
func widened(key baseline.Key, was, is baseline.Object) bool {
	const times, more = 3, 5 // fewer come and go
	return key.Kind == baseline.Alert && is.Desired >= times*max(was.Desired, 1) && is.Desired >= was.Desired+more
}

// withoutHosted reports whether a kind is one of the management cluster, of which the baseline has nothing.
func (c states) withoutHosted(kind baseline.Kind) bool {
	if kind != baseline.HostedCluster && kind != baseline.NodePool {
		return false
	}
	for key := range c.before.Objects {
		if key.Kind == baseline.HostedCluster {
			return false
		}
	}
	return true
}

// absent is the class of a problem of an object that is not in the baseline.
func (c comparer) absent(key baseline.Key, object baseline.Object, problem baseline.Problem) (class Class, text string) {
	alert := key.Kind == baseline.Alert
	switch {
	case alert && !problem.Since.IsZero() && problem.Since.Before(c.states.before.Taken):
		return Unchanged, "its condition was true, but not long enough to fire"
	case alert && of(key) == jobFailed:
		return Excused, "it was not firing; a Job that failed once stays failed, on its own or because its pod was drained"
	case alert && !object.Release:
		return Excused, ofUsers
	case alert:
		return Worse, "it was not firing"
	case key.Kind == baseline.VolumeAttachment:
		return Worse, "there was none"
	case object.Release && !c.isRun(object, problem):
		return Worse, "it did not exist"
	case c.runsOf(object.Owner, problem.Reason):
		return Worse, "it did not exist; no other run of its owner has succeeded since the update, although runs before it did"
	}
	return Excused, "it did not exist: it was created since"
}

// isRun reports whether an object is one of several runs of an owner, of which one may fail: the next one may not.
func (c comparer) isRun(object baseline.Object, problem baseline.Problem) bool {
	_, known := c.states.was(object.Owner)
	return known && object.Owner.Kind != baseline.ClusterVersion &&
		slices.Contains([]string{"Failed", "FailureTarget", "NotSucceeded", "PhaseFailed"}, problem.Reason)
}

// runsOf reports whether all objects that an owner of the baseline has made since have the same problem, at least two, and none of before
// has: who made the owner did nothing then.
func (c comparer) runsOf(owner baseline.Key, reason string) bool {
	if _, known := c.states.was(owner); !known || c.states.act(owner, "") != "" {
		return false
	}
	const least = 2
	bad := 0
	for key, is := range c.states.now.Objects {
		if is.Owner != owner {
			continue
		}
		_, has := is.Problem(reason)
		_, before := c.states.was(key)
		if has == before {
			return false
		}
		if has {
			bad++
		}
	}
	return bad >= least
}

// ofUsers is why an alert in a namespace of users is listed alone.
const ofUsers = "it was not firing; it is an alert about a namespace of users"

// jobFailed is an alert about the past: each Job that failed has it fire for as long as the object exists, also where later
// runs of its CronJob succeed. Managed OpenShift silences it in all namespaces for that (configure-alertmanager-operator#276).
const jobFailed = "KubeJobFailed"

// of is the name of an alert.
func of(key baseline.Key) string {
	alert, _, _ := strings.Cut(key.Name, "/")
	return alert
}

// request returns the class of a certificate request that is neither approved nor denied. The request of a node
// that an administrator adds waits for the administrator: no node of the baseline can have made it, and no
// MachineSet or NodePool waits for a machine, whose requests an operator of the release would approve.
func (c comparer) request(object baseline.Object) (class Class, text string) {
	switch {
	case object.Detail == "" || c.states.requests(object.Detail) || c.states.awaitsMachines():
		return Worse, "there was none"
	case c.states.before.Unread[baseline.Node] != "" || c.states.now.Unread[baseline.Node] != "" ||
		c.states.now.Unread[baseline.MachineSet] != "" || c.states.now.Unread[baseline.NodePool] != "":
		return Unattributed, "unknown: it may belong to a node that an administrator adds"
	}
	return Excused, "it belongs to a node that was not there before; the administrator who adds a node must approve its requests"
}

// requests reports whether a node of the baseline can have made a request, of that node or of any one. A kubelet that
// requests its first certificate has none, so that its node is not ready.
func (c states) requests(node string) bool {
	if node != baseline.AnyNode {
		_, known := c.before.Objects[baseline.Key{Kind: baseline.Node, Name: node}]
		return known
	}
	for key, was := range c.before.Objects {
		is, exists := c.now.Objects[key]
		_, notReady := is.Problem("NotReady")
		if key.Kind == baseline.Node && (notReady || !exists && was.Revision == "") {
			return true
		}
	}
	return false
}

// awaitsMachines reports whether a MachineSet or a NodePool waits for machines.
func (c states) awaitsMachines() bool {
	for key, each := range c.now.Objects {
		_, notReady := each.Problem("MachinesNotReady")
		_, replaces := each.Problem("NotUpdated")
		if notReady && key.Kind == baseline.MachineSet || (notReady || replaces) && key.Kind == baseline.NodePool {
			return true
		}
	}
	return false
}

// workload is the class of a problem of a controller of pods: its problems are consequences of each other, so that one that
// had any of them, and has no fewer ready pods now, is unchanged.
func (c comparer) workload(was, is baseline.Object, problem baseline.Problem) (class Class, text string) {
	switch {
	case !is.Release && is.Desired > was.Desired && is.Ready >= was.Ready && lacksPods(problem.Reason):
		return Excused, good(was) + fmt.Sprintf("; it was scaled from %d to %d since", was.Desired, is.Desired)
	case len(was.Problems) > 0 && is.Ready >= was.Ready:
		return Unchanged, bad(was)
	case (problem.Reason == restarting || problem.Reason == Hourly) && was.Restarts > 0 && is.Restarts <= 2*was.Restarts:
		return Unchanged, fmt.Sprintf("%s, with %.1f restarts per pod and day", good(was), was.Restarts)
	}
	return Worse, good(was)
}

// lacksPods is true for a problem of pods that do not run yet, such as the pods of a workload that was scaled.
func lacksPods(reason string) bool {
	return slices.Contains([]string{
		"Unavailable", "Unschedulable", "ContainerCreating", "FailedCreate", "RolloutIncomplete",
		"ProgressDeadlineExceeded",
	}, reason)
}

// The reasons of a workload whose containers restart: often, or every hour.
const (
	restarting = "Restarting"
	// Hourly is found by several samples.
	Hourly = "RestartsHourly"
)

// good states an object of the baseline.
func good(was baseline.Object) string {
	if len(was.Problems) > 0 {
		return bad(was)
	}
	if was.Desired > 0 {
		return fmt.Sprintf("good: %d of %d ready", was.Ready, was.Desired)
	}
	return "good"
}

func bad(was baseline.Object) string {
	var reasons []string
	for _, each := range was.Problems {
		reasons = append(reasons, each.Reason)
	}
	return words.List(reasons, maxNames)
}

// maxNames bounds the reasons in a clause.
const maxNames = 5
