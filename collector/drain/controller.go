package drain

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/recreation"
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

// sum is the scale of the controllers that have pods; -1 where that of one is unknown.
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

// managerOf is what creates a budget and restores it after a change, such as `Helm release
// "shop"`; empty where that is not known.
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
