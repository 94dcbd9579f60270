package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2" //nolint:depguard // the helper of the scheduler takes such a logger
)

type resources struct {
	byName map[corev1.ResourceName]int
	names  []corev1.ResourceName
}

// Positions of the resources whose free share is compared.
const (
	processors = iota
	memory
)

func newResources() resources {
	r := resources{byName: map[corev1.ResourceName]int{}}
	r.at(corev1.ResourceCPU)
	r.at(corev1.ResourceMemory)
	return r
}

func (r *resources) at(name corev1.ResourceName) int {
	at, ok := r.byName[name]
	if !ok {
		at = len(r.names)
		r.byName[name], r.names = at, append(r.names, name)
	}
	return at
}

// amount is a quantity as a number: of processors in thousandths, of others in units.
func (r *resources) amount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// attachments is the resource that stands for the volumes of a driver on a node.
func attachments(driver string) corev1.ResourceName {
	return corev1.ResourceName("attachable-volumes-csi-" + driver)
}

func (c *compiler) measure() {
	limits := c.attachmentLimits()
	for i := range c.of.nodes {
		room := make([]int64, len(c.of.resources.names))
		for at, name := range c.of.resources.names {
			quantity, ok := c.of.nodes[i].Status.Allocatable[name]
			if ok {
				room[at] = c.of.resources.amount(name, quantity)
			}
		}
		for driver := range c.storage.drivers {
			at := c.of.resources.at(attachments(driver))
			room[at] = unlimited
			if limit, ok := limits[c.of.nodes[i].Name][driver]; ok {
				room[at] = limit
			}
		}
		c.of.room = append(c.of.room, room)
	}
}

// attachmentLimits are how many volumes of each driver can be attached, by node.
func (c *compiler) attachmentLimits() map[string]map[string]int64 {
	limits := map[string]map[string]int64{}
	for i := range c.input.Attachments {
		node := &c.input.Attachments[i]
		limits[node.Name] = map[string]int64{}
		for _, driver := range node.Spec.Drivers {
			if driver.Allocatable != nil && driver.Allocatable.Count != nil {
				limits[node.Name][driver.Name] = int64(*driver.Allocatable.Count)
			}
		}
	}
	return limits
}

// tolerates reports whether the pods of the class run on a node with these taints.
func (c *class) tolerates(taints []corev1.Taint) bool {
	hard := func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}
	_, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, c.tolerations, hard, false)
	return !untolerated
}

// evaluate computes on which nodes pods of the class may be.
func (c *class) evaluate(nodes []corev1.Node) {
	if c.selected != nil {
		return
	}
	c.selected, c.tolerated = make([]bool, len(nodes)), make([]bool, len(nodes))
	for i := range nodes {
		matches, err := c.affinity.Match(&nodes[i])
		c.selected[i] = matches && err == nil
		c.tolerated[i] = c.tolerates(withoutCordon(nodes[i].Spec.Taints))
	}
}

// withoutCordon are the taints but that of an unschedulable node, which is a state.
func withoutCordon(taints []corev1.Taint) []corev1.Taint {
	kept := make([]corev1.Taint, 0, len(taints))
	for _, taint := range taints {
		if taint.Key != corev1.TaintNodeUnschedulable {
			kept = append(kept, taint)
		}
	}
	return kept
}
