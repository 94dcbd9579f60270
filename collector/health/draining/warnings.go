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

// warnings are what an update interrupts or loses without a drain that does not end, each in one finding.
func warnings(rehearsal drain.Rehearsal) []finding.Finding {
	all := []named{pending(rehearsal.Pending), lost(rehearsal.Lost), graces(rehearsal.Graces), delayed(rehearsal.Delayed), expanded(rehearsal.Expanded), addresses(rehearsal.Addresses), interrupted(rehearsal.Interrupted)}
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
	found := named{name: namePending, reason: reasonNoNode, what: "pods have no node after the drains of this update, or the API server refuses them:"}
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
	found := named{name: nameDelayed, reason: reasonDelayed, what: "the volumes of pods keep them from running until their own node is back, which takes " + reboots() + ":"}
	for _, each := range all {
		if !check.OfCluster(each.Pod.Namespace) {
			found.pod(each.Pod, fmt.Sprintf("%s on %s%s", each.Pod, each.Node, because(each.Why)))
		}
	}
	return found
}

func interrupted(all []drain.Interruption) named {
	found := named{name: nameInterrupted, reason: reasonInterrupted, what: "the drains of this update leave Services without a ready pod for a time:"}
	for _, each := range all {
		if check.OfCluster(each.Service.Namespace) {
			continue
		}
		found.texts = append(found.texts, each.Service.String())
		found.objects = append(found.objects, finding.Object{APIVersion: "v1", Kind: "Service", Namespace: each.Service.Namespace, Name: each.Service.Name})
	}
	return found
}

func expanded(all []drain.Expansion) named {
	found := named{name: nameMachines, reason: reasonMachines, what: "pods have no node during this update until the cluster autoscaler adds a machine:"}
	for _, each := range all {
		found.pod(each.Pod, fmt.Sprintf("%s needs a new machine of MachineSet %s", each.Pod, each.MachineSet))
	}
	return found
}

func addresses(all []drain.Address) named {
	found := named{name: nameAddresses, reason: reasonAddress, what: "addresses are not reachable while the only node is away that can have them:"}
	for _, each := range all {
		found.texts = append(found.texts, fmt.Sprintf("those of %s %q, on %s", each.Kind, each.Name, each.Nodes[0]))
		found.objects = append(found.objects, finding.Object{APIVersion: each.APIVersion, Kind: each.Kind, Namespace: each.Namespace, Name: each.Name})
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
			if check.OfCluster(each.Workload.Namespace) || !slices.ContainsFunc(each.Nodes, func(node string) bool { return slices.Contains(pool.Nodes, node) }) {
				continue
			}
			texts = append(texts, fmt.Sprintf("%s %s loses its %s", each.Kind, each.Workload, words.Count(each.Replicas, "ready pod")))
			objects = append(objects, finding.Object{APIVersion: each.APIVersion, Kind: each.Kind, Namespace: each.Workload.Namespace, Name: each.Workload.Name})
		}
		if slices.ContainsFunc(rehearsal.Pools, func(of drain.Pool) bool { return of.Name == pool.Name && of.Single }) {
			texts = append(texts, "a drain does not end, or may not")
		}
		if len(texts) == 0 || pool.MaxUnavailable < 2 { //nolint:mnd // several
			continue
		}
		made := finding.Warn(reasonTogether, "pool %q drains %s at a time, which interrupts what one node at a time does not: %s", pool.Name, words.Count(pool.MaxUnavailable, "node"), words.List(texts, maxNamed)).
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
	return fmt.Sprintf("%d to %d minutes, and up to %d on bare metal", int(node.Low.Minutes()), int(node.High.Minutes()), int(metal.High.Minutes()))
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
		found = append(found, finding.Warn(reasonReceives, "the drains of this update submit evictions to webhooks or policies whose rules have a wildcard, and what these answer is not known: %s", words.List(each.Labels, maxNamed)).
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
		objects = append(objects, finding.Object{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget", Namespace: budget.Namespace, Name: budget.Name})
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
