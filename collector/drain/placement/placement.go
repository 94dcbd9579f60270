// Package placement answers: on which nodes can this pod run?
//
// [Compile] prepares nodes and pods once; [Cluster.State] is an occupation of the nodes that changes as pods are
// added and removed, and [State.Find] returns a node for a pod, or why there is none. The filters come from the
// default profile of kube-scheduler (kubernetes pkg/scheduler/apis/config/v1/default_plugins.go, 1.37), as far as
// they are exact without its caches. A pod whose placement depends on anything else has Pod.Unknown.
package placement

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2" //nolint:depguard // the scheduler's helper takes a logger of this type
)

// Input of the filters.
type Input struct {
	Nodes []corev1.Node
	Pods  []corev1.Pod
	// Created are pods that do not exist and may be created. Cluster.Pods has them after Pods.
	Created []*corev1.Pod
	// Namespaces are needed for affinity terms with a namespaceSelector.
	Namespaces []metav1.PartialObjectMetadata
	// Claims, Volumes and Classes are all of the cluster. With Unread, pods with claims have an unknown placement.
	Claims  []corev1.PersistentVolumeClaim
	Volumes []corev1.PersistentVolume
	Classes []storagev1.StorageClass
	// Drivers are those whose volumes may not have to be attached; of others they are.
	Drivers []storagev1.CSIDriver
	Unread  bool
	// Partial is true where claims, volumes or classes that are not there may exist.
	Partial bool
	// Attachments are the limits of volumes by node.
	Attachments []storagev1.CSINode
}

// Cluster are nodes and pods, prepared for the filters. It does not change.
type Cluster struct {
	// Pods of the input, in the same order.
	Pods []Pod

	nodes      []corev1.Node
	positions  map[string]int
	resources  resources
	room       [][]int64 // by node and resource
	classes    map[string]*class
	topologies map[string]*topology
	terms      []*term
	spreads    []*spreadTerm
	owners     int
	exclusive  int // counts the claims that one pod uses at a time
	volumes    int // counts the volumes that are attached
}

// Pod is a pod, prepared for the filters. A replacement of it has the same requirements.
type Pod struct {
	// Priority is spec.priority. With Polite, the pod preempts no other.
	Priority int32
	Polite   bool
	// Unknown names what else the placement depends on; empty for nothing.
	Unknown string
	// Impossible is why the pod cannot be placed on any node; empty if it can.
	Impossible string

	class    *class
	requests []request
	ports    []port
	volumes  []func(*corev1.Node) bool
	attached []attachment
	// Spread is true for one whose place depends on pods in the same domain of another topology than the node.
	Spread bool
	// exclusive are its claims that no other pod may use (access mode ReadWriteOncePod).
	exclusive []int32
	matched   []int32
	// anti are its own terms of anti-affinity; affinity is its only term of affinity, or -1,
	// and self is whether that selects the pod itself.
	anti     []int32
	affinity int32
	self     bool
	spread   []constraint
	// counted are the terms of topology spread of all pods that select this one.
	counted []int32
	owner   int32
}

// attachment is a volume that a node has for a pod. With single, one node has it at a time.
type attachment struct {
	driver   string
	resource int
	volume   int32
	single   bool
}

type request struct {
	resource int
	amount   int64
}

// class are the requirements of pods that depend on the node alone.
type class struct {
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	// selected and tolerated are whether each node matches them, once computed.
	selected, tolerated []bool
	// cordoned is true if the pods run on nodes that are unschedulable.
	cordoned bool
}

// topology is a division of the nodes into domains by the value of a label.
type topology struct {
	// of is the domain of each node, -1 for one without the label.
	of      []int32
	domains int
}

// term is a required term of affinity or anti-affinity.
type term struct {
	selector   labels.Selector
	namespaces map[string]bool // nil for all
	topology   *topology
}

func (t *term) selects(pod *corev1.Pod) bool {
	return (t.namespaces == nil || t.namespaces[pod.Namespace]) && t.selector.Matches(labels.Set(pod.Labels))
}

// spreadTerm are the pods that a constraint of topology spread counts.
type spreadTerm struct {
	namespace string
	selector  labels.Selector
}

type constraint struct {
	term     int32
	topology *topology
	skew     int
	domains  int
	self     bool
	// everywhere counts nodes that the pod's affinity excludes, tolerated only nodes whose taints it tolerates.
	everywhere, tolerated bool
}

// port is a port of the host.
type port struct {
	protocol corev1.Protocol
	address  string
	number   int32
}

func (p port) clashes(other port) bool {
	const any = "0.0.0.0"
	return p.number == other.number && p.protocol == other.protocol && (p.address == other.address || p.address == any || other.address == any)
}

// Node returns the position of a node, -1 if no node has that name.
func (c *Cluster) Node(name string) int {
	if at, ok := c.positions[name]; ok {
		return at
	}
	return -1
}

// Name is the name of the node at a position.
func (c *Cluster) Name(at int) string { return c.nodes[at].Name }

// Rejection is why a node is not suitable.
type Rejection int

// The rejections, in the order in which they are tested.
const (
	None Rejection = iota
	Unschedulable
	Affinity
	Taint
	Resources
	Ports
	Exclusive
	Volume
	PodAntiAffinity
	PodAffinity
	Spread
	rejections
)

// Rejections counts the nodes that are not suitable, by the first reason.
type Rejections [rejections]int

// String is the counts as a text, such as "2 nodes are cordoned, 1 node has taints".
func (r Rejections) String() string {
	texts := [rejections]string{
		Unschedulable: "unschedulable", Affinity: "excluded by node selector or affinity", Taint: "tainted",
		Resources: "without the requested resources", Ports: "with the host port in use",
		Exclusive: "without a volume that another pod uses alone", Volume: "out of reach of a volume",
		PodAntiAffinity: "excluded by pod anti-affinity", PodAffinity: "without the pods of its affinity", Spread: "excluded by topology spread",
	}
	var parts []string
	for why := Unschedulable; why < rejections; why++ {
		if r[why] > 0 {
			parts = append(parts, count(r[why])+" "+texts[why])
		}
	}
	if len(parts) == 0 {
		return "there are no nodes"
	}
	return strings.Join(parts, ", ")
}

const unlimited = math.MaxInt64

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

// withoutCordon returns the taints except the taint of an unschedulable node, which is a state.
func withoutCordon(taints []corev1.Taint) []corev1.Taint {
	kept := make([]corev1.Taint, 0, len(taints))
	for _, taint := range taints {
		if taint.Key != corev1.TaintNodeUnschedulable {
			kept = append(kept, taint)
		}
	}
	return kept
}
