package reference

import (
	"math/rand/v2"
)

// kind is what a step does.
type kind int

const (
	cordon kind = iota // the next node of a pool
	evict              // a pod
	finish             // the drain of a node
	count              // the pods of a budget
	expire             // the entries of a budget of pods that were not deleted
	create             // a pod of a controller
	place              // a pod
	start              // a pod
	ready              // a pod
	end                // a pod
	kinds
)

// run is one order of the steps.
type run struct {
	s      *state
	random *rand.Rand
	// possible are the steps that may change something, by kind, as positions of what they are about;
	// waiting are those that did not, and listed is true for both.
	possible, waiting [kinds][]int
	listed            [kinds][]bool
	// weights are how likely each kind of step is the next one: in some runs the scheduler is slow, in
	// others the kubelets are.
	weights [kinds]int
	// scoring is whether the scheduler prefers nodes as its default profile does, or none.
	scoring bool
	// rested is true from when a node returns until all pods were tried to be placed.
	rested bool
}

func newRun(s *state, random *rand.Rand) *run {
	r := &run{s: s, random: random, scoring: random.IntN(2) == 0}
	const paces = 6
	for i := range r.weights {
		r.weights[i] = 1 << random.IntN(paces)
	}
	return r
}

// add makes a step possible, unless it is listed already.
func (r *run) add(of kind, at int) {
	for len(r.listed[of]) <= at {
		r.listed[of] = append(r.listed[of], false)
	}
	if !r.listed[of][at] {
		r.listed[of][at] = true
		r.possible[of] = append(r.possible[of], at)
	}
}

// wake makes the steps of a kind possible that wait.
func (r *run) wake(of kind) {
	r.possible[of] = append(r.possible[of], r.waiting[of]...)
	r.waiting[of] = r.waiting[of][:0]
}

// toEnd makes steps until none is possible.
func (r *run) toEnd() error {
	const most = 1_000_000
	for range most {
		of := r.next()
		if of == kinds {
			return nil
		}
		chosen := r.choice(of)
		at := r.possible[of][chosen]
		last := len(r.possible[of]) - 1
		r.possible[of][chosen], r.possible[of] = r.possible[of][last], r.possible[of][:last]
		r.listed[of][at] = false
		if !r.step(of, at) {
			r.listed[of][at] = true
			r.waiting[of] = append(r.waiting[of], at)
		}
	}
	return errEndless
}

// choice is the position of the next step of a kind among those that are possible. Once a node has
// returned, the most important pods are placed first: the back-offs of all have ended by then.
func (r *run) choice(of kind) int {
	chosen := r.random.IntN(len(r.possible[of]))
	if of != place || !r.rested {
		return chosen
	}
	for i, at := range r.possible[place] {
		if r.s.priority(at) > r.s.priority(r.possible[place][chosen]) {
			chosen = i
		}
	}
	r.rested = len(r.possible[place]) > 1
	return chosen
}

// next is the kind of the next step.
func (r *run) next() kind {
	total := 0
	for of := range kinds {
		if r.enabled(of) {
			total += r.weights[of]
		}
	}
	if total == 0 {
		return kinds
	}
	chosen := r.random.IntN(total)
	for of := range kinds {
		if !r.enabled(of) {
			continue
		}
		if chosen -= r.weights[of]; chosen < 0 {
			return of
		}
	}
	return kinds
}

// step makes a step, and reports false for one that has to wait.
func (r *run) step(of kind, at int) bool {
	switch of {
	case cordon:
		r.cordon(at)
	case evict:
		return r.evict(at)
	case finish:
		r.finish(at)
	case count:
		r.count(at)
	case expire:
		r.expire(at)
	case create:
		return r.create(at)
	case place:
		return r.place(at)
	case start:
		return r.start(at)
	case ready:
		r.ready(at)
	case end:
		r.end(at)
	case kinds:
	}
	return true
}

// enabled reports whether a step of a kind is possible. A node that is drained returns after minutes, and
// the machine-config-operator takes seconds to the next one: by then the controllers and the scheduler
// have made the steps that are possible for them, the longest back-off of which is ten seconds.
func (r *run) enabled(of kind) bool {
	if (of == finish || of == cordon) && len(r.possible[create])+len(r.possible[place])+len(r.possible[count]) > 0 {
		return false
	}
	// The kubelet ends a pod after a second at least: by then all evictions of its node were requested, and the
	// controllers that create a pod when the deletion of another begins, and the scheduler, have done so.
	if of == end && len(r.possible[evict])+len(r.possible[create])+len(r.possible[place]) > 0 {
		return false
	}
	return len(r.possible[of]) > 0
}
