package placement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	helpers "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/openshift/update-preflight/collector/drain/owner"
)

type compiler struct {
	of *Cluster

	input    *Input
	storage  *storage
	byKey    map[string]int32 // terms and spread terms by their texts
	owned    map[string]int32 // owners of pods
	bySpec   map[specified][]request
	labelsOf map[string]map[string]string
	// inNamespace are the terms that may select pods of a namespace, "" being all.
	inNamespace map[string][]int32
	spreadIn    map[string][]int32
}

// Compile prepares nodes and pods.
func Compile(input Input) *Cluster {
	c := &compiler{
		of: &Cluster{
			Pods: make([]Pod, len(input.Pods)+len(input.Created)), nodes: input.Nodes, positions: map[string]int{},
			resources: newResources(), classes: map[string]*class{}, topologies: map[string]*topology{},
		},
		input: &input, storage: storageOf(&input), byKey: map[string]int32{}, owned: map[string]int32{}, bySpec: map[specified][]request{},
		labelsOf: map[string]map[string]string{}, inNamespace: map[string][]int32{}, spreadIn: map[string][]int32{},
	}
	for i := range input.Namespaces {
		c.labelsOf[input.Namespaces[i].Name] = input.Namespaces[i].Labels
	}
	for i := range input.Nodes {
		c.of.positions[input.Nodes[i].Name] = i
	}
	for i := range c.of.Pods {
		c.of.Pods[i] = c.pod(input.pod(i))
	}
	c.share()
	for i := range c.of.Pods {
		c.match(input.pod(i), &c.of.Pods[i])
	}
	c.measure()
	c.of.owners, c.of.exclusive, c.of.volumes = len(c.owned), len(c.storage.exclusive), len(c.storage.numbers)
	return c.of
}

// share finds the volumes that several nodes have at a time, whatever their claims ask for: pods are ready there.
func (c *compiler) share() {
	nodes, shared := map[int32]string{}, map[int32]bool{}
	for i := range c.input.Pods {
		pod := &c.input.Pods[i]
		ready := func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}
		if !slices.ContainsFunc(pod.Status.Conditions, ready) {
			continue
		}
		for _, each := range c.of.Pods[i].attached {
			other, known := nodes[each.volume]
			shared[each.volume] = shared[each.volume] || known && other != pod.Spec.NodeName
			nodes[each.volume] = pod.Spec.NodeName
		}
	}
	for i := range c.of.Pods {
		for j := range c.of.Pods[i].attached {
			of := &c.of.Pods[i].attached[j]
			of.single = of.single && !shared[of.volume]
		}
	}
}

func (in *Input) pod(at int) *corev1.Pod {
	if at < len(in.Pods) {
		return &in.Pods[at]
	}
	return in.Created[at-len(in.Pods)]
}

// pod compiles what concerns the pod alone.
func (c *compiler) pod(pod *corev1.Pod) Pod {
	compiled := Pod{affinity: -1, class: c.class(pod), owner: c.owner(pod)}
	if pod.Spec.Priority != nil {
		compiled.Priority = *pod.Spec.Priority
	}
	compiled.Polite = pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	compiled.requests = c.requests(pod)
	compiled.ports = portsOf(pod)
	switch {
	case pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		compiled.Unknown = fmt.Sprintf("the scheduler %q places it", pod.Spec.SchedulerName)
	case len(pod.Spec.ResourceClaims) > 0:
		compiled.Unknown = "it has claims of dynamic resources"
	case len(pod.Spec.SchedulingGates) > 0:
		compiled.Unknown = "it has scheduling gates"
	}
	c.storage.require(pod, &compiled)
	compiled.attached = c.storage.attached(pod)
	for i, each := range compiled.attached {
		compiled.attached[i].resource = c.of.resources.at(attachments(each.driver))
	}
	c.affinities(pod, &compiled)
	c.constraints(pod, &compiled)
	return compiled
}

// ordinal is the position of a pod, a node or a volume in a list, in four bytes, since every state keeps many.
func ordinal(at int) int32 { return int32(at) } //nolint:gosec // a snapshot has far fewer than 2^31 objects of a resource

func (c *compiler) owner(pod *corev1.Pod) int32 {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return -1
	}
	key := pod.Namespace + "/" + owner.KindOf(controller).String() + "/" + controller.Name
	if _, ok := c.owned[key]; !ok {
		c.owned[key] = ordinal(len(c.owned))
	}
	return c.owned[key]
}

// class returns the class of pods with the same selection of nodes.
func (c *compiler) class(pod *corev1.Pod) *class {
	var affinity *corev1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	key, err := json.Marshal([]any{pod.Spec.NodeSelector, affinity, pod.Spec.Tolerations})
	if err != nil {
		key = []byte(pod.Namespace + "/" + pod.Name)
	}
	if known := c.of.classes[string(key)]; known != nil {
		return known
	}
	added := &class{affinity: nodeaffinity.GetRequiredNodeAffinity(pod), tolerations: pod.Spec.Tolerations}
	added.cordoned = added.tolerates([]corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}})
	c.of.classes[string(key)] = added
	return added
}

// specified identifies the part that the requests of similar pods depend on: the first containers, and their
// number.
type specified struct {
	containers, initContainers *corev1.Container
	count, initCount           int
	resources                  *corev1.ResourceRequirements
}

// requests are the amounts that a pod requests, its own place among them. Pods of a controller may share the slices
// of their containers, so that they are computed once.
func (c *compiler) requests(pod *corev1.Pod) []request {
	status := &pod.Status
	resized := status.Resources != nil || len(status.AllocatedResources) > 0
	for i := range status.ContainerStatuses {
		resized = resized || resizes(&status.ContainerStatuses[i])
	}
	for i := range status.InitContainerStatuses {
		resized = resized || resizes(&status.InitContainerStatuses[i])
	}
	if resized || len(pod.Spec.Containers) == 0 || len(pod.Spec.Overhead)+len(pod.Spec.ResourceClaims) > 0 {
		return c.requested(pod)
	}
	key := specified{
		containers: &pod.Spec.Containers[0], count: len(pod.Spec.Containers), initCount: len(pod.Spec.InitContainers),
		resources: pod.Spec.Resources,
	}
	if len(pod.Spec.InitContainers) > 0 {
		key.initContainers = &pod.Spec.InitContainers[0]
	}
	found, ok := c.bySpec[key]
	if !ok {
		found = slices.Clip(c.requested(pod))
		c.bySpec[key] = found
	}
	return found
}

// resizes reports whether the requests of a container may differ from its spec.
func resizes(of *corev1.ContainerStatus) bool {
	return of.Resources != nil || len(of.AllocatedResources) > 0
}

func (c *compiler) requested(pod *corev1.Pod) []request {
	found := []request{{c.of.resources.at(corev1.ResourcePods), 1}}
	for name, quantity := range helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true}) {
		if amount := c.of.resources.amount(name, quantity); amount > 0 {
			found = append(found, request{c.of.resources.at(name), amount})
		}
	}
	return found
}

func portsOf(pod *corev1.Pod) []port {
	var found []port
	for _, container := range slices.Concat(pod.Spec.Containers, sidecars(pod.Spec.InitContainers)) {
		for _, of := range container.Ports {
			if of.HostPort != 0 {
				found = append(found, portOf(of))
			}
		}
	}
	return found
}

// portOf is a port of a node, with the defaults of the scheduler.
func portOf(of corev1.ContainerPort) port {
	added := port{protocol: cmp.Or(of.Protocol, corev1.ProtocolTCP), address: of.HostIP, number: of.HostPort}
	if added.address == "" || added.address == "::" {
		added.address = "0.0.0.0"
	}
	return added
}

func sidecars(containers []corev1.Container) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(containers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
}

// affinities compiles the required terms between pods.
func (c *compiler) affinities(pod *corev1.Pod, compiled *Pod) {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	if affinity.PodAntiAffinity != nil {
		for i := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if at, ok := c.term(pod, &affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i], compiled); ok {
				compiled.anti = append(compiled.anti, at)
			}
		}
	}
	if affinity.PodAffinity == nil {
		return
	}
	switch required := affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution; len(required) {
	case 0:
	case 1:
		if at, ok := c.term(pod, &required[0], compiled); ok {
			compiled.affinity, compiled.self = at, c.of.terms[at].selects(pod)
		}
	default:
		compiled.Unknown = "it has several terms of pod affinity"
	}
}

func (c *compiler) term(pod *corev1.Pod, of *corev1.PodAffinityTerm, compiled *Pod) (int32, bool) {
	// The API server merges matchLabelKeys and mismatchLabelKeys into the selector when the
	// pod is created, also for its replacement.
	selector, err := metav1.LabelSelectorAsSelector(of.LabelSelector)
	if err != nil {
		compiled.Unknown = "a selector of its affinity is invalid"
		return 0, false
	}
	namespaces, err := c.namespaces(pod, of)
	if err != nil {
		compiled.Unknown = err.Error()
		return 0, false
	}
	compiled.Spread = compiled.Spread || of.TopologyKey != corev1.LabelHostname
	key := "term " + of.TopologyKey + " " + strings.Join(namespaces, ",") + " " + selector.String()
	if at, ok := c.byKey[key]; ok {
		return at, true
	}
	added := &term{selector: selector, topology: c.topology(of.TopologyKey)}
	at := ordinal(len(c.of.terms))
	if len(namespaces) == 1 && namespaces[0] == "" {
		c.inNamespace[""] = append(c.inNamespace[""], at)
	} else {
		added.namespaces = map[string]bool{}
		for _, namespace := range namespaces {
			added.namespaces[namespace] = true
			c.inNamespace[namespace] = append(c.inNamespace[namespace], at)
		}
	}
	c.of.terms, c.byKey[key] = append(c.of.terms, added), at
	return at, true
}

// namespaces of a term, sorted; an empty one means all.
func (c *compiler) namespaces(pod *corev1.Pod, of *corev1.PodAffinityTerm) ([]string, error) {
	if of.NamespaceSelector == nil {
		if len(of.Namespaces) == 0 {
			return []string{pod.Namespace}, nil
		}
		return slices.Sorted(slices.Values(of.Namespaces)), nil
	}
	if len(of.NamespaceSelector.MatchLabels)+len(of.NamespaceSelector.MatchExpressions) == 0 {
		return []string{""}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(of.NamespaceSelector)
	if err != nil || len(c.labelsOf) == 0 {
		return nil, fmt.Errorf("the namespaces of its affinity are unknown")
	}
	found := slices.Clone(of.Namespaces)
	for name, set := range c.labelsOf {
		if selector.Matches(labels.Set(set)) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func (c *compiler) topology(key string) *topology {
	if known := c.of.topologies[key]; known != nil {
		return known
	}
	added := &topology{of: make([]int32, len(c.of.nodes))}
	domains := map[string]int32{}
	for i := range c.of.nodes {
		value, ok := c.of.nodes[i].Labels[key]
		if !ok {
			added.of[i] = -1
			continue
		}
		if _, ok := domains[value]; !ok {
			domains[value] = ordinal(len(domains))
		}
		added.of[i] = domains[value]
	}
	added.domains = len(domains)
	c.of.topologies[key] = added
	return added
}

// constraints compiles the required constraints of topology spread. Those that the scheduler
// adds by default are not required.
func (c *compiler) constraints(pod *corev1.Pod, compiled *Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		of := &pod.Spec.TopologySpreadConstraints[i]
		if of.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(of.LabelSelector)
		if err != nil {
			compiled.Unknown = "a selector of its topology spread is invalid"
			return
		}
		selector = withKeys(selector, of.MatchLabelKeys, pod.Labels)
		compiled.Spread = compiled.Spread || of.TopologyKey != corev1.LabelHostname
		added := constraint{
			term: c.spreadTerm(pod.Namespace, selector), topology: c.topology(of.TopologyKey), skew: int(of.MaxSkew), domains: 1,
			self:       selector.Matches(labels.Set(pod.Labels)),
			everywhere: of.NodeAffinityPolicy != nil && *of.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
			tolerated:  of.NodeTaintsPolicy != nil && *of.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		}
		if of.MinDomains != nil {
			added.domains = int(*of.MinDomains)
		}
		compiled.spread = append(compiled.spread, added)
	}
}

// withKeys adds the labels of the pod with these keys to a selector.
func withKeys(selector labels.Selector, keys []string, of map[string]string) labels.Selector {
	for _, key := range keys {
		if value, ok := of[key]; ok {
			if required, err := labels.NewRequirement(key, "in", []string{value}); err == nil {
				selector = selector.Add(*required)
			}
		}
	}
	return selector
}

func (c *compiler) spreadTerm(namespace string, selector labels.Selector) int32 {
	key := "spread " + namespace + " " + selector.String()
	if at, ok := c.byKey[key]; ok {
		return at
	}
	at := ordinal(len(c.of.spreads))
	c.of.spreads, c.byKey[key] = append(c.of.spreads, &spreadTerm{namespace: namespace, selector: selector}), at
	c.spreadIn[namespace] = append(c.spreadIn[namespace], at)
	return at
}

// match finds the terms of all pods that select this one.
func (c *compiler) match(pod *corev1.Pod, compiled *Pod) {
	for _, namespace := range []string{"", pod.Namespace} {
		for _, at := range c.inNamespace[namespace] {
			if c.of.terms[at].selects(pod) {
				compiled.matched = append(compiled.matched, at)
			}
		}
	}
	for _, at := range c.spreadIn[pod.Namespace] {
		if c.of.spreads[at].selector.Matches(labels.Set(pod.Labels)) {
			compiled.counted = append(compiled.counted, at)
		}
	}
}

func count(nodes int) string {
	if nodes == 1 {
		return "1 node"
	}
	return strconv.Itoa(nodes) + " nodes"
}
