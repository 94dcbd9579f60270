package reference

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// create creates one of the pods that a controller lacks, and reports false if the API server refuses
// it.
func (r *run) create(at int) bool {
	number, target, lacks := r.s.lacks(at)
	if !lacks {
		return true
	}
	c := &r.s.m.controllers[at]
	if r.s.limited && c.leaving || !r.s.admits(c.template) {
		return false
	}
	r.born(pod{template: c.template, controller: at, number: number, name: c.name + "-" + strconv.Itoa(number), target: target})
	r.add(create, at)
	return true
}

// lacks is the number, and for a DaemonSet the node, of a pod that a controller has to create. One of a
// ReplicaSet is replaced as soon as it is being deleted, that of another one when it is gone.
func (s *state) lacks(at int) (number, target int, lacks bool) {
	c := &s.m.controllers[at]
	switch c.kind {
	case replicaSet:
		active := 0
		for _, i := range s.existing[c.template] {
			if !s.pods[i].leaving {
				active++
			}
		}
		return len(s.pods), -1, active < c.replicas
	case statefulSet:
		number = s.ordinal(c)
		return number, -1, number >= 0
	case daemonSet:
		target = s.uncovered(c)
		return len(s.pods), target, target >= 0
	}
	return 0, -1, false
}

// ordinal is the first one of a StatefulSet without a pod; -1 if there is none.
func (s *state) ordinal(c *controller) int {
	for ordinal := range c.replicas {
		if !s.has(c, func(p *pod) bool { return p.number == ordinal }) {
			return ordinal
		}
	}
	return -1
}

// uncovered is the first node on which a DaemonSet has to have a pod and has none; -1 if there is none.
func (s *state) uncovered(c *controller) int {
	t := &s.m.templates[c.template]
	for node := range s.m.room {
		if t.selected[node] && t.tolerated[node] && !s.has(c, func(p *pod) bool { return p.target == node }) {
			return node
		}
	}
	return -1
}

// has reports whether a controller has such a pod.
func (s *state) has(c *controller, such func(*pod) bool) bool {
	return slices.ContainsFunc(s.existing[c.template], func(i int) bool { return such(&s.pods[i]) })
}

// admits reports whether the limits and the quotas admit a pod (kubernetes plugin/pkg/admission/limitranger and
// pkg/quota/v1/evaluator/core/pods.go).
func (s *state) admits(template int) bool {
	if !s.limited {
		return true
	}
	for i := range s.m.objects.Limits {
		for _, item := range s.m.objects.Limits[i].Spec.Limits {
			if !atLeast(s.m.templates[template].object.Spec.Containers, item.Min[corev1.ResourceCPU]) {
				return false
			}
		}
	}
	for i := range s.m.objects.Quotas {
		for name, hard := range s.m.objects.Quotas[i].Spec.Hard {
			if !s.charge(template, name, hard) {
				return false
			}
		}
	}
	return true
}

// atLeast reports whether all containers request that many processors.
func atLeast(containers []corev1.Container, processors resource.Quantity) bool {
	return !slices.ContainsFunc(containers, func(of corev1.Container) bool { return of.Resources.Requests.Cpu().Cmp(processors) < 0 })
}

// charge reports whether a quota of requests has room for a pod, each container of which must have the
// request.
func (s *state) charge(template int, name corev1.ResourceName, hard resource.Quantity) bool {
	requested := name[len("requests."):]
	for i := range s.m.templates[template].object.Spec.Containers {
		if _, ok := s.m.templates[template].object.Spec.Containers[i].Resources.Requests[requested]; !ok {
			return false
		}
	}
	at := slices.Index(s.m.resources, requested)
	charged := s.m.templates[template].requests[at]
	for other := range s.existing {
		charged += int64(len(s.existing[other])) * s.m.templates[other].requests[at]
	}
	return charged <= amount(requested, corev1.ResourceList{requested: hard})
}

// born adds a pod that was created.
func (r *run) born(of pod) {
	at := len(r.s.pods)
	of.node, of.nominated = -1, -1
	r.s.pods = append(r.s.pods, of)
	r.s.existing[of.template] = append(r.s.existing[of.template], at)
	r.affects(of.template)
	r.add(place, at)
}

// affects has the budgets of a template counted.
func (r *run) affects(template int) {
	for _, budget := range r.s.m.templates[template].budgets {
		r.changed(budget)
	}
}

// start is the kubelet's start of a pod, and reports false if it has to wait for a volume that another node has.
func (r *run) start(at int) bool {
	p := &r.s.pods[at]
	if p.leaving || p.gone {
		return true
	}
	if !r.s.attach(p) {
		return false
	}
	p.running, p.since = true, r.s.starts
	r.s.starts++
	if r.s.m.templates[p.template].getsReady {
		r.add(ready, at)
	}
	return true
}

// attach has the node of a pod have its volume, and reports false while another node does: one with a pod that uses it
// (kubernetes pkg/controller/volume/attachdetach, Multi-Attach).
func (s *state) attach(p *pod) bool {
	claim := s.m.templates[p.template].claim
	if claim == "" {
		return true
	}
	holder, held := s.holders[claim]
	uses := func(at int) bool { return s.m.templates[s.pods[at].template].claim == claim && s.pods[at].running }
	if held && holder != p.node && slices.ContainsFunc(s.onNode[holder], uses) {
		return false
	}
	s.holders[claim] = p.node
	return true
}

// ready is when a pod gets ready.
func (r *run) ready(at int) {
	if p := &r.s.pods[at]; !p.leaving && !p.gone {
		p.ready = true
		r.affects(p.template)
	}
}

// leave deletes a pod on a node: its kubelet ends it.
func (r *run) leave(at int) {
	p := &r.s.pods[at]
	r.s.occupy(p, p.node, -1)
	p.leaving = true
	r.s.occupy(p, p.node, 1)
	r.affects(p.template)
	r.add(end, at)
	r.wake(place) // topology spread does not count it any more
	if p.controller >= 0 {
		r.add(create, p.controller)
	}
}

// end is when a pod that was deleted is gone.
func (r *run) end(at int) {
	s, p := r.s, &r.s.pods[at]
	same := func(other int) bool { return other == at }
	s.occupy(p, p.node, -1)
	s.onNode[p.node] = slices.DeleteFunc(s.onNode[p.node], same)
	s.existing[p.template] = slices.DeleteFunc(s.existing[p.template], same)
	if s.draining[p.node] && s.drained(p.node) {
		r.add(finish, p.node)
	}
	p.gone, p.node = true, -1
	r.affects(p.template)
	r.wake(create)
	r.wake(place)
	r.wake(start)
	if p.controller >= 0 {
		r.add(create, p.controller)
	}
}
