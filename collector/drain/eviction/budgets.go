package eviction

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budgets finds the budgets that select a pod. Each is indexed by one label that it requires,
// so that a pod is not compared with all.
type Budgets struct {
	byNamespace map[string]*selection
	// Invalid are the budgets whose selector cannot be parsed, as namespace/name, in the
	// given order. The API server takes them for budgets that select nothing.
	Invalid []string
}

type selection struct {
	byLabel map[string][]selector
	// others require no particular label.
	others []selector
}

type selector struct {
	labels labels.Selector
	at     int
}

// NewBudgets indexes budgets. A selector {} selects all pods of the namespace, and none selects none (policy/v1).
func NewBudgets(budgets []policyv1.PodDisruptionBudget) *Budgets {
	index := &Budgets{byNamespace: map[string]*selection{}}
	for i := range budgets {
		budget := &budgets[i]
		matching, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			index.Invalid = append(index.Invalid, budget.Namespace+"/"+budget.Name)
			continue
		}
		in := index.byNamespace[budget.Namespace]
		if in == nil {
			in = &selection{byLabel: map[string][]selector{}}
			index.byNamespace[budget.Namespace] = in
		}
		in.add(budget.Spec.Selector, selector{labels: matching, at: i})
	}
	return index
}

func (s *selection) add(of *metav1.LabelSelector, added selector) {
	if of != nil {
		for key, value := range of.MatchLabels {
			label := key + "=" + value
			s.byLabel[label] = append(s.byLabel[label], added)
			return
		}
	}
	s.others = append(s.others, added)
}

// Of are the positions, in the list of NewBudgets, of the budgets that select a pod with these labels, sorted.
func (b *Budgets) Of(namespace string, pod map[string]string) []int {
	in := b.byNamespace[namespace]
	if in == nil {
		return nil
	}
	var found []int
	add := func(candidates []selector) {
		for _, candidate := range candidates {
			if candidate.labels.Matches(labels.Set(pod)) {
				found = append(found, candidate.at)
			}
		}
	}
	add(in.others)
	if len(in.byLabel) > 0 {
		for key, value := range pod {
			add(in.byLabel[key+"="+value])
		}
	}
	slices.Sort(found)
	return found
}
