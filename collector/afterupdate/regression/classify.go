package regression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/words"
)

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
