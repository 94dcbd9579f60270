package comparison

import (
	"fmt"
	"maps"
	"slices"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// Range is how the drains of a cluster can end: the nodes at which they stick, and of each controller
// the least and the most pods without a node.
type Range struct {
	orders int
	stuck  map[string]bool
	absent map[string]bounds
}

type bounds struct{ least, most, orders int }

// Add adds how the drains ended in one order.
func (r *Range) Add(ended lab.Outcome) {
	if r.orders++; r.orders == 1 {
		r.stuck, r.absent = map[string]bool{}, map[string]bounds{}
	}
	r.stuck[fmt.Sprint(ended.Stuck)] = true
	for name, number := range ended.Absent {
		of, known := r.absent[name]
		if !known {
			of.least = number
		}
		r.absent[name] = bounds{min(of.least, number), max(of.most, number), of.orders + 1}
	}
}

// Excludes is what of an end of the drains is outside, in words; empty if it is in the range.
func (r *Range) Excludes(ended lab.Outcome) string {
	if !r.stuck[fmt.Sprint(ended.Stuck)] {
		return fmt.Sprintf("sticks at %v, foreseen %v", ended.Stuck, slices.Sorted(maps.Keys(r.stuck)))
	}
	for _, name := range slices.Sorted(maps.Keys(ended.Absent)) {
		if _, known := r.absent[name]; !known {
			return fmt.Sprintf("%d pods of %s are without a node, foreseen none", ended.Absent[name], name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.absent)) {
		of, got := r.absent[name], ended.Absent[name]
		if of.orders < r.orders {
			of.least = 0
		}
		if got < of.least || got > of.most {
			return fmt.Sprintf("%d pods of %s are without a node, foreseen %d to %d", got, name, of.least, of.most)
		}
	}
	return ""
}
