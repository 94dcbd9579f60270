package reference

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// changed has a budget counted again.
func (r *run) changed(budget int) { r.add(count, budget) }

// count computes the status of a budget (kubernetes pkg/controller/disruption, trySync).
func (r *run) count(at int) {
	s, spec, status := r.s, &r.s.m.budgets[at], &r.s.budgets[at]
	before := *status
	if !s.expect(spec, status) {
		// The other numbers are those before.
		status.allowed, status.failure = 0, "a controller of its pods has no scale"
		return
	}
	status.failure, status.healthy = "", 0
	var disrupted []string
	for _, template := range spec.templates {
		for _, each := range s.existing[template] {
			p := &s.pods[each]
			switch {
			case p.leaving:
			case slices.Contains(status.disrupted, p.name):
				// Of a pod that was evicted, or a new one of the same name.
				disrupted = append(disrupted, p.name)
			case p.ready:
				status.healthy++
			}
		}
	}
	if status.disrupted = disrupted; len(disrupted) > 0 {
		r.add(expire, at)
	}
	status.allowed = 0
	if status.expected > 0 {
		status.allowed = max(0, status.healthy-status.desired)
	}
	if status.allowed != before.allowed || status.healthy != before.healthy || status.desired != before.desired {
		r.wake(evict)
	}
}

// expire forgets the pods of a budget that were evicted and exist all the same: after two minutes.
func (r *run) expire(at int) {
	r.s.budgets[at].disrupted = nil
	r.changed(at)
}

// expect computes how many pods a budget expects, and how many of them have to be healthy. It reports
// false if a controller has no scale.
func (s *state) expect(spec *budgetSpec, status *budget) bool {
	if spec.minAvailable != nil && spec.minAvailable.Type == intstr.Int {
		status.desired, status.expected = spec.minAvailable.IntVal, 0
		for _, template := range spec.templates {
			status.expected += int32(len(s.existing[template])) //nolint:gosec // few
		}
		return true
	}
	scale := 0
	for _, template := range spec.templates {
		if len(s.existing[template]) == 0 {
			continue
		}
		controller := s.pods[s.existing[template][0]].controller
		switch {
		case controller < 0: // the pod is not expected
		case s.m.controllers[controller].kind == daemonSet:
			return false
		default:
			scale += s.m.controllers[controller].replicas
		}
	}
	status.expected = int32(scale)
	if spec.maxUnavailable != nil {
		status.desired = max(0, status.expected-scaled(spec.maxUnavailable, scale))
	} else {
		status.desired = scaled(spec.minAvailable, scale)
	}
	return true
}

// scaled is a number of that many, a percentage rounded up. The API server has validated it.
func scaled(number *intstr.IntOrString, of int) int32 {
	value, err := intstr.GetScaledValueFromIntOrPercent(number, of, true)
	if err != nil {
		return 0
	}
	return int32(value) //nolint:gosec // few
}
