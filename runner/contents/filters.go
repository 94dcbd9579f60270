package contents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/scene"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/site"
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

// ReadSite adds the checks of the site, with the findings about their manifests. They are
// inconclusive where the release may not be read, since no check is run then.
func (r Reader) ReadSite(ctx context.Context, c Contents, sources []site.Source) Contents {
	if len(sources) == 0 {
		return c
	}
	checks := site.NewChecks()
	for _, source := range site.Canonical(sources) {
		files, err := r.siteFiles(ctx, c, source)
		if err != nil {
			checks.Fail(source, err)
			continue
		}
		checks.Add(source, files)
	}
	c.site = checks.Release
	c.Sources = append(slices.Clip(c.Sources), collector.Known(site.NameSource, finding.SourceJob, checks.Findings...))
	return c
}

// siteFiles are the manifests of a source.
func (r Reader) siteFiles(ctx context.Context, c Contents, source site.Source) (map[string][]byte, error) {
	if !c.Readable() {
		return nil, errors.New("the release may not be read")
	}
	if !source.IsImage() {
		return source.Files, nil
	}
	scene, registries := r.Verifier.Scene, r.Verifier.Registries
	scene.Step("reading the checks of %s", source.Name)
	defer registries.Close()
	if c.Proof.Policies.Covers(source.Name) {
		image := imagepolicy.Image{PullSpec: source.Name, Architectures: scene.Architectures(ctx)}
		if held := c.Proof.Policies.Check(ctx, image, proof.Puller(registries)); held.Outcome == preflight.Fail || held.Outcome == preflight.Unknown {
			return nil, fmt.Errorf("the image policies of the cluster do not admit it (%s): %s", held.Reason, held.Message)
		}
	}
	return source.ReadImage(ctx, imagefiles.Source{
		Access: registries, Cache: r.Cache, Architecture: scene.ControlPlaneArchitecture(ctx),
	})
}
