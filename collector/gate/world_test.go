package gate_test

import (
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// infrastructure is what makes a cluster OpenShift.
func infrastructure(topology configv1.TopologyMode) *configv1.Infrastructure {
	return &configv1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology: topology, InfrastructureTopology: configv1.HighlyAvailableTopologyMode, CPUPartitioning: configv1.CPUPartitioningNone,
		},
	}
}

// desiring is the ClusterVersion of a cluster that is at a version, or on its
// way to it.
func desiring(version string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
		Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: version, Image: "quay.io/x"}, VersionHash: "0", AvailableUpdates: []configv1.Release{},
		},
	}
}
