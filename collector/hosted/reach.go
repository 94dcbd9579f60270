package hosted

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
)

// Selection names a hosted cluster of a management cluster.
type Selection struct {
	Namespace, Name string
	// Pools are the NodePools that are judged, since they are to be updated as well; none for all, none of
	// which is to be updated.
	Pools []string
	// Guest connects the guest; nil for the kubeconfig that the status of the HostedCluster names.
	Guest func() (*cluster.Cluster, error)
}

// Reach opens both clusters of a hosted cluster: it returns the guest, with the side of its management cluster. A
// guest that cannot be reached is no error: its clients read ClusterVersion, made from the status of
// the HostedCluster, and nothing else. An *input.Error is about a name that does not exist, or a guest that is
// another cluster. connect makes the clients of a configuration; it sends no request.
func Reach(ctx context.Context, management *cluster.Cluster, selected Selection, connect func(*rest.Config) (*cluster.Cluster, error)) (*cluster.Cluster, *ControlPlane, error) {
	c, err := Open(ctx, management, selected.Namespace, selected.Name, selected.Pools...)
	if err != nil {
		return nil, nil, err
	}
	guest, err := c.reachGuest(ctx, selected.Guest, connect)
	if _, another := errors.AsType[*input.Error](err); another {
		return nil, nil, err
	}
	if err == nil {
		return guest, c, nil
	}
	c.guestError = err
	guest, err = connect(&rest.Config{Host: "https://guest.invalid", Transport: unread{c}})
	return guest, c, err
}

// reachGuest connects the guest, and confirms that it is the one of the HostedCluster.
func (c *ControlPlane) reachGuest(ctx context.Context, given func() (*cluster.Cluster, error), connect func(*rest.Config) (*cluster.Cluster, error)) (*cluster.Cluster, error) {
	if given == nil {
		given = func() (*cluster.Cluster, error) {
			config, err := c.kubeconfig(ctx)
			if err != nil {
				return nil, err
			}
			return connect(config)
		}
	}
	guest, err := given()
	if err != nil {
		return nil, err
	}
	return guest, c.confirm(ctx, guest)
}
