package reference

// cordon cordons the next nodes of a pool, as many as may be unavailable (machine-config-operator
// pkg/controller/node), and starts their drains.
func (r *run) cordon(at int) {
	s, of := r.s, &r.s.m.pools[at]
	for s.busy[at] < of.limit && s.started[at] < len(of.nodes) {
		node := of.nodes[s.started[at]]
		s.started[at]++
		s.busy[at]++
		s.cordoned[node], s.draining[node] = true, true
		for _, pod := range s.onNode[node] {
			if !s.ofDaemonSet(&s.pods[pod]) {
				r.add(evict, pod)
			}
		}
		if s.drained(node) {
			r.add(finish, node)
		}
	}
}

// finish returns a node that is drained.
func (r *run) finish(node int) {
	s := r.s
	s.cordoned[node], s.draining[node] = false, false
	for i := range s.m.pools {
		for _, other := range s.m.pools[i].nodes[:s.started[i]] {
			if other == node {
				s.busy[i]--
				r.add(cordon, i)
			}
		}
	}
	r.wake(place)
	r.rested = true
}

// evict requests the eviction of a pod (kubernetes pkg/registry/core/pod/storage/eviction.go), and
// reports whether the request need not be repeated.
func (r *run) evict(at int) bool {
	p := &r.s.pods[at]
	if p.gone || p.leaving {
		return true
	}
	if !r.granted(p) {
		return false
	}
	r.leave(at)
	return true
}

// granted is the answer to an eviction. The API server reads no budget for a pod in phase Pending, and
// refuses the eviction of one with several budgets.
func (r *run) granted(p *pod) bool {
	budgets := r.s.m.templates[p.template].budgets
	switch {
	case !p.running, len(budgets) == 0:
		return true
	case len(budgets) > 1:
		return false
	}
	spec, status := &r.s.m.budgets[budgets[0]], &r.s.budgets[budgets[0]]
	if !p.ready && (spec.alwaysAllow || (status.healthy >= status.desired && status.desired > 0)) {
		return true
	}
	if status.allowed <= 0 {
		return false
	}
	status.allowed--
	status.disrupted = append(status.disrupted, p.name)
	r.add(count, budgets[0])
	return true
}
