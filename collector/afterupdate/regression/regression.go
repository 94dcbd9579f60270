// Package regression answers: what is worse in this cluster than in its baseline, and may the update have caused it?
//
// [Compare] classifies every problem of a later state. It is pure, and knows neither times nor limits: package
// afterupdate decides how long a problem has to last.
package regression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/words"
)

// Class is what a comparison says about a problem.
type Class string

// The classes.
const (
	// Worse means that the object did not have the problem in the baseline.
	Worse Class = "Worse"
	// Unchanged means that it had the problem, or one like it, in the baseline.
	Unchanged Class = "Unchanged"
	// Excused means that the owner of the object changed, scaled or created it since the baseline.
	Excused Class = "Excused"
	// Unattributed means that the baseline does not state whether the object had the problem.
	Unattributed Class = "Unattributed"
)

// Reasons of problems that only a comparison finds.
const (
	// Missing is a node that is not registered any more.
	Missing = "Missing"
	// DriverMissing is a node without a driver for volumes that it had.
	DriverMissing = "DriverMissing"
	// Rolled is a StatefulSet whose pods were replaced, although its owner did not change it.
	Rolled = "Rolled"
)

var _ = catalog.Reasons("A comparison with the time before the update finds this problem.", `
DriverMissing | A CSI driver that the node had is not registered there, so that no volume of it can be mounted. | Check the pod of the driver on the
	node. | oc get pods -A --field-selector spec.nodeName=NODE
Missing | The node was registered before the update and is not any more, and no Machine made it. | Start the machine, and read the log of its kubelet.
Rolled | The pods of a StatefulSet were replaced although its owner did not change it: the new release has another default. | Check that its application has
	recovered; no change of the object is needed.`)

// Progressing is the reason of an operator whose rollout is in progress, which is no regression.
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

// Origin is what problems have in common that follow from each other: the object, or for conditions, which are independent
// of each other, the object and the reason.
type Origin struct {
	Key    baseline.Key
	Reason string
}

// Comparison is what a state has in comparison with the baseline.
type Comparison struct {
	// Found are sorted by object and reason.
	Found []Found
	// Good is how many objects have no problem.
	Good int
	// Gone are the objects of some kinds that do not exist any more. A release or an administrator may have deleted
	// them.
	Gone []baseline.Key
}

// Compare classifies the problems of a state. Without a baseline, every problem is Unattributed.
func Compare(before *baseline.State, now baseline.State) Comparison {
	c := comparer{before: before, now: now, notJoined: countNotJoined(before, now)}
	var made Comparison
	for _, key := range now.Keys() {
		object := now.Objects[key]
		problems := c.problems(key, object)
		if len(problems) == 0 {
			made.Good++
		}
		for _, each := range problems {
			class, was := c.classify(key, object, each)
			made.Found = append(made.Found, Found{Key: key, Problem: each, Class: class, Was: was})
		}
	}
	if before != nil {
		made.Found = append(made.Found, c.missingNodes()...)
		made.Gone = c.gone()
	}
	made.Found = c.excuseDependents(made.Found)
	for i := range made.Found {
		made.Found[i].Origin = c.origin(made.Found[i])
	}
	slices.SortStableFunc(made.Found, compare)
	return made
}

func compare(a, b Found) int {
	if by := a.Key.Compare(b.Key); by != 0 {
		return by
	}
	return strings.Compare(a.Problem.Reason, b.Problem.Reason)
}

type comparer struct {
	before *baseline.State
	now    baseline.State
	// notJoined is how many nodes are not ready that are not in the baseline.
	notJoined int32
}

// countNotJoined counts the nodes that were added since the baseline, and are not ready.
func countNotJoined(before *baseline.State, now baseline.State) int32 {
	if before == nil || before.Unread[baseline.Node] != "" {
		return 0
	}
	var count int32
	for key, object := range now.Objects {
		if key.Kind != baseline.Node {
			continue
		}
		_, known := before.Objects[key]
		if _, notReady := object.Problem("NotReady"); notReady && !known {
			count++
		}
	}
	return count
}

// joining is why an object lacks what is on nodes.
const joining = "nodes that were added since are not ready"

// lacksJoining reports whether what an object lacks is on nodes that were added since, and are not ready.
func (c comparer) lacksJoining(is baseline.Object) bool {
	return c.notJoined > 0 && is.Desired-is.Ready <= c.notJoined
}

// was is the object in the baseline; false where it was not there.
func (c comparer) was(key baseline.Key) (baseline.Object, bool) {
	if c.before == nil {
		return baseline.Object{}, false
	}
	found, ok := c.before.Objects[key]
	return found, ok
}

// problems are those of the object now that can be a regression, with those that only the comparison finds.
func (c comparer) problems(key baseline.Key, object baseline.Object) []baseline.Problem {
	var all []baseline.Problem
	for _, each := range object.Problems {
		if each.Reason != Progressing && !expected(key) {
			all = append(all, each)
		}
	}
	was, known := c.was(key)
	if !known {
		return slices.DeleteFunc(all, func(p baseline.Problem) bool { return p.Reason == baseline.NoEndpoints && c.before != nil })
	}
	switch {
	case key.Kind == baseline.CSINode:
		if lost := c.lostDrivers(was.Detail, object.Detail); len(lost) > 0 {
			all = append(all, baseline.Problem{Reason: DriverMissing, Message: "the node has no driver " + strings.Join(lost, ", "), Node: key.Name})
		}
	case key.Kind == baseline.StatefulSet && !key.Platform():
		if object.Generation > 0 && was.Generation == object.Generation && was.Detail != "" && object.Detail != "" && was.Detail != object.Detail {
			all = append(all, baseline.Problem{Reason: Rolled, Message: fmt.Sprintf("its pods were replaced: revision %s in place of %s, of the same spec", object.Detail, was.Detail)})
		}
	}
	return all
}

// expectedAlerts fire because of an update that is good: about the next one.
//
// APIRemovedInNextReleaseInUse means another release after an update to another minor version, and CannotRetrieveUpdates fires
// where the channel of before has not the present version.
func expectedAlerts() []string {
	return []string{"APIRemovedInNextEUSReleaseInUse", "APIRemovedInNextReleaseInUse", "CannotRetrieveUpdates", "ClusterNotUpgradeable", "UpdateAvailable", "Watchdog"}
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
		_, had := c.was(baseline.Key{Kind: baseline.CSIDriver, Name: driver})
		if _, has := c.now.Objects[baseline.Key{Kind: baseline.CSIDriver, Name: driver}]; had && !has {
			continue // the driver was removed from the cluster
		}
		lost = append(lost, driver)
	}
	return lost
}

// missingNodes are the nodes of no Machine that are not registered any more. A Machine is deleted when a MachineSet is
// scaled, and a MachineSet without all its machines has a problem of its own.
func (c comparer) missingNodes() []Found {
	if c.now.Unread[baseline.Node] != "" {
		return nil
	}
	var missing []Found
	for key, was := range c.before.Objects {
		if _, exists := c.now.Objects[key]; exists || key.Kind != baseline.Node || was.Revision != "" {
			continue
		}
		missing = append(missing, Found{Key: key, Class: Worse, Was: good(was), Problem: baseline.Problem{Reason: Missing, Message: "the node is not registered"}})
	}
	return missing
}

// gone are the objects that a release or an administrator has deleted.
func (c comparer) gone() []baseline.Key {
	kinds := []baseline.Kind{
		baseline.StorageClass, baseline.CSIDriver, baseline.APIService, baseline.IngressController, baseline.CustomResourceDefinition,
		baseline.ClusterServiceVersion, baseline.NodePool,
	}
	var gone []baseline.Key
	for key := range c.before.Objects {
		if _, exists := c.now.Objects[key]; !exists && slices.Contains(kinds, key.Kind) && c.now.Unread[key.Kind] == "" {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, baseline.Key.Compare)
	return gone
}

// classify is the class of a problem that the object has now.
func (c comparer) classify(key baseline.Key, object baseline.Object, problem baseline.Problem) (class Class, text string) {
	was, known := c.was(key)
	switch {
	case c.before == nil:
		return Unattributed, "unknown: there is no baseline"
	case c.before.Unread[key.Kind] != "" && !known:
		return Unattributed, "unknown: the baseline lacks objects of this kind"
	case !known && c.withoutHosted(key.Kind):
		return Unattributed, "unknown: the baseline was taken without the management cluster"
	case !known && key.Kind == baseline.Alert && !problem.Since.IsZero() && problem.Since.Before(c.before.Taken):
		return Unchanged, "its condition held, for too short a time to fire"
	case !known && key.Kind == baseline.CertificateSigningRequest:
		return c.request(object)
	case !known:
		return absent(key)
	}
	if _, had := was.Problem(problem.Reason); had {
		return Unchanged, bad(was)
	}
	if key.Kind == baseline.MachineConfigPool && problem.Reason == "NotUpdated" && c.lacksJoining(object) {
		return Excused, good(was) + "; " + joining
	}
	if isWorkload(key.Kind) {
		return c.workload(key, was, object, problem)
	}
	if text := sinceByOthers(key, was, object); text != "" {
		return Excused, good(was) + "; " + text
	}
	if isCondition(key.Kind) || len(was.Problems) == 0 {
		return Worse, good(was)
	}
	return Unchanged, bad(was)
}

// withoutHosted reports whether a kind is one of the management cluster, of which the baseline has nothing.
func (c comparer) withoutHosted(kind baseline.Kind) bool {
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
func absent(key baseline.Key) (class Class, text string) {
	switch {
	case key.Kind == baseline.Alert && of(key) == jobFailed:
		return Excused, "it was not firing; a Job that failed once stays failed, by itself or because its pod was drained"
	case key.Kind == baseline.Alert:
		return Worse, "it was not firing"
	case key.Kind == baseline.VolumeAttachment:
		return Worse, "there was none"
	case ofRelease(key):
		return Worse, "it did not exist"
	}
	return Excused, "it did not exist: it was created since"
}

// jobFailed is an alert about the past: each Job that failed has it fire for as long as the object exists, also where later
// runs of its CronJob succeed. Managed OpenShift silences it in all namespaces for that (configure-alertmanager-operator#276).
const jobFailed = "KubeJobFailed"

// of is the name of an alert.
func of(key baseline.Key) string {
	alert, _, _ := strings.Cut(key.Name, "/")
	return alert
}

// ofRelease reports whether the release decides about an object. It has operators of OLM in one namespace only; those of
// users are in others of its prefix, too, such as openshift-operators.
func ofRelease(key baseline.Key) bool {
	if key.Kind == baseline.ClusterServiceVersion || key.Kind == baseline.Subscription {
		return key.Namespace == "openshift-operator-lifecycle-manager"
	}
	return key.Platform()
}

// request is the class of a request for a certificate that is neither approved nor denied. That of a node which an administrator
// adds waits for the administrator: no node of the baseline can have made it, and no MachineSet or NodePool waits for a machine, whose
// requests an operator of the release approves.
func (c comparer) request(object baseline.Object) (class Class, text string) {
	switch {
	case object.Detail == "" || c.requests(object.Detail) || c.awaitsMachines():
		return Worse, "there was none"
	case c.before.Unread[baseline.Node] != "" || c.now.Unread[baseline.Node] != "" || c.now.Unread[baseline.MachineSet] != "" || c.now.Unread[baseline.NodePool] != "":
		return Unattributed, "unknown: it may be of a node that an administrator adds"
	}
	return Excused, "it is of no node of before; who adds a node has to approve its requests"
}

// requests reports whether a node of the baseline can have made a request, of that node or of any one. A kubelet that
// requests its first certificate has none, so that its node is not ready.
func (c comparer) requests(node string) bool {
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
func (c comparer) awaitsMachines() bool {
	for key, each := range c.now.Objects {
		_, notReady := each.Problem("MachinesNotReady")
		_, replaces := each.Problem("NotUpdated")
		if notReady && key.Kind == baseline.MachineSet || (notReady || replaces) && key.Kind == baseline.NodePool {
			return true
		}
	}
	return false
}

// isCondition is true for the kinds whose problems are independent of each other.
func isCondition(kind baseline.Kind) bool {
	kinds := []baseline.Kind{
		baseline.ClusterVersion, baseline.ClusterOperator, baseline.MachineConfigPool, baseline.Node, baseline.IngressController, baseline.Subscription,
		baseline.HostedCluster, baseline.NodePool,
	}
	return slices.Contains(kinds, kind)
}

func isWorkload(kind baseline.Kind) bool {
	return slices.Contains(workloads(), kind)
}

func workloads() []baseline.Kind {
	return []baseline.Kind{baseline.Deployment, baseline.StatefulSet, baseline.DaemonSet, baseline.ReplicationController}
}

// sinceByOthers is what was done to an object since the baseline that explains its problem, and is no part of an update; empty for
// nothing. A MachineSet is judged by its machines, since an update may change its boot image.
func sinceByOthers(key baseline.Key, was, is baseline.Object) string {
	switch key.Kind { //nolint:exhaustive // nothing else is done by others alone
	case baseline.MachineSet, baseline.NodePool:
		if is.Desired > was.Desired && is.Ready >= was.Ready {
			return fmt.Sprintf("it was scaled from %d to %d since", was.Desired, is.Desired)
		}
	case baseline.ClusterServiceVersion:
		if !ofRelease(key) && was.Detail != "" && is.Detail != "" && was.Detail != is.Detail {
			return fmt.Sprintf("%s was replaced by %s since", was.Detail, is.Detail)
		}
	case baseline.Service:
		return serviceByOthers(key, was, is)
	case baseline.Route, baseline.IngressController, baseline.EgressIP, baseline.EgressFirewall, baseline.Subscription:
		if was.Generation > 0 && is.Generation > 0 && was.Generation != is.Generation {
			return "its owner changed it since"
		}
	}
	return ""
}

// serviceByOthers is sinceByOthers for a Service. A pod without an owner is lost in a drain by the choice of who made it, and a Job
// ends by itself.
func serviceByOthers(key baseline.Key, was, is baseline.Object) string {
	_, none := is.Problem(baseline.NoEndpoints)
	switch {
	case key.Platform():
	case was.Revision != "" && was.Revision != is.Revision:
		return "its owner changed which pods it selects since"
	case none && was.Detail == baseline.Ephemeral:
		return "it selected only pods that nothing makes again: those of a Job, or without an owner"
	}
	return ""
}

// workload is the class of a problem of a workload: its problems are consequences of each other, so that one that
// had any of them, and has no fewer ready pods now, is unchanged.
func (c comparer) workload(key baseline.Key, was, is baseline.Object, problem baseline.Problem) (class Class, text string) {
	switch {
	case !key.Platform() && problem.Reason != Rolled && changedByOwner(key.Kind, was, is):
		return Excused, good(was) + "; its owner changed it since"
	case !key.Platform() && is.Desired > was.Desired && is.Ready >= was.Ready && lacksPods(problem.Reason):
		return Excused, good(was) + fmt.Sprintf("; it was scaled from %d to %d since", was.Desired, is.Desired)
	case key.Kind == baseline.DaemonSet && c.lacksJoining(is) && lacksPods(problem.Reason):
		return Excused, good(was) + "; " + joining
	case len(was.Problems) > 0 && is.Ready >= was.Ready:
		return Unchanged, bad(was)
	case problem.Reason == restarting && was.Restarts > 0 && is.Restarts <= 2*was.Restarts:
		return Unchanged, fmt.Sprintf("%s, with %.1f restarts per pod and day", good(was), was.Restarts)
	}
	return Worse, good(was)
}

// lacksPods is true for a problem that pods have which do not run yet, such as those of a workload that was scaled.
func lacksPods(reason string) bool {
	return slices.Contains([]string{"Unavailable", "Unschedulable", "ContainerCreating", "FailedCreate", "RolloutIncomplete", "ProgressDeadlineExceeded"}, reason)
}

// restarting is the reason of a workload whose containers restart.
const restarting = "Restarting"

// changedByOwner reports whether the template of the pods was changed by its owner.
func changedByOwner(kind baseline.Kind, was, is baseline.Object) bool {
	if kind == baseline.StatefulSet { // an update may change the revision of the pods, but not the generation of the spec
		return was.Generation != is.Generation && was.Detail != is.Detail
	}
	return was.Revision != is.Revision
}

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
