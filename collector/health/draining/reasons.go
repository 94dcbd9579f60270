package draining

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Names of findings.
var (
	nameDrain = finding.NewName("Drain",
		"Rehearses the drains of the update, which reboots nodes; patch updates do, too. The finding fails for pods that cannot be "+
			"evicted unless an object is changed, and for drains that would hang; it warns of workloads that the drains interrupt or "+
			"lose. The result is Unknown if it depends on the scheduler, on a webhook for evictions, or on an operator whose "+
			"PodDisruptionBudget currently allows no eviction. `oc preflight drain-plan` prints the rehearsal. Only pods on nodes that "+
			"this update drains count: not pods of paused pools, nor of a cluster with a single node (machine-config-operator "+
			"pkg/daemon, drainRequired). The Secrets and ConfigMaps that pods mount are assumed to exist.")
	nameBudget = finding.NewName("PodDisruptionBudget",
		"Pods that a PodDisruptionBudget keeps on their nodes, found by the check Drain: PodDisruptionBudget-<namespace>.<name>.")
	nameBudgets = finding.NewName("PodDisruptionBudgets",
		"Pods that several PodDisruptionBudgets select, so that they cannot be evicted, found by the check Drain: "+
			"PodDisruptionBudgets-<namespace>.<first budget>.")
	nameUnused = finding.NewName("PodDisruptionBudgetsUnused",
		"PodDisruptionBudgets that select no pods, found by the check Drain.")
	nameOperator = finding.NewName("DrainOperator",
		"Pods whose eviction depends on their operator, found by the check Drain: DrainOperator-<namespace>.<PodDisruptionBudget>, or "+
			"the controller of the first pod if no budget selects it.")
	nameAdmission = finding.NewName("DrainAdmission",
		"Pods whose eviction a webhook or a policy rejects or may reject, found by the check Drain: DrainAdmission-<webhook>, or the "+
			"binding of the policy.")
	nameReceives = finding.NewName("DrainWebhook",
		"Webhooks of one Service that receive evictions among all other requests, found by the check Drain: DrainWebhook-<first "+
			"webhook>, or the binding of a policy.")
	namePod = finding.NewName("DrainPod",
		"Pods that are kept on their nodes other than by a PodDisruptionBudget, such as by a finalizer, found by the check Drain: "+
			"DrainPod-<namespace>.<first pod>.")
	namePool = finding.NewName("DrainPool",
		"A pool that drains no node, or whose drains may hang, found by the check Drain: DrainPool-<pool>.")
	nameUnrehearsed = finding.NewName("DrainUnrehearsed",
		"Nodes of a pool that its rehearsal does not reach, found by the check Drain: DrainUnrehearsed-<pool>.")
	namePending = finding.NewName("DrainPending", "Pods that find no other node, found by the check Drain.")
	nameLost    = finding.NewName("DrainLost", "Pods that no controller recreates, found by the check Drain.")
	nameGraces  = finding.NewName("DrainGracePeriods",
		"Pods that may take long to terminate, found by the check Drain. Pods of OpenShift itself, such as routers, are not listed.")
	nameUnreached = finding.NewName("DrainUnreached",
		"Nodes that the update does not reach, found by the check Drain: their MachineConfigPool is paused, several pools or none "+
			"select them, or they first get another configuration. For an update to another minor version, the check MachineConfigPool "+
			"reports paused pools.")
	nameDelayed = finding.NewName("DrainDelays", "Pods whose volumes keep them from running until their own node is back, found by the "+
		"check Drain. Pods of OpenShift itself are not listed.")
	nameMachines = finding.NewName("DrainMachines",
		"Pods that need a new machine, which the cluster autoscaler can add, found by the check Drain.")
	nameTogether = finding.NewName("DrainTogether",
		"Workloads that draining one node at a time does not interrupt, but the maxUnavailable of a pool does, found by the check "+
			"Drain: DrainTogether-<pool>.")
	nameAddresses   = finding.NewName("DrainAddresses", "Addresses that only one node can have, found by the check Drain.")
	nameInterrupted = finding.NewName("DrainInterrupts",
		"Services without a ready pod for a time, found by the check Drain. Services of OpenShift itself are not listed: its operators "+
			"run with one replica by design.")
)

// Reasons of findings.
var (
	reasonSingleNode = finding.NewReason("SingleNode", finding.Explanation{
		Meaning: "The cluster has a single node, which is updated without a drain.",
		Cause:   "Infrastructure \"cluster\" has status.controlPlaneTopology SingleReplica.",
	})
	reasonSelectsNothing = finding.NewReason("SelectsNothing", finding.Explanation{
		Meaning: "PodDisruptionBudgets select no pods. They do not block a drain, but protect nothing.",
		Cause:   "A selector is wrong, or a workload is scaled to zero.",
		Remedy:  "Check the selectors: `oc get poddisruptionbudgets --all-namespaces`.",
	})
	reasonSeveralBudgets = finding.NewReason("SeveralBudgets", finding.Explanation{
		Meaning: "Several PodDisruptionBudgets select the same pods, which therefore cannot be evicted.",
		Cause:   "The selectors of the budgets overlap.",
		Remedy:  "Let only one budget select each pod: `oc -n NAMESPACE get poddisruptionbudgets -o wide`.",
	})
	reasonNeverSatisfied = finding.NewReason("NeverSatisfied", finding.Explanation{
		Meaning: "A PodDisruptionBudget requires all expected pods to be healthy, so none can ever be evicted.",
		Cause:   "maxUnavailable is 0, or minAvailable equals the number of replicas.",
		Remedy:  "Allow one pod to be unavailable, or run one more pod: if an autoscaler sets the replicas, raise its minReplicas.",
	})
	reasonNotSatisfied = finding.NewReason("NotSatisfiedInRehearsal", finding.Explanation{
		Meaning: "A drain waits for a PodDisruptionBudget, and no step of the rehearsed update makes enough of its pods healthy.",
		Cause:   "Pods of the budget are not ready, or find no node while the drain waits.",
		Remedy:  "Check why the pods are not healthy, or make room for them: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonNotRehearsed = finding.NewReason("NotRehearsed", finding.Explanation{
		Meaning: "The rehearsal does not reach some nodes of a pool, even if the obstacles before them are assumed to be removed. What " +
			"happens when they are drained is unknown.",
		Cause:  "The drains of the pool hang for a cause that the rehearsal cannot remove.",
		Remedy: "Fix the other findings of the check Drain, then run the preflight again.",
	})
	reasonUnmanaged = finding.NewReason("UnmanagedPods", finding.Explanation{
		Meaning: "A PodDisruptionBudget selects pods without a controller, so the expected number of pods cannot be computed.",
		Cause:   "The budget has maxUnavailable or a percentage, and the pods have no controller.",
		Remedy:  "Give the budget a whole number as minAvailable, or create the pods with a controller.",
	})
	reasonSyncFailed = finding.NewReason("SyncFailed", finding.Explanation{
		Meaning: "The disruption controller could not compute the status of a PodDisruptionBudget, so none of its pods can be evicted.",
		Cause:   "The conditions of the budget contain the error of the controller.",
		Remedy:  "Fix the cause in the condition: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonInvalidStatus = finding.NewReason("InvalidStatus", finding.Explanation{
		Meaning: "The disruption controller cannot have written the status of a PodDisruptionBudget, or wrote it for an earlier spec.",
		Cause:   "Another program than the disruption controller wrote the status, or the controller is not running.",
		Remedy:  "Check which program writes the status: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonTerminating = finding.NewReason("StuckTerminating", finding.Explanation{
		Meaning: "A pod that is being deleted still exists after its grace period, so the drain of its node waits for it.",
		Cause:   "A finalizer of the pod remains, or the kubelet cannot stop it.",
		Remedy:  "Check what blocks the deletion: `oc -n NAMESPACE describe pod NAME`.",
	})
	reasonAdmission = finding.NewReason("EvictionRefused", finding.Explanation{
		Meaning: "A webhook or a policy rejects, or may reject, the eviction of a pod.",
		Cause:   "The rules of a webhook or a policy include pods/eviction.",
		Remedy:  "Make the webhook or the policy admit the eviction.",
	})
	reasonReceives = finding.NewReason("EvictionsReceived", finding.Explanation{
		Meaning: "A webhook or a policy receives the evictions of the drains among all other requests, and its response is unknown. It " +
			"is assumed not to reject evictions.",
		Cause:  "Its rules contain a wildcard, such as */*, and no rule names pods/eviction alone.",
		Remedy: "Check that no rule of the policy engine denies the creation of an Eviction, or exclude pods/eviction from its rules.",
	})
	reasonOperator = finding.NewReason("OperatorMovesPods", finding.Explanation{
		Meaning: "The eviction of a pod depends on its operator: it is rejected until the operator acts, or until its settings change.",
		Cause:   "The operator owns the pod or its PodDisruptionBudget.",
		Remedy:  "Change the settings of the operator, not the budget, which the operator restores.",
	})
	reasonPoolBlocked = finding.NewReason("PoolNotUpdated", finding.Explanation{
		Meaning: "The maximum number of nodes of a pool is already unavailable, so no node of the pool is updated.",
		Cause:   "Nodes of the pool are cordoned or not ready, or their configuration failed.",
		Remedy:  "Make the nodes available: `oc adm uncordon NODE`.",
	})
	reasonPoolUpdating = finding.NewReason("NodeBeingUpdated", finding.Explanation{
		Meaning: "Nodes of a pool are being updated, as many as may be unavailable, so the drains of its other nodes cannot be " +
			"rehearsed.",
		Cause:  "An earlier update or a configuration change is rolling out.",
		Remedy: "Run the preflight again in some minutes, when the nodes are back: `oc get machineconfigpools`.",
	})
	reasonUnreached = finding.NewReason("NodesNotReached", finding.Explanation{
		Meaning: "An update does not reach some nodes: they keep their release, and are not drained.",
		Cause:   "Their MachineConfigPool is paused, several custom pools or none select them, or they first get another configuration.",
		Remedy: "Unpause the pool when its nodes may be updated, or change the labels of the nodes so that one custom pool, or the " +
			"pool worker, selects each: `oc get machineconfigpools`.",
	})
	reasonNoNode = finding.NewReason("NoNodeAfterDrain", finding.Explanation{
		Meaning: "Pods cannot be scheduled to any node after the drains of the update.",
		Cause:   "No other node suits the pods, or the API server rejects their replacements.",
		Remedy:  "Make room for the pods, or fix what rejects them: `oc describe pod`.",
	})
	reasonDelayed = finding.NewReason("NoOtherNodeInZone", finding.Explanation{
		Meaning: "Pods cannot run while their own node is drained, updated and rebooted.",
		Cause:   "The volumes of the pods are bound to a zone or a node, and no other suitable node can use them.",
		Remedy:  "Add a node to the zone, or prepare for the interruption.",
	})
	reasonLost = finding.NewReason("NotRecreated", finding.Explanation{
		Meaning: "A drain evicts pods that no controller recreates.",
		Cause:   "The pods have no controller, or it does not exist.",
		Remedy:  "Create the pods with a controller, or recreate them after the update.",
	})
	reasonInterrupted = finding.NewReason("ServiceInterrupted", finding.Explanation{
		Meaning: "Services have no ready pod while nodes are drained.",
		Cause:   "All ready pods of a Service are on nodes that are drained at the same time, or it has only one.",
		Remedy:  "Give their workloads more replicas on different nodes.",
	})
	reasonMachines = finding.NewReason("NeedsNewMachine", finding.Explanation{
		Meaning: "During the update, pods cannot be scheduled until the cluster autoscaler adds a machine.",
		Cause:   "No other node suits the pods, and a MachineAutoscaler allows its MachineSet more machines.",
		Remedy:  "Add the machine before the update, or check that the MachineSet can add one: `oc get machineautoscalers -A`.",
	})
	reasonTogether = finding.NewReason("SeveralNodesAtOnce", finding.Explanation{
		Meaning: "A pool drains several nodes at a time, which leaves workloads without a ready pod or makes a drain hang; draining " +
			"one node at a time would not.",
		Cause: "The maxUnavailable of the pool is above 1, and the ready pods of the workloads are on nodes that are drained at the " +
			"same time.",
		Remedy: "Set the maxUnavailable of the pool to 1, or give the workloads a PodDisruptionBudget and more nodes.",
	})
	reasonAddress = finding.NewReason("AddressOnOneNode", finding.Explanation{
		Meaning: "An address is unreachable while the only node that can have it is down.",
		Cause:   "The object that assigns the address selects one node, or only one node has the label for it.",
		Remedy:  "Label another node, or change the selector, so that the address can move.",
	})
	reasonGrace = finding.NewReason("LongGracePeriod", finding.Explanation{
		Meaning: "Pods may take ten minutes or more to terminate, and the drains of their nodes wait for them.",
		Cause:   "The pods have a long terminationGracePeriodSeconds.",
		Remedy: "Check that the pods terminate in time, or shorten the period. MachineConfigPools report a node as degraded after an " +
			"hour.",
	})
)

func reasonOf(cause eviction.Cause) finding.Reason {
	switch cause { //nolint:exhaustive // with the other causes a drain waits
	case eviction.SeveralBudgets:
		return reasonSeveralBudgets
	case eviction.RequiresAll:
		return reasonNeverSatisfied
	case eviction.Unmanaged:
		return reasonUnmanaged
	case eviction.SyncFailed:
		return reasonSyncFailed
	case eviction.NegativeBudget, eviction.StaleBudget, eviction.TooManyDisrupted:
		return reasonInvalidStatus
	case drain.Terminating:
		return reasonTerminating
	case drain.Admission:
		return reasonAdmission
	case drain.Operator:
		return reasonOperator
	default:
		return reasonNotSatisfied
	}
}

// warnings returns a finding for each kind of thing that an update interrupts or loses although no drain hangs.
func warnings(rehearsal drain.Rehearsal) []finding.Finding {
	all := []named{
		pending(rehearsal.Pending), lost(rehearsal.Lost), graces(rehearsal.Graces), delayed(rehearsal.Delayed),
		expanded(rehearsal.Expanded), addresses(rehearsal.Addresses), interrupted(rehearsal.Interrupted),
	}
	var found []finding.Finding
	for i := range all {
		if of := &all[i]; len(of.texts) > 0 {
			found = append(found, finding.Warn(of.reason, "%s %s", of.what, words.List(of.texts, maxNamed)).Named(of.name).About(of.objects...))
		}
	}
	return found
}

type named struct {
	name, what string
	reason     finding.Reason
	texts      []string
	objects    []finding.Object
}

func (n *named) pod(of drain.Reference, text string) {
	n.texts = append(n.texts, text)
	n.objects = append(n.objects, finding.Object{APIVersion: "v1", Kind: "Pod", Namespace: of.Namespace, Name: of.Name})
}

func pending(all []drain.Pending) named {
	found := named{
		name: namePending, reason: reasonNoNode,
		what: "pods cannot be scheduled after the drains of this update, or the API server rejects them:",
	}
	for _, each := range all {
		if !each.Uncertain && each.Node != "" {
			found.pod(each.Pod, each.Pod.String()+because(each.Why))
		}
	}
	return found
}

func lost(all []drain.Lost) named {
	found := named{name: nameLost, reason: reasonLost, what: "the drains of this update evict pods that no controller recreates:"}
	for _, each := range all {
		maybe := ""
		if each.Uncertain {
			maybe = ", which is not certain"
		}
		found.pod(each.Pod, fmt.Sprintf("%s on %s%s%s", each.Pod, each.Node, because(each.Why), maybe))
	}
	return found
}

func graces(all []drain.Grace) named {
	found := named{name: nameGraces, reason: reasonGrace, what: "the drains of this update wait for pods that may take long to " +
		"terminate:"}
	for _, each := range all {
		if !check.OfCluster(each.Pod.Namespace) {
			found.pod(each.Pod, fmt.Sprintf("%s on %s: %s", each.Pod, each.Node, each.Period()))
		}
	}
	return found
}

func delayed(all []drain.Pending) named {
	found := named{
		name: nameDelayed, reason: reasonDelayed,
		what: "the volumes of pods keep them from running until their own node is back, which takes " + reboots() + ":",
	}
	for _, each := range all {
		if !check.OfCluster(each.Pod.Namespace) {
			found.pod(each.Pod, fmt.Sprintf("%s on %s%s", each.Pod, each.Node, because(each.Why)))
		}
	}
	return found
}

func interrupted(all []drain.Interruption) named {
	found := named{
		name: nameInterrupted, reason: reasonInterrupted,
		what: "the drains of this update leave Services without a ready pod for a time:",
	}
	for _, each := range all {
		if check.OfCluster(each.Service.Namespace) {
			continue
		}
		found.texts = append(found.texts, each.Service.String())
		found.objects = append(found.objects, finding.Object{
			APIVersion: "v1", Kind: "Service", Namespace: each.Service.Namespace,
			Name: each.Service.Name,
		})
	}
	return found
}

func expanded(all []drain.Expansion) named {
	found := named{
		name: nameMachines, reason: reasonMachines,
		what: "pods have no node during this update until the cluster autoscaler adds a machine:",
	}
	for _, each := range all {
		found.pod(each.Pod, fmt.Sprintf("%s needs a new machine of MachineSet %s", each.Pod, each.MachineSet))
	}
	return found
}

func addresses(all []drain.Address) named {
	found := named{
		name: nameAddresses, reason: reasonAddress,
		what: "addresses are unreachable while the only node that can have them is down:",
	}
	for _, each := range all {
		found.texts = append(found.texts, fmt.Sprintf("addresses of %s %q, on %s", each.Kind, each.Name, each.Nodes[0]))
		found.objects = append(found.objects, finding.Object{
			APIVersion: each.APIVersion, Kind: each.Kind, Namespace: each.Namespace,
			Name: each.Name,
		})
	}
	return found
}

// together returns one finding for each pool that interrupts workloads only because it drains several nodes at a
// time.
func together(rehearsal drain.Rehearsal, pools []order.Pool) []finding.Finding {
	var found []finding.Finding
	for i := range pools {
		pool := &pools[i]
		var texts []string
		var objects []finding.Object
		for _, each := range rehearsal.Together {
			if check.OfCluster(each.Workload.Namespace) ||
				!slices.ContainsFunc(each.Nodes, func(node string) bool { return slices.Contains(pool.Nodes, node) }) {
				continue
			}
			texts = append(texts, fmt.Sprintf("%s %s loses its %s", each.Kind, each.Workload, words.Count(each.Replicas, "ready pod")))
			objects = append(objects, finding.Object{
				APIVersion: each.APIVersion, Kind: each.Kind, Namespace: each.Workload.Namespace,
				Name: each.Workload.Name,
			})
		}
		if slices.ContainsFunc(rehearsal.Pools, func(of drain.Pool) bool { return of.Name == pool.Name && of.Single }) {
			texts = append(texts, "a drain hangs or may hang")
		}
		if len(texts) == 0 || pool.MaxUnavailable <= 1 {
			continue
		}
		made := finding.Warn(reasonTogether, "pool %q drains %s at a time, which has effects that "+
			"one node at a time does not have: %s", pool.Name,
			words.Count(pool.MaxUnavailable, "node"), words.List(texts, maxNamed)).
			Named(finding.NameOf(nameTogether, pool.Name)).About(objects...)
		if !pool.Unordered {
			made = made.Do(finding.Change(`oc patch machineconfigpool %s --type merge --patch {"spec":{"maxUnavailable":1}}`, pool.Name))
		}
		found = append(found, made)
	}
	return finding.Bounded(finding.Drafts(found...))
}

// reboots is how long a node is away.
func reboots() string {
	node, metal := rollout.Documented(0, "").Node, rollout.Documented(0, configv1.BareMetalPlatformType).Node
	return fmt.Sprintf("%d to %d minutes, and up to %d on bare metal", int(node.Low.Minutes()), int(node.High.Minutes()),
		int(metal.High.Minutes()))
}

// besides are the findings about what the rehearsal does not have.
func (r *rehearsed) besides(ctx context.Context, cluster *snapshot.Cluster) []finding.Finding {
	return append(r.received(), r.unused(ctx, cluster)...)
}

// received warns of webhooks and policies that receive the evictions of the drains among all other requests, one
// finding for each Service.
func (r *rehearsed) received() []finding.Finding {
	drained := map[string]bool{}
	for i := range r.read.Order.Pools {
		for _, node := range r.read.Order.Pools[i].Nodes {
			drained[node] = true
		}
	}
	var evicted []*corev1.Pod
	for i := range r.read.Cluster.Pods {
		if pod := &r.read.Cluster.Pods[i]; drained[pod.Spec.NodeName] && eviction.PodOf(pod, r.read.DaemonSet).Kept == "" {
			evicted = append(evicted, pod)
		}
	}
	var found []finding.Finding
	for _, each := range r.read.Admission.General(evicted) {
		found = append(found, finding.Warn(reasonReceives,
			"the drains of this update submit evictions to webhooks or policies whose rules contain a wildcard, and their response is "+
				"unknown: %s",
			words.List(each.Labels, maxNamed)).
			Named(finding.NameOf(nameReceives, each.Name)).
			Do(finding.Read("oc get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml")))
	}
	return finding.Bounded(finding.Drafts(found...))
}

// unused warns of budgets that select no pods, most likely by mistake; empty if all select some. Where an archive has
// a part of the pods, budgets of namespaces are left out whose pods are not all there.
func (r *rehearsed) unused(ctx context.Context, cluster *snapshot.Cluster) []finding.Finding {
	read, partial := &r.read, r.missing.Lacks("pods")
	selecting := make([]bool, len(read.Budgets))
	budgets := eviction.NewBudgets(read.Budgets)
	for i := range read.Cluster.Pods {
		for _, at := range budgets.Of(read.Cluster.Pods[i].Namespace, read.Cluster.Pods[i].Labels) {
			selecting[at] = true
		}
	}
	var names []string
	var objects []finding.Object
	for at, selects := range selecting {
		budget := &read.Budgets[at]
		if selects || check.OfCluster(budget.Namespace) || partial && cluster.Listed(ctx, budget.Namespace, pods()) != nil {
			continue
		}
		names = append(names, budget.Namespace+"/"+budget.Name)
		objects = append(objects, finding.Object{
			APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget",
			Namespace: budget.Namespace, Name: budget.Name,
		})
	}
	if len(names) == 0 {
		return nil
	}
	return []finding.Finding{finding.Warn(reasonSelectsNothing, "%s select no pods, so they protect nothing, and do not block a drain: %s",
		words.Count(len(names), "PodDisruptionBudget"), words.List(names, maxNamed)).
		Named(nameUnused).
		Remedy("Check whether their selectors are right, or their workloads scaled to zero.").
		Do(finding.Read("oc get poddisruptionbudgets --all-namespaces")).
		About(objects...)}
}
