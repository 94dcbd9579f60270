// Package estate answers: which cluster pulls and verifies a release, and which one runs its checks?
//
// They are one, unless the update is one of a hosted cluster: its management cluster pulls and verifies
// the release, and its guest runs the checks. [Pull] states how each pulls images, and [Review] reviews
// the permissions in the management cluster.
package estate

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/registry"
)

// Pulling is how images are pulled.
type Pulling struct {
	// Release is how the cluster with the control plane pulls the release, with the credentials of this
	// machine. Nodes is how the nodes that run the checks pull their images.
	Release, Nodes *registry.Access
}

// Pull reads the configuration of the clusters of a scene.
func Pull(ctx context.Context, s scene.Scene, local registry.Local) Pulling {
	own := registry.Cluster{Kubernetes: s.Cluster.Kubernetes, OpenShift: s.Cluster.OpenShift, Dynamic: s.Cluster.Dynamic, Release: s.About.Image}
	side := s.Settings.Hosted
	if side == nil {
		access := registry.FromCluster(ctx, own, local)
		return Pulling{Release: access, Nodes: access}
	}
	pulling := Pulling{Release: registry.FromCluster(ctx, managementOf(side, s.About.Image), local)}
	pulling.Nodes = pulling.Release
	if !side.GuestUnread() {
		pulling.Nodes = registry.FromCluster(ctx, own, local)
	}
	return pulling
}

// managementOf is the management cluster with what the HostedCluster adds.
func managementOf(side *hosted.ControlPlane, release string) registry.Cluster {
	c := registry.Cluster{Kubernetes: side.Management.Kubernetes, OpenShift: side.Management.OpenShift, Dynamic: side.Management.Dynamic, Release: release}
	c.Hosted = &registry.Hosted{PullSecret: side.Cluster.Spec.PullSecret.Name}
	c.Hosted.Name.Namespace, c.Hosted.Name.Name = side.Cluster.Namespace, side.Cluster.Name
	for _, source := range side.Cluster.Spec.ImageContentSources {
		mirrors := make([]configv1.ImageMirror, 0, len(source.Mirrors))
		for _, mirror := range source.Mirrors {
			mirrors = append(mirrors, configv1.ImageMirror(mirror))
		}
		c.Hosted.Mirrors = append(c.Hosted.Mirrors, configv1.ImageDigestMirrors{Source: source.Source, Mirrors: mirrors})
	}
	return c
}

// Review is an error for missing permissions in the management cluster of a hosted cluster, where they
// are those to verify and pull a release. Nil has none.
func Review(ctx context.Context, side *hosted.ControlPlane) error {
	if side == nil {
		return nil
	}
	if err := ManagementNeeds().Check(ctx, side.Management.Kubernetes.AuthorizationV1()); err != nil {
		return fmt.Errorf("in the management cluster of HostedCluster %s/%s: %w", side.Cluster.Namespace, side.Cluster.Name, err)
	}
	return nil
}

// ManagementNeeds are the permissions in the management cluster of a hosted cluster to verify and pull its
// release.
func ManagementNeeds() access.Needs {
	needs := VerifyNeeds().And(proof.PolicyNeeds()).And(pullNeeds())
	needs.Required = slices.DeleteFunc(needs.Required, func(request access.Request) bool { return request.Resource == "clusterversions" })
	return needs
}

// VerifyNeeds are the permissions to read the keyrings and signature stores of the
// cluster (signature.Override). The certificate authorities of spec.signatureStores have names that the
// administrator chooses, and a store without them is not used.
func VerifyNeeds() access.Needs {
	return access.Needs{
		Required: []access.Request{
			{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
			{Verb: "get", Group: "config.openshift.io", Resource: "proxies", Name: "cluster"},
			{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "release-verification"},
			{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "trusted-ca-bundle"},
			{Verb: "list", Resource: "configmaps", Namespace: "openshift-config-managed"},
		},
		Optional: []access.Request{{Verb: "get", Resource: "configmaps", Namespace: "openshift-config"}},
	}
}

// RegistryNeeds are the permissions to find out how the cluster pulls images, and
// which manifests apply to it.
func RegistryNeeds() access.Needs {
	return pullNeeds().And(access.Needs{Optional: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "featuregates", Name: "cluster"},
		{Verb: "get", Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
		{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "openshift-cluster-version", Name: "cluster-version-operator"},
		{Verb: "list", Resource: "nodes"},
	}})
}

func pullNeeds() access.Needs {
	return access.Needs{Optional: []access.Request{
		{Verb: "list", Group: "config.openshift.io", Resource: "imagedigestmirrorsets"},
		{Verb: "list", Group: "config.openshift.io", Resource: "imagetagmirrorsets"},
		{Verb: "list", Group: "operator.openshift.io", Resource: "imagecontentsourcepolicies"},
		{Verb: "get", Group: "config.openshift.io", Resource: "images", Name: "cluster"},
		{Verb: "get", Resource: "secrets", Namespace: "openshift-config", Name: "pull-secret"},
	}}
}

// GuestNeeds are the permissions in the guest of a hosted cluster whose management cluster verifies
// the release.
func GuestNeeds() access.Needs {
	return RegistryNeeds().And(access.Needs{Required: []access.Request{{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"}}})
}
