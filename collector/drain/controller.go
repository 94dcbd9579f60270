package drain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/quota"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

// controller is a controller of pods. It does not change.
type controller struct {
	recreation.Controller

	// known is false for one that is not of Kubernetes, or was not read.
	known bool
	// members are the pods of an ordered StatefulSet, by their ordinals.
	members []int
}

func (b *builder) controller(of *corev1.Pod) int {
	reference := metav1.GetControllerOfNoCopy(of)
	if reference == nil {
		return -1
	}
	key := of.Namespace + "/" + owner.KindOf(reference).String() + "/" + reference.Name
	at, ok := b.controllers[key]
	if !ok {
		at = len(b.made.controllers)
		b.controllers[key] = at
		added := controller{Controller: recreation.Controller{Failures: recreation.Unlimited}}
		if b.input.Workloads != nil {
			if found, ok := b.input.Workloads.Controller(of); ok {
				added.Controller, added.known = found, true
			}
		}
		b.made.controllers = append(b.made.controllers, added)
	}
	return at
}

// scale prepares what depends on all pods of a controller: the order of StatefulSets, and the budgets whose
// status the rehearsal computes: its expected pods are the scale of the controllers of its pods now.
func (b *builder) scale() {
	m := b.made
	m.scaled = make([]map[int]int, len(m.budgets))
	for i := range m.existing {
		p := &m.pods[i]
		if p.controller >= 0 && m.controllers[p.controller].Ordered {
			m.controllers[p.controller].members = append(m.controllers[p.controller].members, i)
		}
		if !p.absent {
			b.presence(p)
		}
	}
	for i := range m.controllers {
		slices.SortFunc(m.controllers[i].members, func(a, b int) int { return cmp.Compare(m.ordinal(a), m.ordinal(b)) })
		m.started(m.controllers[i].members)
	}
	for i := range m.scaled {
		if budget := &m.budgets[i]; budget.Failure == "" && (budget.Stale || m.sum(m.scaled[i]) != budget.Expected) {
			m.scaled[i] = nil
		}
	}
}

// started takes a pod of an ordered StatefulSet for one that was ready before, and not for one that is starting, if
// a pod with a higher ordinal was created after it: that was created once the pod was ready.
func (m *model) started(members []int) {
	latest := metav1.Time{}
	for _, at := range slices.Backward(members) {
		created := m.input.Cluster.Pods[at].CreationTimestamp
		if !latest.IsZero() && !latest.Before(&created) {
			m.pods[at].starting = false
		}
		if latest.Before(&created) {
			latest = created
		}
	}
}

func (m *model) ordinal(at int) int { return recreation.Ordinal(&m.input.Cluster.Pods[at]) }

// presence counts a pod for its budgets, by controller.
func (b *builder) presence(p *pod) {
	for _, budget := range p.budgets {
		if !b.made.budgets[budget].Scaled() {
			continue
		}
		if b.made.scaled[budget] == nil {
			b.made.scaled[budget] = map[int]int{}
		}
		b.made.scaled[budget][p.controller]++
	}
}

// sum returns the total scale of the controllers that have pods; -1 if one of them is unknown.
func (m *model) sum(present map[int]int) int32 {
	total := 0
	counted := map[string]bool{} // what scales several
	for at, pods := range present {
		if pods <= 0 || at < 0 {
			continue
		}
		switch of := &m.controllers[at]; {
		case !of.known || of.Unscaled:
			return -1
		case of.Scaler == "":
			total += of.Replicas
		case !counted[of.Scaler]:
			counted[of.Scaler] = true
			total += of.Scale
		}
	}
	return int32(total)
}

const (
	// olmOwner is the label of objects that the Operator Lifecycle Manager creates from a
	// ClusterServiceVersion (operator-lifecycle-manager pkg/lib/ownerutil).
	olmOwner = "olm.owner"
	// helmRelease is the annotation of objects of a Helm release (helm pkg/action/validate.go).
	helmRelease = "meta.helm.sh/release-name"

	serviceVersion = "ClusterServiceVersion"
)

// managerOf returns the program that creates a budget and restores it after a change, such as `Helm release
// "shop"`; empty if it is unknown.
func managerOf(budget *policyv1.PodDisruptionBudget) string {
	for _, owner := range budget.OwnerReferences {
		return fmt.Sprintf("%s %q", owner.Kind, owner.Name)
	}
	if name := budget.Labels[olmOwner]; name != "" {
		return fmt.Sprintf("%s %q", serviceVersion, name)
	}
	if name := budget.Annotations[helmRelease]; name != "" {
		return fmt.Sprintf("Helm release %q", name)
	}
	return ""
}

// operated reports whether an operator other than OLM owns a budget, and may change it during a drain.
func operated(budget *policyv1.PodDisruptionBudget) bool {
	for i := range budget.OwnerReferences {
		if owner.KindOf(&budget.OwnerReferences[i]) != (schema.GroupKind{Group: "operators.coreos.com", Kind: serviceVersion}) {
			return true
		}
	}
	return false
}

// controllerOf is the name of the controller of a pod; empty without one.
func controllerOf(pod *corev1.Pod) string {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return controller.Name
	}
	return ""
}

// custom is the controller of a pod, for a message.
func custom(pod *corev1.Pod) string {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return fmt.Sprintf("%s %q", owner.KindOf(controller), controller.Name)
	}
	return "an operator"
}

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
	// pods are the pods of the cluster, existing in number, followed by the pods that are created in their place if
	// these are different ones.
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

// pod contains the fields of a pod that a rehearsal reads.
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
	// whether the pods of its controller are the same: the pods of a DaemonSet have a node each, and the pods of a
	// StatefulSet have volumes
	alike     bool
	completes bool   // whether it runs to completion
	absent    bool   // whether it does not exist at first, although its controller is to have it
	groups    []int  // its Services, and after them the controllers
	grace     int64  // in seconds
	started   int64  // when the kubelet saw it, in seconds; the last of all if it has not
	starting  bool   // whether it started a moment ago and is not ready yet
	stuck     string // why the deletion of a pod does not end
	finalizer string // what may keep the pod once it is evicted
	admission reviewer.Answer
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
