package comparison

import (
	"fmt"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// Sample is in how many orders of its steps the drains of a cluster do not end as rehearsed.
type Sample struct{ Orders, Wrong, Unsafe int }

// Add adds how the drains ended in one order.
func (s *Sample) Add(predicted *Prediction, ended lab.Outcome) {
	s.Orders++
	if len(predicted.Wrong(ended)) > 0 {
		s.Wrong++
	}
	if len(predicted.Unsafe(ended)) > 0 {
		s.Unsafe++
	}
}

// Rare reports whether few orders disagree. A rehearsal tries some thirty of all orders, so that one
// may be missing in which the last room of a node that returns is taken by other pods than in those;
// and it takes new pods for ready at once, so that a budget may allow to preempt other pods than in a
// cluster. A pool that is predicted to be clear must be clear in three of four orders, and all else be
// right in half of them.
func (s Sample) Rare() bool {
	const unsafe, wrong = 4, 2
	return s.Unsafe*unsafe <= s.Orders && s.Wrong*wrong <= s.Orders
}

// String is the numbers in words.
func (s Sample) String() string {
	return fmt.Sprintf("of %d orders, %d disagree with the rehearsal, in %d of which a pool sticks that was predicted to be clear", s.Orders,
		s.Wrong, s.Unsafe)
}
