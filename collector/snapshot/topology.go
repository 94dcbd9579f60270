package snapshot

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Topology is where the control plane runs, which decides which checks apply.
type Topology string

// The topologies.
const (
	// SelfManaged is an OpenShift cluster that runs its own control plane.
	SelfManaged Topology = "SelfManaged"
	// HyperShift is a hosted cluster: its control plane, with etcd and the machine
	// configuration, runs in another cluster (Infrastructure
	// status.controlPlaneTopology: External).
	HyperShift Topology = "HyperShift"
	// Kubernetes is a cluster without OpenShift's Infrastructure, such as MicroShift,
	// which has no ClusterVersion.
	Kubernetes Topology = "Kubernetes"
)

// Topology is read from the Infrastructure.
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
