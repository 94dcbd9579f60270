package placement

import (
	"math/rand/v2"
)

// Preference is which of the suitable nodes a pod is placed on.
type Preference int

// The preferences.
const (
	// Emptiest approximates the scores of the default profile: free resources, and few pods of the same controller.
	Emptiest Preference = iota
	// Fullest prefers the nodes with the least free resources, as the profile HighNodeUtilization does.
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
	from := random.IntN(nodes)
	scores := s.scores(pod, preference)
	best, bestScore := -1, int64(0)
	for i := range nodes {
		node := from + i
		if node >= nodes {
			node -= nodes
		}
		// Most nodes are not better, which takes less time to find out than whether they are suitable.
		score := scores.of(node)
		if best >= 0 && score <= bestScore {
			continue
		}
		if why := s.reject(pod, node, skews); why != None {
			rejected[why]++
			continue
		}
		if best, bestScore = node, score; preference == Any {
			break
		}
	}
	if best >= 0 {
		return best, Rejections{}
	}
	return best, rejected
}

// scores are how well the nodes suit a pod; more is better.
type scores struct {
	// free is the free share of each node, in percent, and weight how it counts.
	free   []int64
	weight int64
	// siblings are the pods of the same controller on each node; nil where they do not count.
	siblings []int16
}

func (s *State) scores(pod *Pod, preference Preference) scores {
	scores := scores{free: s.free}
	switch preference {
	case Any:
	case Fullest:
		scores.weight = -1
	case Emptiest:
		scores.weight = 1
		if pod.owner >= 0 {
			scores.siblings = s.siblings[pod.owner]
		}
	}
	return scores
}

func (s *scores) of(node int) int64 {
	score := s.weight * s.free[node]
	if s.siblings != nil {
		score -= siblingWeight * int64(s.siblings[node])
	}
	return score
}

const (
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
