package roster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/runner/fleet"
)

// HostedNeeds are the permissions to list the hosted clusters of a management cluster.
func HostedNeeds() access.Needs {
	return access.Needs{Required: []access.Request{{Verb: "list", Group: hypershift.Group, Resource: "hostedclusters"}}}
}

// Hosted are the hosted clusters (HyperShift) of a management cluster, each with the estate of the
// management cluster. An *input.Error is about a cluster without HyperShift.
func Hosted(ctx context.Context, management *cluster.Cluster, connect Connect) ([]Member, error) {
	objects, err := listAll(ctx, management, hypershift.GroupVersion().WithResource("hostedclusters"))
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(objects))
	for i := range objects {
		object := &objects[i]
		of := memberOf(object, "HostedCluster")
		if object.GetDeletionTimestamp() != nil {
			members = append(members, Member{Cluster: of, State: fleet.NotInstalled, Message: "its HostedCluster is being deleted"})
			continue
		}
		namespace, name := object.GetNamespace(), object.GetName()
		of.ID, _, _ = unstructured.NestedString(object.Object, "spec", "clusterID") // empty where it is none
		members = append(members, Member{Cluster: of, known: objectOf(management, object), Flags: []string{"hosted-cluster", namespace + "/" + name}, open: func(ctx context.Context) (Connection, error) {
			reached, estate, err := hosted.Reach(ctx, management, hosted.Selection{Namespace: namespace, Name: name}, connect)
			return Connection{Cluster: reached, Estate: estate}, err
		}})
	}
	return members, nil
}
