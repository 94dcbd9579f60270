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
		"The check that rehearses the drains of the update, which reboots nodes, also a patch update: pods that are not "+
			"evicted as long as the objects are as they are, or for which a drain waits for ever, fail; what the "+
			"drains interrupt or lose is a warning. What depends on the scheduler, on a webhook on evictions, or on an operator whose "+
			"PodDisruptionBudget "+
			"allows no eviction now is unknown. "+
			"`oc preflight drain-plan` prints the rehearsal. Only pods on nodes that this update drains count: not those of "+
			"paused pools, nor of a cluster with a single node (machine-config-operator pkg/daemon, drainRequired). The Secrets "+
			"and ConfigMaps that pods mount are taken for present.")
	nameBudget = finding.NewName("PodDisruptionBudget",
		"A finding of the check Drain about pods that a PodDisruptionBudget keeps on their nodes: "+
			"PodDisruptionBudget-<namespace>.<name>.")
	nameBudgets = finding.NewName("PodDisruptionBudgets",
		"A finding of the check Drain about pods that several PodDisruptionBudgets select, which cannot be "+
			"evicted: PodDisruptionBudgets-<namespace>.<first budget>.")
	nameUnused = finding.NewName("PodDisruptionBudgetsUnused",
		"The finding of the check Drain about PodDisruptionBudgets that select no pods.")
	nameOperator = finding.NewName("DrainOperator",
		"A finding of the check Drain about pods whose eviction depends on their operator: "+
			"DrainOperator-<namespace>.<PodDisruptionBudget>, or the controller of the first pod where none selects it.")
	nameAdmission = finding.NewName("DrainAdmission",
		"A finding of the check Drain about pods whose eviction a webhook or a policy refuses, or may: "+
			"DrainAdmission-<webhook>, or the binding of the policy.")
	nameReceives = finding.NewName("DrainWebhook",
		"A finding of the check Drain about webhooks of one Service that receive evictions among all other requests: "+
			"DrainWebhook-<first webhook>, or the binding of a policy.")
	namePod = finding.NewName("DrainPod",
		"A finding of the check Drain about pods that something else than a PodDisruptionBudget keeps on their nodes, such as a "+
			"finalizer: DrainPod-<namespace>.<first pod>.")
	namePool = finding.NewName("DrainPool",
		"A finding of the check Drain about a pool that drains no node, or of which it is unknown whether all drains end: "+
			"DrainPool-<pool>.")
	nameUnrehearsed = finding.NewName("DrainUnrehearsed",
		"A finding of the check Drain about nodes of a pool to which its rehearsal does not come: DrainUnrehearsed-<pool>.")
	namePending = finding.NewName("DrainPending", "The finding of the check Drain about pods that find no other node.")
	nameLost    = finding.NewName("DrainLost", "The finding of the check Drain about pods that nothing creates again.")
	nameGraces  = finding.NewName("DrainGracePeriods",
		"The finding of the check Drain about pods that may take long to end. Those of OpenShift itself, such as routers, are not named.")
	nameUnreached = finding.NewName("DrainUnreached",
		"The finding of the check Drain about nodes that the update does not reach, since their MachineConfigPool is paused, several or "+
			"none select them, or they get another configuration before. A paused pool is that of the check MachineConfigPool where the "+
			"update is to another minor version.")
	nameDelayed = finding.NewName("DrainDelays", "The finding of the check Drain about pods whose volumes keep them from running "+
		"until their own node is back. Those of OpenShift itself are not named.")
	nameMachines = finding.NewName("DrainMachines",
		"The finding of the check Drain about pods that need a new machine, which the cluster autoscaler can add.")
	nameTogether = finding.NewName("DrainTogether",
		"A finding of the check Drain about workloads that one node at a time does not interrupt, and the maxUnavailable of a pool does: "+
			"DrainTogether-<pool>.")
	nameAddresses   = finding.NewName("DrainAddresses", "The finding of the check Drain about addresses that only one node can have.")
	nameInterrupted = finding.NewName("DrainInterrupts",
		"The finding of the check Drain about Services without a ready pod for a time. Those of OpenShift itself are not named: "+
			"its operators run with one replica by design.")
)

// Reasons of findings.
var (
	reasonSingleNode = finding.NewReason("SingleNode", finding.Explanation{
		Meaning: "Reported on a cluster with a single node, which is updated without a drain.",
		Cause:   "Status.controlPlaneTopology of the Infrastructure \"cluster\" is SingleReplica.",
	})
	reasonSelectsNothing = finding.NewReason("SelectsNothing", finding.Explanation{
		Meaning: "Reported when PodDisruptionBudgets select no pods. They do not block a drain, but protect nothing.",
		Cause:   "A wrong selector, or a workload that is scaled to zero.",
		Remedy:  "Check the selectors: `oc get poddisruptionbudgets --all-namespaces`.",
	})
	reasonSeveralBudgets = finding.NewReason("SeveralBudgets", finding.Explanation{
		Meaning: "Reported when several PodDisruptionBudgets select the same pods, which therefore cannot be evicted.",
		Cause:   "The selectors of the budgets overlap.",
		Remedy:  "Let only one budget select each pod: `oc -n NAMESPACE get poddisruptionbudgets -o wide`.",
	})
	reasonNeverSatisfied = finding.NewReason("NeverSatisfied", finding.Explanation{
		Meaning: "Reported when a PodDisruptionBudget requires all expected pods to be healthy, so that none can ever be evicted.",
		Cause:   "The field maxUnavailable is 0, or minAvailable is the number of replicas.",
		Remedy:  "Allow one pod to be unavailable, or run one more: where an autoscaler sets the replicas, by its minReplicas.",
	})
	reasonNotSatisfied = finding.NewReason("NotSatisfiedInRehearsal", finding.Explanation{
		Meaning: "Reported when a drain waits for a PodDisruptionBudget, and nothing in the rehearsal of the update makes enough of its " +
			"pods healthy.",
		Cause:  "Pods of the budget are not ready, or find no node while the drain waits.",
		Remedy: "Check why the pods are not healthy, or make room for them: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonNotRehearsed = finding.NewReason("NotRehearsed", finding.Explanation{
		Meaning: "The rehearsal does not come to some nodes of a pool, also where what stops it is taken for removed. What their drains " +
			"meet is unknown.",
		Cause:  "The drains of the pool stop for a cause that the rehearsal cannot remove.",
		Remedy: "Fix the other findings of the check Drain, then run the preflight again.",
	})
	reasonUnmanaged = finding.NewReason("UnmanagedPods", finding.Explanation{
		Meaning: "Reported when a PodDisruptionBudget selects pods without a controller, and cannot compute how many are expected.",
		Cause:   "The budget has maxUnavailable or a percentage, and the pods have no controller.",
		Remedy:  "Give the budget a whole number as minAvailable, or create the pods by a controller.",
	})
	reasonSyncFailed = finding.NewReason("SyncFailed", finding.Explanation{
		Meaning: "Reported when the disruption controller could not compute the status of a PodDisruptionBudget, so that none of its " +
			"pods can be evicted.",
		Cause:  "The conditions of the budget have the error of the controller.",
		Remedy: "Fix what the condition names: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonInvalidStatus = finding.NewReason("InvalidStatus", finding.Explanation{
		Meaning: "Reported when the status of a PodDisruptionBudget cannot be that of the disruption controller, or is of an earlier spec.",
		Cause:   "Another program than the disruption controller wrote the status, or the controller does not run.",
		Remedy:  "Check which program writes the status: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonTerminating = finding.NewReason("StuckTerminating", finding.Explanation{
		Meaning: "Reported when a pod is being deleted, its grace period is over, and it still exists, so that the drain of its node " +
			"waits for it.",
		Cause:  "A finalizer of the pod remains, or the kubelet cannot end it.",
		Remedy: "Check what keeps the pod: `oc -n NAMESPACE describe pod NAME`.",
	})
	reasonAdmission = finding.NewReason("EvictionRefused", finding.Explanation{
		Meaning: "Reported when a webhook or a policy refuses the eviction of a pod, or may.",
		Cause:   "A webhook or a policy concerns pods/eviction.",
		Remedy:  "Let the webhook or the policy admit the eviction.",
	})
	reasonReceives = finding.NewReason("EvictionsReceived", finding.Explanation{
		Meaning: "Reported when a webhook or a policy receives the evictions of the drains among all other requests, and it is not " +
			"known what it answers. It is not taken for one that decides on evictions.",
		Cause:  "Its rules have a wildcard, such as */*, and no rule has pods/eviction alone.",
		Remedy: "Check that no rule of the policy engine denies the creation of an Eviction, or exclude pods/eviction from what it receives.",
	})
	reasonOperator = finding.NewReason("OperatorMovesPods", finding.Explanation{
		Meaning: "Reported when the eviction of a pod depends on its operator: it is refused until the operator acts, or until its " +
			"settings change.",
		Cause:  "The operator owns the pod or its PodDisruptionBudget.",
		Remedy: "Change the settings of the operator, and not the budget, which the operator restores.",
	})
	reasonPoolBlocked = finding.NewReason("PoolNotUpdated", finding.Explanation{
		Meaning: "Reported when as many nodes of a pool are unavailable as may be, so that no node of the pool is updated.",
		Cause:   "Nodes of the pool are cordoned, not ready, or failed to be configured.",
		Remedy:  "Make the nodes available: `oc adm uncordon NODE`.",
	})
	reasonPoolUpdating = finding.NewReason("NodeBeingUpdated", finding.Explanation{
		Meaning: "Reported while nodes of a pool are being updated, as many as may be unavailable, so that the drains of its other " +
			"nodes cannot be rehearsed.",
		Cause:  "An earlier update or a change of the configuration is in progress.",
		Remedy: "Run the preflight again in some minutes, when the nodes have returned: `oc get machineconfigpools`.",
	})
	reasonUnreached = finding.NewReason("NodesNotReached", finding.Explanation{
		Meaning: "Reported when an update does not reach nodes: they keep their release, and are not drained.",
		Cause:   "Their MachineConfigPool is paused, several custom pools or none select them, or they get another configuration before.",
		Remedy: "Unpause the pool when its nodes may be updated, or change the labels of the nodes so that one custom pool, or the " +
			"pool worker, selects each: `oc get machineconfigpools`.",
	})
	reasonNoNode = finding.NewReason("NoNodeAfterDrain", finding.Explanation{
		Meaning: "Reported when pods have no node after the drains of an update.",
		Cause:   "No other node suits the pods, or the API server refuses to create them again.",
		Remedy:  "Make room for the pods, or fix what refuses them: `oc describe pod`.",
	})
	reasonDelayed = finding.NewReason("NoOtherNodeInZone", finding.Explanation{
		Meaning: "Reported when pods have no node while theirs is drained, updated and rebooted.",
		Cause:   "The volumes of the pods are in a zone or on a node, and no other node that suits the pods can use them.",
		Remedy:  "Add a node to the zone, or prepare for the interruption.",
	})
	reasonLost = finding.NewReason("NotRecreated", finding.Explanation{
		Meaning: "Reported when a drain evicts pods that nothing creates again.",
		Cause:   "The pods have no controller, or it does not exist.",
		Remedy:  "Create the pods by a controller, or create them again after the update.",
	})
	reasonInterrupted = finding.NewReason("ServiceInterrupted", finding.Explanation{
		Meaning: "Reported when Services have no ready pod while nodes are drained.",
		Cause:   "All ready pods of the Services are on nodes that are drained at the same time, or there is one.",
		Remedy:  "Give their workloads more replicas on different nodes.",
	})
	reasonMachines = finding.NewReason("NeedsNewMachine", finding.Explanation{
		Meaning: "Reported when pods have no node during an update until the cluster autoscaler adds a machine.",
		Cause:   "No other node suits the pods, and a MachineAutoscaler allows its MachineSet more machines.",
		Remedy:  "Add the machine before the update, or check that the MachineSet can add one: `oc get machineautoscalers -A`.",
	})
	reasonTogether = finding.NewReason("SeveralNodesAtOnce", finding.Explanation{
		Meaning: "Reported when a pool drains several nodes at a time, and that leaves workloads without a ready pod, or keeps a drain " +
			"from ending, where one node at a time does not.",
		Cause:  "The maxUnavailable of the pool is above 1, and the ready pods of the workloads are on nodes that are drained at the same time.",
		Remedy: "Set the maxUnavailable of the pool to 1, or give the workloads a PodDisruptionBudget and more nodes.",
	})
	reasonAddress = finding.NewReason("AddressOnOneNode", finding.Explanation{
		Meaning: "Reported when an address is not reachable while the only node is away that can have it.",
		Cause:   "The object that assigns the address selects one node, or one node is labeled for it.",
		Remedy:  "Label another node, or change the selector, so that the address can move.",
	})
	reasonGrace = finding.NewReason("LongGracePeriod", finding.Explanation{
		Meaning: "Reported when pods may take ten minutes or more to end, for which the drains of their nodes wait.",
		Cause:   "The pods have a long terminationGracePeriodSeconds.",
		Remedy:  "Check that the pods end in time, or shorten the period. MachineConfigPools report a node as degraded after an hour.",
	})
)

func reasonOf(cause eviction.Cause) finding.Reason {
	switch cause { //nolint:exhaustive // the others are waits
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

// warnings are what an update interrupts or loses without a drain that does not end, each in one finding.
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
		what: "pods have no node after the drains of this update, or the API server refuses them:",
	}
	for _, each := range all {
		if !each.Uncertain && each.Node != "" {
			found.pod(each.Pod, each.Pod.String()+because(each.Why))
		}
	}
	return found
}

func lost(all []drain.Lost) named {
	found := named{name: nameLost, reason: reasonLost, what: "the drains of this update evict pods that nothing creates again:"}
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
	found := named{name: nameGraces, reason: reasonGrace, what: "the drains of this update wait for pods that may take long to end:"}
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
		what: "addresses are not reachable while the only node is away that can have them:",
	}
	for _, each := range all {
		found.texts = append(found.texts, fmt.Sprintf("those of %s %q, on %s", each.Kind, each.Name, each.Nodes[0]))
		found.objects = append(found.objects, finding.Object{
			APIVersion: each.APIVersion, Kind: each.Kind, Namespace: each.Namespace,
			Name: each.Name,
		})
	}
	return found
}

// together are what the pools interrupt only since they drain several nodes at a time, one finding for each pool.
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
			texts = append(texts, "a drain does not end, or may not")
		}
		if len(texts) == 0 || pool.MaxUnavailable < 2 { //nolint:mnd // several
			continue
		}
		made := finding.Warn(reasonTogether, "pool %q drains %s at a time, which interrupts what one node at a time does not: %s", pool.Name,
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
			"the drains of this update submit evictions to webhooks or policies whose rules have a wildcard, and what these answer is not known: %s",
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
