// Package quota answers: do the ResourceQuotas of its namespace have room for this pod?
//
// [New] prepares the quotas, [Quotas.Of] returns the charges of a pod, and [Quotas.Used] returns the usage at the
// start of a rehearsal, from which deleted pods are released and against which new pods are admitted. The rules
// are from kubernetes pkg/quota/v1/evaluator/core/pods.go and of the admission plugin resourcequota.
package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// Quotas are the ResourceQuotas of a cluster. They do not change.
type Quotas struct {
	all         []quota
	byNamespace map[string][]int
}

type quota struct {
	name  string
	spec  *corev1.ResourceQuotaSpec
	used  corev1.ResourceList
	names []corev1.ResourceName
}

// New indexes quotas by namespace. Quotas of the cluster count the namespaces in their status together, as the
// admission plugin of OpenShift does (apiserver-library-go pkg/admission/quota/clusterresourcequota).
func New(quotas []corev1.ResourceQuota, ofCluster []quotav1.ClusterResourceQuota) *Quotas {
	q := &Quotas{byNamespace: map[string][]int{}}
	for i := range quotas {
		of := &quotas[i]
		q.add(quota{name: fmt.Sprintf("ResourceQuota %q", of.Name), spec: &of.Spec, used: of.Status.Used}, of.Namespace)
	}
	for i := range ofCluster {
		of := &ofCluster[i]
		var namespaces []string
		for _, counted := range of.Status.Namespaces {
			namespaces = append(namespaces, counted.Namespace)
		}
		q.add(quota{name: fmt.Sprintf("ClusterResourceQuota %q", of.Name), spec: &of.Spec.Quota, used: of.Status.Total.Used}, namespaces...)
	}
	return q
}

func (q *Quotas) add(added quota, namespaces ...string) {
	for _, name := range slices.Sorted(maps.Keys(added.spec.Hard)) {
		if _, ok := added.used[name]; ok {
			added.names = append(added.names, name)
		}
	}
	for _, namespace := range namespaces {
		q.byNamespace[namespace] = append(q.byNamespace[namespace], len(q.all))
	}
	q.all = append(q.all, added)
}

// Charge is the amount that one quota counts for a pod.
type Charge struct {
	quota   int
	amounts []int64 // in thousandths, by the resources of the quota
}

// Of are the charges of a pod, one for each quota that counts it.
func (q *Quotas) Of(pod *corev1.Pod) []Charge {
	if q == nil || len(q.byNamespace[pod.Namespace]) == 0 {
		return nil
	}
	used := usage(pod)
	var charges []Charge
	for _, at := range q.byNamespace[pod.Namespace] {
		if !scoped(pod, q.all[at].spec) {
			continue
		}
		charge := Charge{quota: at}
		for _, name := range q.all[at].names {
			amount := used[name]
			charge.amounts = append(charge.amounts, amount.MilliValue())
		}
		charges = append(charges, charge)
	}
	return charges
}

// Refuses returns the quota that rejects a pod because the pod does not specify a value, and the cause as a
// clause, such as "does not specify requests.cpu"; both are empty if there is none.
func (q *Quotas) Refuses(pod *corev1.Pod) (by, why string) {
	if q == nil {
		return "", ""
	}
	for _, at := range q.byNamespace[pod.Namespace] {
		of := q.all[at]
		if !scoped(pod, of.spec) {
			continue
		}
		if missing := unspecified(pod, of.spec.Hard); len(missing) > 0 {
			return of.name, "does not specify " + strings.Join(missing, ", ")
		}
	}
	return "", ""
}

// Use is how much of the quotas is used at a moment of a rehearsal.
type Use struct {
	quotas *Quotas
	used   [][]int64
}

// Used returns the usage in the status of the quotas.
func (q *Quotas) Used() *Use {
	u := &Use{quotas: q}
	if q == nil {
		return u
	}
	for i := range q.all {
		var used []int64
		for _, name := range q.all[i].names {
			amount := q.all[i].used[name]
			used = append(used, amount.MilliValue())
		}
		u.used = append(u.used, used)
	}
	return u
}

// Release subtracts a deleted pod from the usage.
func (u *Use) Release(charges []Charge) {
	for _, charge := range charges {
		for i, amount := range charge.amounts {
			u.used[charge.quota][i] -= amount
		}
	}
}

// Admit adds a pod to the usage, and reports true. If a quota has no room for it, nothing is added, and the quota
// and a clause about the pod say why.
func (u *Use) Admit(charges []Charge) (by, why string, admitted bool) {
	for _, charge := range charges {
		of := u.quotas.all[charge.quota]
		for i, amount := range charge.amounts {
			hard := of.spec.Hard[of.names[i]]
			if amount > 0 && u.used[charge.quota][i]+amount > hard.MilliValue() {
				return of.name, fmt.Sprintf("needs more %s than is left of %s", of.names[i], hard.String()), false
			}
		}
	}
	for _, charge := range charges {
		for i, amount := range charge.amounts {
			u.used[charge.quota][i] += amount
		}
	}
	return "", "", true
}

func containers(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

// unspecified are the processors and memory of a quota that a container does not specify,
// sorted. A pod with resources of its own need not specify them for its containers.
func unspecified(pod *corev1.Pod, hard corev1.ResourceList) []string {
	missing := map[string]bool{}
	if helpers.IsPodLevelResourcesSet(pod) {
		return nil
	}
	for _, container := range containers(pod) {
		for name := range hard {
			list, of := container.Resources.Requests, strings.TrimPrefix(string(name), "requests.")
			if limited, ok := strings.CutPrefix(string(name), "limits."); ok {
				list, of = container.Resources.Limits, limited
			}
			if of != string(corev1.ResourceCPU) && of != string(corev1.ResourceMemory) {
				continue
			}
			if _, ok := list[corev1.ResourceName(of)]; !ok {
				missing[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

func usage(pod *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	used := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, quantity := range helpers.PodRequests(pod, helpers.PodResourcesOptions{}) {
		used[name], used["requests."+name] = quantity, quantity
	}
	for name, quantity := range helpers.PodLimits(pod, helpers.PodResourcesOptions{}) {
		used["limits."+name] = quantity
	}
	return used
}

func scoped(pod *corev1.Pod, quota *corev1.ResourceQuotaSpec) bool {
	for _, scope := range quota.Scopes {
		if !matches(pod, scope) {
			return false
		}
	}
	if quota.ScopeSelector == nil {
		return true
	}
	for _, requirement := range quota.ScopeSelector.MatchExpressions {
		if !matches(pod, requirement.ScopeName) || !matchesPriority(pod, requirement) {
			return false
		}
	}
	return true
}

func matches(pod *corev1.Pod, scope corev1.ResourceQuotaScope) bool {
	bestEffort := len(helpers.PodRequests(pod, helpers.PodResourcesOptions{}))+len(helpers.PodLimits(pod, helpers.PodResourcesOptions{})) == 0
	terminating := pod.Spec.ActiveDeadlineSeconds != nil
	switch scope { //nolint:exhaustive // scopes of later releases are unknown
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort
	case corev1.ResourceQuotaScopeTerminating:
		return terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminating
	default:
		return true // priority classes and others are taken for a match; see matchesPriority
	}
}

func matchesPriority(pod *corev1.Pod, requirement corev1.ScopedResourceSelectorRequirement) bool {
	if requirement.ScopeName != corev1.ResourceQuotaScopePriorityClass {
		return true
	}
	name := pod.Spec.PriorityClassName
	switch requirement.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(requirement.Values, name)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(requirement.Values, name)
	case corev1.ScopeSelectorOpExists:
		return name != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return name == ""
	}
	return true
}
