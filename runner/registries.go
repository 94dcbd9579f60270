package runner

import (
	"cmp"
	"context"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/manifestfilter"
	"github.com/openshift/update-preflight/runner/registry"
)

// registryAccess is how the cluster pulls images, with what local adds.
func (v view) registryAccess(ctx context.Context, local registry.Local) *registry.Access {
	return registry.FromCluster(ctx, registry.Cluster{
		Kubernetes: v.cluster.Kubernetes, OpenShift: v.cluster.OpenShift, Dynamic: v.cluster.Dynamic, Release: v.about.Image,
	}, local)
}

// filters decide which manifests of a release apply to this cluster, read from
// where "oc adm release extract --included" reads them (openshift/oc
// pkg/cli/admin/release/extract_tools.go). What cannot be read is unknown, and so
// is what depends on it.
func (v view) filters(ctx context.Context) manifestfilter.Cluster {
	filters := manifestfilter.Cluster{Architecture: v.controlPlaneArchitecture(ctx), Features: v.features(ctx), Overrides: v.version.Spec.Overrides}
	filters.Profile, filters.Exclude = v.profile(ctx)
	if capabilities := v.version.Status.Capabilities; len(capabilities.KnownCapabilities) > 0 {
		filters.Capabilities = &capabilities
	}
	return filters
}

// features are those of the release that the cluster runs; nil when they are not
// known.
func (v view) features(ctx context.Context) *manifestfilter.Features {
	gates, err := v.cluster.OpenShift.ConfigV1().FeatureGates().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for _, details := range gates.Status.FeatureGates {
		if details.Version != v.about.Version {
			continue
		}
		features := &manifestfilter.Features{Set: gates.Spec.FeatureSet}
		for _, gate := range details.Enabled {
			features.Enabled = append(features.Enabled, gate.Name)
		}
		return features
	}
	return nil
}

// profile is the cluster profile and the name by which manifests are excluded:
// what the cluster-version operator was started with, otherwise what the topology
// implies. Empty is the default of either.
func (v view) profile(ctx context.Context) (profile, exclude string) {
	deployment, err := v.cluster.Kubernetes.AppsV1().Deployments("openshift-cluster-version").Get(ctx, "cluster-version-operator", metav1.GetOptions{})
	if err == nil {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			profile = cmp.Or(profile, variable(container, "CLUSTER_PROFILE"))
			exclude = cmp.Or(exclude, variable(container, "EXCLUDE_MANIFESTS"))
		}
		return profile, exclude
	}
	infrastructure, err := v.snapshot.Infrastructure(ctx)
	if err == nil && infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode {
		return "ibm-cloud-managed", "" // HyperShift runs all its control planes with it
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

// controlPlaneArchitecture is that of the nodes that run the release's operators;
// empty when they cannot be read.
func (v view) controlPlaneArchitecture(ctx context.Context) string {
	for _, role := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		nodes, err := v.cluster.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: role, Limit: 1})
		if err == nil && len(nodes.Items) > 0 {
			return nodes.Items[0].Status.NodeInfo.Architecture
		}
	}
	return ""
}

// architectures are those of the nodes; none, where they cannot be read, means
// all that an image has.
func (v view) architectures(ctx context.Context) []string {
	nodes, err := v.snapshot.Nodes(ctx)
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for i := range nodes {
		found[nodes[i].Status.NodeInfo.Architecture] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}
