package runner

import (
	"cmp"
	"context"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/registry"
)

// readRegistries finds out how the cluster pulls images.
func (s *session) readRegistries(ctx context.Context) {
	s.registries = registry.FromCluster(ctx, registry.Cluster{
		Kubernetes: s.config.Cluster.Kubernetes, OpenShift: s.config.Cluster.OpenShift, Dynamic: s.config.Cluster.Dynamic, Release: s.cluster.Image,
	}, s.config.Local)
}

// filters is what decides which manifests of a release count for this cluster,
// from where "oc adm release extract --included" takes it (openshift/oc
// pkg/cli/admin/release/extract_tools.go). What cannot be read stays unknown,
// and so does then what depends on it.
func (s *session) filters(ctx context.Context) payload.Cluster {
	filters := payload.Cluster{Architecture: s.architecture(ctx), Features: s.features(ctx)}
	filters.Profile, filters.Exclude = s.profile(ctx)
	clusterVersion, err := s.snapshot.ClusterVersion(ctx)
	if err != nil {
		return filters
	}
	filters.Overrides = clusterVersion.Spec.Overrides
	if capabilities := clusterVersion.Status.Capabilities; len(capabilities.KnownCapabilities) > 0 {
		filters.Capabilities = &capabilities
	}
	return filters
}

// features are those of the release that the cluster runs; nil when they are not
// known.
func (s *session) features(ctx context.Context) *payload.Features {
	gates, err := s.config.Cluster.OpenShift.ConfigV1().FeatureGates().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for _, details := range gates.Status.FeatureGates {
		if details.Version != s.cluster.Version {
			continue
		}
		features := &payload.Features{Set: gates.Spec.FeatureSet}
		for _, gate := range details.Enabled {
			features.Enabled = append(features.Enabled, gate.Name)
		}
		return features
	}
	return nil
}

// profile is the cluster profile and the name by which manifests are excluded:
// what the cluster-version operator was started with, else what goes with the
// topology. Empty is the default of either.
func (s *session) profile(ctx context.Context) (profile, exclude string) {
	deployment, err := s.config.Cluster.Kubernetes.AppsV1().Deployments("openshift-cluster-version").Get(ctx, "cluster-version-operator", metav1.GetOptions{})
	if err == nil {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			profile = cmp.Or(profile, variable(container, "CLUSTER_PROFILE"))
			exclude = cmp.Or(exclude, variable(container, "EXCLUDE_MANIFESTS"))
		}
		return profile, exclude
	}
	infrastructure, err := s.snapshot.Infrastructure(ctx)
	if err == nil && infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode {
		return "ibm-cloud-managed", "" // which is what HyperShift runs all its control planes with
	}
	return "", ""
}

func variable(container corev1.Container, name string) string {
	for _, variable := range container.Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

// architecture is that of the control plane, which runs the release's operators;
// empty when no node of it is to be seen.
func (s *session) architecture(ctx context.Context) string {
	for _, role := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		nodes, err := s.config.Cluster.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: role, Limit: 1})
		if err == nil && len(nodes.Items) > 0 {
			return nodes.Items[0].Status.NodeInfo.Architecture
		}
	}
	return ""
}
