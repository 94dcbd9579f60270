package drain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/quota"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

const (
	// overdue is how long after the end of its grace period a pod that is being deleted is
	// taken for one that stays.
	overdue = 5 * time.Minute
	// settling is how long after its start a pod that is not ready may become so.
	settling = 5 * time.Minute
	// longGrace is the least grace period that is reported.
	longGrace = 10 * time.Minute
)

// model is the input, prepared for rehearsals. It does not change.
type model struct {
	input   *Input
	cluster *placement.Cluster
	// pods are those of the cluster, existing in number, and what is created in their place where that is
	// another pod.
	pods     []pod
	existing int
	quotas   *quota.Quotas
	budgets  []eviction.Budget
	// owned are the budgets that an operator owns, managers what restores a budget.
	owned       []bool
	managers    []string
	controllers []controller
	// scaled counts the pods of each budget by controller; nil where the number of expected pods is fixed.
	scaled []map[int]int
	lowest int32
}

// pod is what a rehearsal reads of a pod.
type pod struct {
	eviction.Pod

	node       int
	budgets    []int
	recreation recreation.Answer
	// next is the position of what is created in its place: its own for a pod like it.
	next       int
	charges    []quota.Charge
	owner      owner.Answer
	controller int
	alike      bool   // whether the pods of its controller are the same: those of a DaemonSet have a node each, and those of a StatefulSet volumes
	completes  bool   // whether it runs to completion
	absent     bool   // whether it does not exist at first, although its controller is to have it
	groups     []int  // its Services, and after them the controllers
	grace      int64  // in seconds
	started    int64  // when the kubelet saw it, in seconds; the last of all if it has not
	starting   bool   // whether it started a moment ago and is not ready yet
	stuck      string // why the deletion of a pod does not end
	finalizer  string // what may keep the pod once it is evicted
	admission  reviewer.Answer
}

func (m *model) reference(at int) Reference {
	of := &m.input.Cluster.Pods[at]
	return Reference{of.Namespace, of.Name}
}

// custom reports whether the controller of a pod is none of Kubernetes.
func (m *model) custom(p *pod) bool {
	return p.recreation.Outcome == recreation.Unknown && m.input.Workloads != nil && (p.controller < 0 || !m.controllers[p.controller].known)
}

func (m *model) nodeOf(at int) string { return m.input.Cluster.Pods[at].Spec.NodeName }

// graceOf is how many seconds a pod may take to end. One that is migrated leaves its node when what
// it runs does not run there any more.
func graceOf(of *corev1.Pod, by owner.Answer) int64 {
	if of.Spec.TerminationGracePeriodSeconds == nil || by.Behavior == owner.Migrates {
		return 0
	}
	return max(0, *of.Spec.TerminationGracePeriodSeconds)
}

// graces are the evicted pods with long grace periods, the longest first.
func (m *model) graces(evicted []bool) []Grace {
	var found []Grace
	for i := range m.pods {
		if seconds := m.pods[i].grace; evicted[i] && seconds >= int64(longGrace/time.Second) {
			found = append(found, Grace{Pod: m.reference(i), Node: m.nodeOf(i), Seconds: seconds})
		}
	}
	slices.SortStableFunc(found, func(a, b Grace) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), compareReferences(a.Pod, b.Pod))
	})
	return found
}

// maxGrace bounds a grace period: a year is for ever.
const maxGrace = 365 * 24 * time.Hour

func compareReferences(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

type services struct {
	byNamespace map[string][]selecting
}

type selecting struct {
	labels labels.Selector
	at     int
}

func servicesOf(all []corev1.Service) *services {
	s := &services{byNamespace: map[string][]selecting{}}
	for i := range all {
		if len(all[i].Spec.Selector) == 0 {
			continue
		}
		selector := labels.SelectorFromSet(all[i].Spec.Selector)
		s.byNamespace[all[i].Namespace] = append(s.byNamespace[all[i].Namespace], selecting{selector, i})
	}
	return s
}

func (s *services) of(pod *corev1.Pod) []int {
	var found []int
	for _, candidate := range s.byNamespace[pod.Namespace] {
		if candidate.labels.Matches(labels.Set(pod.Labels)) {
			found = append(found, candidate.at)
		}
	}
	return found
}
