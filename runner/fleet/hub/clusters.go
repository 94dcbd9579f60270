package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/openshift/update-preflight/collector/words"
)

const clusterGroup = "cluster.open-cluster-management.io"

// The claims of a ManagedCluster that ACM's agent makes, and the label of the hub itself.
const (
	claimID      = "id.openshift.io"
	claimVersion = "version.openshift.io"
	labelLocal   = "local-cluster"
)

type managedCluster struct {
	name, id string
	// version is the newest that the cluster has completed, as of the last time that it answered.
	version string
	labels  map[string]string
	local   bool
	// absent is why there is no cluster, and silent why it does not answer; empty for neither.
	absent, silent string
	// clock is why the times of the cluster cannot be compared; empty where they can.
	clock  string
	shared bool
}

func clusterOf(object clusterv1.ManagedCluster) managedCluster {
	of := managedCluster{name: object.Name, labels: object.Labels, local: object.Labels[labelLocal] == "true"}
	for _, claim := range object.Status.ClusterClaims {
		switch claim.Name {
		case claimID:
			of.id = claim.Value
		case claimVersion:
			of.version = claim.Value
		}
	}
	conditions := object.Status.Conditions
	available := meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case !object.DeletionTimestamp.IsZero():
		of.absent = "the cluster is being removed from the hub"
	case !meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionHubAccepted):
		of.absent = "the hub has not accepted the cluster"
	case !meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined):
		of.absent = "the cluster has not joined the hub"
	case available == nil:
		of.silent = "the cluster has never answered the hub"
	case available.Status != metav1.ConditionTrue:
		of.silent = fmt.Sprintf("the cluster has not answered the hub since %s (%s): what the hub has of it is older",
			words.Time(available.LastTransitionTime.Time), words.External(available.Reason))
	}
	if meta.IsStatusConditionFalse(conditions, clusterv1.ManagedClusterConditionClockSynced) {
		of.clock = "the clock of the cluster differs from that of the hub, so it is unknown whether its verdict holds"
	}
	return of
}

type reader struct{ client dynamic.Interface }

// pageSize bounds a page of a list; maxObjects bounds the pages of one.
const pageSize, maxObjects = 500, 50_000

func (r reader) each(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions, do func(unstructured.Unstructured) error) error {
	options.Limit = pageSize
	for read := 0; ; {
		page, err := r.client.Resource(resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("could not list the %s of the hub: %w", resource.Resource, err)
		}
		for _, object := range page.Items {
			if err := do(object); err != nil {
				return err
			}
		}
		if read += len(page.Items); read > maxObjects {
			return fmt.Errorf("the hub has more than %d %s", maxObjects, resource.Resource)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// into decodes an object. One that is not of its type is an error: the API server validates it.
func into(object map[string]any, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object, to)
}

func (r reader) managed(ctx context.Context) (map[string]managedCluster, error) {
	found := map[string]managedCluster{}
	err := r.each(ctx, clusterv1.GroupVersion.WithResource("managedclusters"), "", metav1.ListOptions{}, func(object unstructured.Unstructured) error {
		var typed clusterv1.ManagedCluster
		if err := into(object.Object, &typed); err != nil {
			return fmt.Errorf("the ManagedCluster %s cannot be read: %w", object.GetName(), err)
		}
		found[typed.Name] = clusterOf(typed)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil, errNotHub
	}
	return found, err
}

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
