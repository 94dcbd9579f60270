package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

const (
	// maxNamespaces bounds the namespaces whose pods are listed separately; for more,
	// one list of all pods is cheaper.
	maxNamespaces = 10
	// maxPods bounds the pods that are listed: three times as many as Kubernetes
	// supports. No pod is kept.
	maxPods = 500_000
	// maxNamedBudgets bounds the PodDisruptionBudgets of a pod that are named.
	maxNamedBudgets = 5
	// evictable selects pods to which PodDisruptionBudgets apply
	// (kubernetes pkg/registry/core/pod/storage/eviction.go, canIgnorePDB).
	evictable = "status.phase!=Pending,status.phase!=Succeeded,status.phase!=Failed"
)

// PodDisruptionBudgets are all PodDisruptionBudgets, sorted by namespace and name,
// without their labels, their annotations and the pods that are being evicted.
func (c *Cluster) PodDisruptionBudgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	return once(ctx, c, "budgets", func(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.PolicyV1().PodDisruptionBudgets(corev1.NamespaceAll).List(ctx, options)
		}, func(budget *policyv1.PodDisruptionBudget) {
			budget.Labels, budget.Annotations, budget.Status.DisruptedPods = nil, nil, nil
		})
	})
}

// Contention is pods that several PodDisruptionBudgets select, and that therefore
// cannot be evicted.
type Contention struct {
	Namespace string
	// Budgets are the names of the first few, sorted; at least two.
	Budgets []string
	// Pods counts the pods, Pod is the name of one pod.
	Pods int
	Pod  string
}

// Contentions are all contentions, sorted by namespace and budgets. Pods are listed
// only in namespaces whose budgets may overlap, and only their metadata is read. Pods
// that a drain does not evict, those of DaemonSets and of the node itself, do not
// count.
func (c *Cluster) Contentions(ctx context.Context) ([]Contention, error) {
	return once(ctx, c, "contentions", func(ctx context.Context) ([]Contention, error) {
		budgets, err := c.PodDisruptionBudgets(ctx)
		if err != nil {
			return nil, fmt.Errorf("could not list the PodDisruptionBudgets: %w", err)
		}
		selections, err := overlapping(budgets)
		if err != nil {
			return nil, err
		}
		namespaces := slices.Sorted(maps.Keys(selections))
		if len(namespaces) > maxNamespaces {
			namespaces = []string{corev1.NamespaceAll}
		}
		found := contentions{}
		for _, namespace := range namespaces {
			err := c.eachPod(ctx, namespace, func(pod *metav1.PartialObjectMetadata) {
				if drained(pod) {
					found.add(pod, selections[pod.Namespace].of(pod.Labels))
				}
			})
			if err != nil {
				return nil, fmt.Errorf("could not list the pods that several PodDisruptionBudgets may select: %w", err)
			}
		}
		return found.sorted(), nil
	})
}

// eachPod calls do for the metadata of each pod that runs.
func (c *Cluster) eachPod(ctx context.Context, namespace string, do func(*metav1.PartialObjectMetadata)) error {
	pods := c.api.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.FieldSelector = evictable
		return pods.List(ctx, options)
	})
	pages.PageBufferSize = 1
	count := 0
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		if count++; count > maxPods {
			return fmt.Errorf("the cluster has more than %d pods", maxPods)
		}
		if pod, ok := item.(*metav1.PartialObjectMetadata); ok {
			do(pod)
		}
		return nil
	})
}

// drained reports whether a drain evicts the pod.
func drained(pod *metav1.PartialObjectMetadata) bool {
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok || pod.DeletionTimestamp != nil {
		return false
	}
	owner := metav1.GetControllerOf(pod)
	return owner == nil || owner.Kind != "DaemonSet"
}

// selection finds the budgets of one namespace that select a pod. Each is indexed by
// one label that it requires, so that a pod is not compared with all.
type selection struct {
	byLabel map[string][]selector
	// others require no particular label.
	others []selector
}

type selector struct {
	budget string
	labels labels.Selector
}

// overlapping are the selections of the namespaces in which budgets may select the
// same pods.
func overlapping(budgets []policyv1.PodDisruptionBudget) (map[string]*selection, error) {
	byNamespace := map[string][]*policyv1.PodDisruptionBudget{}
	for i := range budgets {
		if selectsSome(&budgets[i]) {
			byNamespace[budgets[i].Namespace] = append(byNamespace[budgets[i].Namespace], &budgets[i])
		}
	}
	found := map[string]*selection{}
	for namespace, budgets := range byNamespace {
		if disjoint(budgets) {
			continue
		}
		selection, err := selectionOf(budgets)
		if err != nil {
			return nil, err
		}
		found[namespace] = selection
	}
	return found, nil
}

// selectsSome reports whether a budget may select pods.
func selectsSome(budget *policyv1.PodDisruptionBudget) bool {
	status := budget.Status
	stale := status.ObservedGeneration < budget.Generation
	return budget.Spec.Selector != nil && (stale || status.ExpectedPods > 0 || status.CurrentHealthy > 0)
}

// disjoint reports whether no two of these budgets can select the same pod: each
// requires another value of one label.
func disjoint(budgets []*policyv1.PodDisruptionBudget) bool {
	for key := range budgets[0].Spec.Selector.MatchLabels {
		values := map[string]bool{}
		for _, budget := range budgets {
			if value, ok := budget.Spec.Selector.MatchLabels[key]; ok {
				values[value] = true
			}
		}
		if len(values) == len(budgets) {
			return true
		}
	}
	return len(budgets) == 1
}

func selectionOf(budgets []*policyv1.PodDisruptionBudget) (*selection, error) {
	found := &selection{byLabel: map[string][]selector{}}
	for _, budget := range budgets {
		matching, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("the selector of PodDisruptionBudget %s/%s is invalid: %w", budget.Namespace, budget.Name, err)
		}
		selector := selector{budget: budget.Name, labels: matching}
		label := anyLabel(budget.Spec.Selector)
		if label == "" {
			found.others = append(found.others, selector)
			continue
		}
		found.byLabel[label] = append(found.byLabel[label], selector)
	}
	return found, nil
}

// anyLabel is any label that a selector requires, or empty.
func anyLabel(selector *metav1.LabelSelector) string {
	for key, value := range selector.MatchLabels {
		return key + "=" + value
	}
	return ""
}

// of are the names of the budgets that select a pod with these labels, sorted.
func (s *selection) of(pod map[string]string) []string {
	if s == nil {
		return nil
	}
	var names []string
	add := func(candidates []selector) {
		for _, candidate := range candidates {
			if candidate.labels.Matches(labels.Set(pod)) {
				names = append(names, candidate.budget)
			}
		}
	}
	add(s.others)
	for key, value := range pod {
		add(s.byLabel[key+"="+value])
	}
	slices.Sort(names)
	return names
}

// contentions are those found so far, by namespace and the first two budgets.
type contentions map[[3]string]*Contention

func (c contentions) add(pod *metav1.PartialObjectMetadata, budgets []string) {
	if len(budgets) < 2 {
		return
	}
	key := [3]string{pod.Namespace, budgets[0], budgets[1]}
	if c[key] == nil {
		named := slices.Clone(budgets[:min(len(budgets), maxNamedBudgets)])
		c[key] = &Contention{Namespace: pod.Namespace, Budgets: named, Pod: strings.Clone(pod.Name)}
	}
	c[key].Pods++
}

func (c contentions) sorted() []Contention {
	found := make([]Contention, 0, len(c))
	for _, contention := range c {
		found = append(found, *contention)
	}
	slices.SortFunc(found, func(a, b Contention) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), slices.Compare(a.Budgets, b.Budgets))
	})
	return found
}
