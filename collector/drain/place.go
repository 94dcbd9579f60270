package drain

import (
	"cmp"
	"slices"
)

// place places the pods that are without a node, those of the highest priority first. It
// reports whether one has got a node.
func (r *run) place() bool {
	if len(r.pending) == 0 {
		return false
	}
	placed := false
	r.shuffle(r.pending)
	slices.SortStableFunc(r.pending, func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.m.cluster.Pods[b].Priority, r.m.cluster.Pods[a].Priority), r.choices.compare(&r.now.live[a], &r.now.live[b]))
	})
	waiting := r.pending
	r.pending = nil
	failed := map[int]bool{} // controllers of which a pod found no node
	var rest []int32
	for _, at := range waiting {
		controller := r.m.pods[at].controller
		if r.m.pods[at].alike && failed[controller] && r.m.cluster.Pods[at].Impossible == "" && r.m.cluster.Pods[at].Unknown == "" {
			r.now.live[at].why = "as another pod of its controller"
			rest = append(rest, at)
			continue
		}
		if r.placeOne(int(at)) {
			placed = true
			clear(failed)
			continue
		}
		failed[controller] = true
		rest = append(rest, at)
	}
	// Preempted pods are pending now, too.
	r.pending = append(r.pending, rest...)
	return placed
}

// compare orders pods by the time since when they are without a node, unless they are shuffled.
func (c choices) compare(a, b *live) int {
	since := cmp.Compare(a.since, b.since)
	switch {
	case c.shuffled:
		return 0
	case c.newest:
		return -since
	}
	return since
}

func (r *run) placeOne(at int) bool {
	of, l := &r.m.cluster.Pods[at], &r.now.live[at]
	if of.Impossible != "" {
		l.why = of.Impossible
		return false
	}
	if of.Unknown != "" && !r.choices.hopeful {
		l.why = of.Unknown
		return false
	}
	node, rejected := r.now.state.Find(of, r.choices.preference, r.random)
	if node < 0 && r.choices.hopeful && !of.Polite && of.Priority > r.m.lowest {
		node = r.preempt(at)
	}
	if node < 0 {
		l.why = rejected.String()
		return false
	}
	r.now.arrive(at, node, r.choices.hopeful)
	return true
}
