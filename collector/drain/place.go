package drain

import (
	"cmp"
	"fmt"
	"slices"
)

// place places the pods that are without a node, those of the highest priority first, and those that
// their controllers can create now. Pods that are created when the old ones are gone come after all that
// were evicted with them. It reports whether one has got a node.
func (r *run) place() bool {
	if len(r.pending) == 0 {
		return false
	}
	r.shuffle(r.pending)
	slices.SortStableFunc(r.pending, func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.arrivesLast(a), r.arrivesLast(b)), cmp.Compare(r.now.shape(int(b)).Priority, r.now.shape(int(a)).Priority),
			r.choices.compare(&r.now.live[a], &r.now.live[b]))
	})
	waiting := r.pending
	r.pending = nil
	placed, rest := r.placeInOrder(waiting)
	// Preempted pods are pending now, too.
	r.pending = append(r.pending, rest...)
	return placed
}

// arrivesLast is 1 for a pod that is created when the pods that were evicted at the same time have been
// placed, else 0.
func (r *run) arrivesLast(at int32) int {
	controller := r.m.pods[at].controller
	if r.now.live[at].since == r.since() && controller >= 0 && r.m.controllers[controller].Late {
		return 1
	}
	return 0
}

// placeInOrder places pods in this order, and returns those that have no node.
func (r *run) placeInOrder(waiting []int32) (placed bool, rest []int32) {
	failed := map[int]bool{} // controllers of which a pod found no node
	for _, at := range waiting {
		if r.now.live[at].gone {
			continue // its Job has failed meanwhile
		}
		if r.evicting && r.arrivesLast(at) > 0 || !r.create(int(at)) {
			rest = append(rest, at)
			continue
		}
		controller, shape := r.m.pods[at].controller, r.now.shape(int(at))
		if r.m.pods[at].alike && failed[controller] && shape.Impossible == "" && shape.Unknown == "" {
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
	return placed, rest
}

// compare orders pods by the time since when they are without a node. In half of the random orders, any of
// them may be the first.
func (c choices) compare(a, b *live) int {
	since := cmp.Compare(a.since, b.since)
	switch {
	case c.shuffled && c.seed%2 == 0:
		return 0
	case c.newest:
		return -since
	}
	return since
}

func (r *run) placeOne(at int) bool {
	of, l := r.now.shape(at), &r.now.live[at]
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

// create has the controller of a pod create what comes in its place, and reports whether it exists.
func (r *run) create(at int) bool {
	l := &r.now.live[at]
	if l.created {
		return true
	}
	failed := func(why string) bool {
		if l.why = why; !l.absent {
			l.absent = true
			r.now.exists(at, -1)
		}
		return false
	}
	if before := r.now.predecessor(at); before != "" {
		return failed(fmt.Sprintf("its StatefulSet creates it once pod %q is ready", before))
	}
	if by, why, ok := r.now.quotas.Admit(r.m.pods[at].recreation.Charges); !ok {
		return failed(by + " refuses it: it " + why)
	}
	l.created = true
	if l.absent {
		l.absent = false
		r.now.exists(at, 1)
	}
	return true
}
