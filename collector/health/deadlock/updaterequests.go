package deadlock

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
)

func readsRequests() []access.Request {
	return []access.Request{
		check.List("", "namespaces"), check.List("", "pods"), check.List("", "nodes"), check.List(configv1.GroupName, "clusteroperators"),
	}
}

type updateRequests struct {
	matcher *admission.Matcher
	groups  []admission.Group
	// heartbeats are the groups by which kubelets report their nodes.
	heartbeats []admission.Group
	// replicas are pods of all namespaces, one of each controller.
	replicas []metav1.PartialObjectMetadata
	node     string
	nodes    int
}

// definitions are CustomResourceDefinitions that every update applies.
func definitions() []string {
	return []string{"clusteroperators.config.openshift.io", "clusterversions.config.openshift.io"}
}

func requestsOf(ctx context.Context, cluster *snapshot.Cluster) (*updateRequests, error) {
	namespaces, err := cluster.Namespaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the namespaces: %w", err)
	}
	replicas, err := cluster.Replicas(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the pods: %w", err)
	}
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the nodes: %w", err)
	}
	operators, err := cluster.ClusterOperators(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("could not list the ClusterOperators: %w", err)
	}
	found := &updateRequests{matcher: admission.NewMatcher(namespaces), replicas: replicas, nodes: len(nodes)}
	var nodeNames, operatorNames []metav1.PartialObjectMetadata
	for i := range nodes {
		found.node = nodes[i].Name
		nodeNames = append(nodeNames, named(nodes[i].ObjectMeta))
	}
	for i := range operators {
		operatorNames = append(operatorNames, named(operators[i].ObjectMeta))
	}
	found.groups = groupsOf(replicas, nodeNames, operatorNames)
	found.heartbeats = []admission.Group{admission.RenewLeases(nodeNames), admission.ReportNodes(nodeNames)}
	return found, nil
}

// named is what is known of an object in a request.
func named(object metav1.ObjectMeta) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Labels: object.Labels}}
}

// groupsOf are the requests of an update. Pods of all namespaces are evicted and
// deleted; those of other namespaces than the cluster's own may stay away during the
// update.
func groupsOf(replicas, nodes, operators []metav1.PartialObjectMetadata) []admission.Group {
	var own, drained []metav1.PartialObjectMetadata
	for i := range replicas {
		if check.OfCluster(replicas[i].Namespace) {
			own = append(own, replicas[i])
		}
		if owner := metav1.GetControllerOfNoCopy(&replicas[i]); owner == nil || owner.Kind != "DaemonSet" && owner.Kind != "Node" {
			drained = append(drained, replicas[i])
		}
	}
	node := ""
	if len(nodes) > 0 {
		node = nodes[0].Name
	}
	groups := []admission.Group{
		admission.CreatePods(own, node), admission.BindPods(own), admission.ReportPods(own, node),
		admission.EvictPods(drained), admission.DeletePods(drained, node),
		admission.CordonNodes(nodes), admission.ReportNodes(nodes), admission.RenewLeases(nodes),
		admission.UpdateOperators("", operators), admission.UpdateOperators("status", operators),
	}
	if len(operators) > 0 {
		groups = append(groups, admission.UpdateDefinitions(definitions()...))
	}
	return groups
}
