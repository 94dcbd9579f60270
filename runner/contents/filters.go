package contents

import (
	"cmp"
	"context"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

// filters decide which manifests of a release apply to this cluster, read from
// where "oc adm release extract --included" reads them (openshift/oc
// pkg/cli/admin/release/extract_tools.go). What cannot be read is unknown, and so
// is what depends on it.
func filters(ctx context.Context, s scene.Scene) manifestfilter.Cluster {
	filters := manifestfilter.Cluster{Architecture: s.ControlPlaneArchitecture(ctx), Features: features(ctx, s), Overrides: s.Version.Spec.Overrides}
	filters.Profile, filters.Exclude = profile(ctx, s)
	filters.Management = s.Settings.Estate.Namespace() != ""
	filters.Hosted = filters.Profile == hypershift.Profile
	if capabilities := s.Version.Status.Capabilities; len(capabilities.KnownCapabilities) > 0 {
		filters.Capabilities = &capabilities
	}
	return filters
}

// features belong to the release that the cluster runs; nil when they are not
// known.
func features(ctx context.Context, s scene.Scene) *manifestfilter.Features {
	gates, err := s.Cluster.OpenShift.ConfigV1().FeatureGates().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for _, details := range gates.Status.FeatureGates {
		if details.Version != s.About.Version {
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
func profile(ctx context.Context, s scene.Scene) (profile, exclude string) {
	if profile := s.Settings.Estate.Profile(); profile != "" {
		return profile, ""
	}
	deployment, err := s.Cluster.Kubernetes.AppsV1().Deployments("openshift-cluster-version").Get(ctx, "cluster-version-operator", metav1.GetOptions{})
	if err == nil {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			profile = cmp.Or(profile, variable(container, "CLUSTER_PROFILE"))
			exclude = cmp.Or(exclude, variable(container, "EXCLUDE_MANIFESTS"))
		}
		return profile, exclude
	}
	infrastructure, err := s.Snapshot.Infrastructure(ctx)
	if err == nil && infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode {
		return hypershift.Profile, ""
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
