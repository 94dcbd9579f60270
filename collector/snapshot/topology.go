package snapshot

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Topology says who runs the control plane, and with that which checks make
// sense.
type Topology string

// The topologies.
const (
	// SelfManaged is an OpenShift cluster that runs its own control plane.
	SelfManaged Topology = "SelfManaged"
	// HyperShift is a hosted cluster: its control plane, and with it etcd and
	// the machine configuration, is another cluster's
	// (Infrastructure status.controlPlaneTopology: External).
	HyperShift Topology = "HyperShift"
	// Kubernetes is a cluster without OpenShift's Infrastructure. MicroShift is
	// one: it has no ClusterVersion that could be updated.
	Kubernetes Topology = "Kubernetes"
)

// Topology reads it from the Infrastructure.
func (c *Cluster) Topology(ctx context.Context) (Topology, error) {
	infrastructure, err := c.Infrastructure(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return Kubernetes, nil
	case err != nil:
		return "", err
	case infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode:
		return HyperShift, nil
	}
	return SelfManaged, nil
}
