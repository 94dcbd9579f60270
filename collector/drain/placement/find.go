package placement

import (
	"math/rand/v2"
)

// Preference is which of the suitable nodes a pod is placed on.
type Preference int

// The preferences.
const (
	// Emptiest approximates the scores of the default profile: free resources, and few pods
	// of the same controller.
	Emptiest Preference = iota
	// Fullest prefers the nodes with the least free resources, as the profile
	// HighNodeUtilization does.
	Fullest
	// Any takes all suitable nodes for equal.
	Any
)

// Find is a suitable node for a pod, or -1 and why each node is not. The source of random
// numbers decides between equal nodes: they are tried from a random one on.
func (s *State) Find(pod *Pod, preference Preference, random *rand.Rand) (int, Rejections) {
	var rejected Rejections
	nodes := len(s.c.nodes)
	if nodes == 0 {
		return -1, rejected
	}
	pod.class.evaluate(s.c.nodes)
	skews := s.skews(pod)
	best, bestScore := -1, int64(0)
	from := random.IntN(nodes)
	for i := range nodes {
		node := from + i
		if node >= nodes {
			node -= nodes
		}
		if why := s.reject(pod, node, skews); why != None {
			rejected[why]++
			continue
		}
		if preference == Any {
			return node, rejected
		}
		if score := s.score(pod, node, preference); best < 0 || score > bestScore {
			best, bestScore = node, score
		}
	}
	return best, rejected
}

// score is how well a node suits; more is better.
func (s *State) score(pod *Pod, node int, preference Preference) int64 {
	switch {
	case preference == Fullest:
		return -s.free[node]
	case pod.owner < 0:
		return s.free[node]
	}
	return s.free[node] - siblingWeight*int64(s.siblings[pod.owner][node])
}

const (
	// percent is the scale of scores.
	percent = 100
	// siblingWeight is how much a pod of the same controller on a node counts.
	siblingWeight = 60
)

// share is how much of the processors and the memory of a node is free, in percent.
func (s *State) share(node int) int64 {
	var sum, counted int64
	for _, at := range []int{processors, memory} {
		if room := s.c.room[node][at]; room > 0 {
			sum += (room - s.used[node][at]) * percent / room
			counted++
		}
	}
	if counted == 0 {
		return 0
	}
	return sum / counted
}
