// Package contents answers: what does this release contain, as far as it may be read?
//
// [Reader.Read] reads the manifests of a release whose signature was verified, and the manifests of the administrator's
// own checks.
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
	"k8s.io/client-go/dynamic"
	kyaml "sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/scene"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/runner/imagestream"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/site"
)

// Contents are the contents of a release. They are empty if the release may not or cannot be read.
type Contents struct {
	Proof proof.Proof
	// Sources are the findings about the contents, together with the findings of the proof.
	Sources []collector.Source
	// Unread is true for a release that may be read, and could not be, or whose image is unknown.
	Unread bool
	// release is nil where it is not read.
	release *payload.Release
	// site has the checks of the site; nil for none.
	site *payload.Release
}

// Readable reports whether the release was read.
func (c Contents) Readable() bool { return c.release != nil }

// Version is the version of the release; empty if it was not read.
func (c Contents) Version() string {
	if c.release == nil {
		return ""
	}
	return c.release.Version
}

// Child is the digest of the image for the architecture of the cluster if the release is an index; empty otherwise.
func (c Contents) Child() string {
	if c.release == nil {
		return ""
	}
	return c.release.Child
}

// Images maps the name of a component to its pull spec.
func (c Contents) Images() map[string]string {
	if c.release == nil {
		return nil
	}
	return c.release.Images
}

// Manifests are the manifests of the release for the cluster; nil if they were not read.
func (c Contents) Manifests() []payload.Definition {
	if c.release == nil {
		return nil
	}
	return c.release.Manifests
}

// Policies are the image policies that the images of the release must satisfy: the policies of the cluster and of the
// release.
func (c Contents) Policies() imagepolicy.Policies {
	if c.release == nil {
		return c.Proof.Policies
	}
	var brought []imagepolicy.Brought
	for _, each := range c.release.ImagePolicies {
		policy := imagepolicy.Brought{Removed: each.Deleted}
		if err := each.Into(&policy.ClusterImagePolicy); err != nil {
			policy.Cause = err.Error()
			// What it covers is the scopes that could be read, or else all.
			_ = kyaml.Unmarshal(each.Manifest, &policy.ClusterImagePolicy)
		}
		policy.Name = each.Name
		brought = append(brought, policy)
	}
	return c.Proof.Policies.Before(brought)
}

// AdminGates are the gates of the release by key; nil if they are unknown.
func (c Contents) AdminGates() map[string]string {
	if c.release == nil {
		return nil
	}
	exceeded := func(f finding.Finding) bool { return f.Reason == payload.ReasonTooManyAdminGates.String() }
	if c.release.AdminGates == nil && !slices.ContainsFunc(c.release.Problems, exceeded) {
		return map[string]string{}
	}
	return c.release.AdminGates
}

// Draft returns the checks of the release and of the site for a cluster at the version
// from. Some of them may be for the management cluster of its estate.
func (c Contents) Draft(from string, estate hosted.Estate) jobplan.Draft {
	draft := func(release *payload.Release) jobplan.Draft {
		return jobplan.NewHosted(from, release, estate.Namespace())
	}
	drafted := jobplan.Draft{}
	if c.release != nil {
		drafted = draft(c.release)
	}
	if c.site != nil {
		drafted = drafted.WithSite(draft(c.site))
	}
	return drafted
}

// WithoutJobs are the contents without the manifests of the Jobs: there can be thousands,
// and the draft has them.
func (c Contents) WithoutJobs() Contents {
	c.site = nil
	if c.release != nil {
		release := *c.release
		release.Jobs, release.Supporting = nil, nil
		c.release = &release
	}
	return c
}

// Foresee returns the built-in checks that compare the release with the cluster, and those
// of their permissions that depend on the release.
func (c Contents) Foresee(client dynamic.Interface) ([]check.Check, access.Needs) {
	if c.release == nil {
		return nil, access.Needs{}
	}
	checks := []check.Check{adminack.Ahead(c.release.AdminGates)}
	if len(c.release.Definitions) > 0 {
		checks = append([]check.Check{definition.Check(client, c.release.Definitions)}, checks...)
	}
	needs := definition.ListNeeds(c.release.Definitions)
	if len(c.release.ImageStreams) > 0 {
		streams := imagestream.Check(client, c.release.ImageStreams)
		checks, needs = append(checks, streams), needs.And(check.Reads([]check.Check{streams}))
	}
	return checks, needs
}

var (
	namePayload = finding.NewName("ReleasePayload", "The findings about the content of the release image.")

	reasonVersionMismatch = finding.NewReason("VersionMismatch", finding.Explanation{
		Meaning: "The release image has a different version than the one listed in ClusterVersion.",
		Cause:   "The update graph or the mirror is wrong.",
		Remedy:  "Do not use this image. Refresh the available updates.",
		Command: "oc adm upgrade",
	})
	reasonRead = finding.NewReason("Read", finding.Explanation{
		Meaning: "The manifests of the release were read.",
		Cause:   "The release is verified and complete.",
	})
)

// Reader reads releases as one cluster gets them.
type Reader struct {
	// Verifier has verified the release, and has the scene.
	Verifier proof.Verifier
	// Cache keeps content of releases; nil for none.
	Cache imagefiles.Cache
	// Partial turns a release that could not be read into a finding.
	Partial bool
	// Manifests keeps the manifests of all kinds, for a rehearsal.
	Manifests bool
}

// Read reads the manifests of a release, whose version is checked unless it is empty. A release that must not be used
// results in a finding; a release that could not be read in an error, unless Partial is set.
func (r Reader) Read(ctx context.Context, proven proof.Proof, version string) (Contents, error) {
	if proven.Release == nil {
		return Contents{Proof: proven, Sources: proven.Sources, Unread: proven.PullSpec == ""}, nil
	}
	scene, registries := r.Verifier.Scene, r.Verifier.Registries
	scene.Step("reading the manifests of %s", proven.PullSpec)
	defer registries.Close()
	release, err := payload.Extract(ctx, *proven.Release,
		payload.Options{Access: registries, Cache: r.Cache, Cluster: filters(ctx, scene), Manifests: r.Manifests})
	if refused, ok := errors.AsType[*imagefiles.Error](err); ok && refused.Outcome == preflight.Fail {
		return unusable(proven, refused, registries), nil
	}
	if err != nil && r.Partial && ctx.Err() == nil {
		return unread(proven, err, registries), nil
	}
	if err != nil {
		return Contents{}, err
	}
	if failure := proven.Release.CheckVersion(release.Version); failure != nil {
		if proven, err = r.Verifier.Misnamed(proven, failure); err != nil || proven.Release == nil {
			return Contents{Proof: proven, Sources: proven.Sources}, err
		}
	}
	findings := append(registries.Warnings(), release.Problems...)
	findings = append(findings, compareVersion(release, version))
	read := Contents{Proof: proven, release: release}
	if policies := read.Policies(); proven.Release != nil && scene.Settings.Estate.HasMachineConfig() &&
		policies.Changes(proven.Release.PullSpec()) {
		proven = r.Verifier.HoldAgainst(ctx, proven, policies)
	}
	read.Sources = withFindings(proven, findings)
	return read, nil
}

// unusable are the contents of a release that is refused.
func unusable(proven proof.Proof, refused *imagefiles.Error, registries *registry.Access) Contents {
	findings := append(registries.Warnings(), finding.Fail(refused.Reason, "%s", refused.Error()).
		Named(namePayload).Remedy("%s", refused.Remediation).Do(refused.Actions...))
	return Contents{Proof: proven, Sources: withFindings(proven, findings)}
}

// unread are the contents of a release that could not be read: what depends on them is unknown.
func unread(proven proof.Proof, cause error, registries *registry.Access) Contents {
	known, ok := errors.AsType[*imagefiles.Error](cause)
	if !ok {
		known = &imagefiles.Error{
			Reason:      registry.ReasonRegistryUnreachable,
			Remediation: "Make the registry reachable from here, then run the preflight again.",
		}
	}
	findings := append(registries.Warnings(),
		finding.Unknown(known.Reason, "the checks, the images and the API of the release were not evaluated: %v", cause).
			Named(namePayload).Remedy("%s", known.Remediation).Do(known.Actions...))
	return Contents{Proof: proven, Unread: true, Sources: withFindings(proven, findings)}
}

func withFindings(proven proof.Proof, findings []finding.Finding) []collector.Source {
	return append(slices.Clip(proven.Sources), collector.Known(namePayload, finding.SourcePayload, findings...))
}

// compareVersion compares the version of the release with the requested one, as
// CVO does before it updates (reason VerifyPayloadVersion).
func compareVersion(release *payload.Release, requested string) finding.Finding {
	if requested != "" && requested != release.Version {
		return finding.Fail(reasonVersionMismatch, "the release image is version %s, and ClusterVersion lists it as %s", release.Version,
			requested).
			Named(namePayload).Do(finding.Read("oc adm upgrade"))
	}
	return finding.Pass(gap.Proven("the manifests of the release"), reasonRead, "release %s contains %d preflight checks", release.Version,
		len(release.Jobs)).Named(namePayload)
}

// filters decide which manifests of a release apply to this cluster. They are read from the same objects as by "oc adm
// release extract --included" (openshift/oc pkg/cli/admin/release/extract_tools.go). If one cannot be read, everything
// that depends on it is unknown.
func filters(ctx context.Context, s scene.Scene) manifestfilter.Cluster {
	filters := manifestfilter.Cluster{
		Architecture: s.ControlPlaneArchitecture(ctx), Features: features(ctx, s),
		Overrides: s.Version.Spec.Overrides,
	}
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
	deployment, err := s.Cluster.Kubernetes.AppsV1().Deployments("openshift-cluster-version").Get(ctx, "cluster-version-operator",
		metav1.GetOptions{})
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

// ReadSite adds the checks of the site, with the findings about their manifests. They are inconclusive if the release
// may not be read, because no check runs then.
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
		if held := c.Proof.Policies.Check(ctx, image, proof.Puller(registries)); held.Outcome == preflight.Fail ||
			held.Outcome == preflight.Unknown {
			return nil, fmt.Errorf("the image policies of the cluster reject it (%s): %s", held.Reason, held.Message)
		}
	}
	return source.ReadImage(ctx, imagefiles.Source{
		Access: registries, Cache: r.Cache, Architecture: scene.ControlPlaneArchitecture(ctx),
	})
}
