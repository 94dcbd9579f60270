package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// placed are the clusters that the Placement of a query selects, each with its decision group; nil
// without a Placement. incomplete is why some may be missing.
func (r reader) placed(ctx context.Context, query Query) (placed map[string]string, incomplete string, err error) {
	placement := query.Placement
	if placement.Name == "" {
		return nil, "", nil
	}
	placements := r.client.Resource(clusterv1beta1.GroupVersion.WithResource("placements")).Namespace(placement.Namespace)
	object, err := placements.Get(ctx, placement.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", errNoPlacement(placement)
	}
	if err != nil {
		return nil, "", fmt.Errorf("could not read the Placement %s: %w", placement, err)
	}
	var typed clusterv1beta1.Placement
	if err := into(object.Object, &typed); err != nil {
		return nil, "", fmt.Errorf("the Placement %s cannot be read: %w", placement, err)
	}
	placed = map[string]string{}
	options := metav1.ListOptions{LabelSelector: clusterv1beta1.PlacementLabel + "=" + placement.Name}
	err = r.each(ctx, clusterv1beta1.GroupVersion.WithResource("placementdecisions"), placement.Namespace, options, func(object unstructured.Unstructured) error {
		var typed clusterv1beta1.PlacementDecision
		if err := into(object.Object, &typed); err != nil {
			return fmt.Errorf("the PlacementDecision %s cannot be read: %w", object.GetName(), err)
		}
		for _, decision := range typed.Status.Decisions {
			if name := strings.TrimSpace(decision.ClusterName); name != "" {
				placed[name] = typed.Labels[clusterv1beta1.DecisionGroupNameLabel]
			}
		}
		return nil
	})
	return placed, dropping(typed), err
}

// dropping is why a Placement drops the clusters that do not answer; empty where it keeps them. OCM
// taints such a cluster, and a Placement without a toleration does not select it.
func dropping(placement clusterv1beta1.Placement) string {
	for _, taint := range []string{clusterv1.ManagedClusterTaintUnreachable, clusterv1.ManagedClusterTaintUnavailable} {
		tolerated := slices.ContainsFunc(placement.Spec.Tolerations, func(each clusterv1beta1.Toleration) bool {
			all := each.Operator == clusterv1beta1.TolerationOpExists
			effective := each.TolerationSeconds == nil && (each.Effect == "" || each.Effect == clusterv1.TaintEffectNoSelect)
			return effective && (all && each.Key == "" || each.Key == taint && (all || each.Value == ""))
		})
		if !tolerated {
			return fmt.Sprintf("the Placement %s/%s drops clusters that do not answer: add a toleration of %s (operator: Exists) to it", placement.Namespace, placement.Name, taint)
		}
	}
	return ""
}
