// Package estate answers: which cluster pulls and verifies a release, and which one runs its checks?
//
// It is the same cluster, except for a hosted cluster (hosted.Estate): its management cluster pulls and verifies the
// release, and its guest runs the checks. [Pull] returns how each pulls images, [RunsJobs] reports whether checks can
// run, and [Review] reviews the permissions in the management cluster.
package estate

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
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
	own := registry.PullConfig{
		Kubernetes: s.Cluster.Kubernetes, OpenShift: s.Cluster.OpenShift, Dynamic: s.Cluster.Dynamic,
		Release: s.About.Image,
	}
	controlPlane, isHosted := s.Settings.Estate.ControlPlane()
	if !isHosted {
		access := registry.FromCluster(ctx, own, local)
		return Pulling{Release: access, Nodes: access}
	}
	pulling := Pulling{Release: registry.FromCluster(ctx, managementOf(controlPlane, s.About.Image), local)}
	pulling.Nodes = pulling.Release
	if s.Settings.Estate.GuestError() == nil {
		pulling.Nodes = registry.FromCluster(ctx, own, local)
	}
	return pulling
}

// managementOf is the management cluster with what the HostedCluster adds.
func managementOf(of *hosted.ControlPlane, release string) registry.PullConfig {
	c := registry.PullConfig{
		Kubernetes: of.Management.Kubernetes, OpenShift: of.Management.OpenShift, Dynamic: of.Management.Dynamic,
		Release: release,
	}
	c.Hosted = &registry.Hosted{PullSecret: of.Cluster.Spec.PullSecret.Name}
	c.Hosted.Name.Namespace, c.Hosted.Name.Name = of.Cluster.Namespace, of.Cluster.Name
	for _, source := range of.Cluster.Spec.ImageContentSources {
		mirrors := make([]configv1.ImageMirror, 0, len(source.Mirrors))
		for _, mirror := range source.Mirrors {
			mirrors = append(mirrors, configv1.ImageMirror(mirror))
		}
		c.Hosted.Mirrors = append(c.Hosted.Mirrors, configv1.ImageDigestMirrors{Source: source.Source, Mirrors: mirrors})
	}
	return c
}

// Review returns an error for missing permissions in the management cluster of a hosted cluster, if they are required
// to verify and pull a release.
func Review(ctx context.Context, of hosted.Estate) error {
	controlPlane, isHosted := of.ControlPlane()
	if !isHosted {
		return nil
	}
	if err := ManagementNeeds().Check(ctx, controlPlane.Management.Kubernetes.AuthorizationV1()); err != nil {
		name, _ := of.Selected()
		return fmt.Errorf("in the management cluster of HostedCluster %s: %w", name, err)
	}
	return nil
}

// RunsJobs reports whether the target cluster can run checks and store a record. An archive, which is a snapshot, and a
// guest that cannot be reached cannot.
func RunsJobs(judged *cluster.Cluster, of hosted.Estate) bool {
	return !judged.Fixed() && of.GuestError() == nil
}

// ReadNeeds are the permissions in the target cluster for verifying a release, if the cluster does this itself, and for
// reading its configuration.
func ReadNeeds(of hosted.Estate) access.Needs {
	if _, isHosted := of.ControlPlane(); isHosted {
		return registryNeeds().And(access.Needs{Required: []access.Request{{
			Verb: "get", Group: "config.openshift.io",
			Resource: "clusterversions", Name: "version",
		}}})
	}
	return VerifyNeeds().And(registryNeeds()).And(proof.PolicyNeeds())
}

// ManagementNeeds are the permissions in the management cluster of a hosted cluster to verify and pull its
// release.
func ManagementNeeds() access.Needs {
	needs := VerifyNeeds().And(proof.PolicyNeeds()).And(pullNeeds())
	needs.Required = slices.DeleteFunc(needs.Required, func(request access.Request) bool { return request.Resource == "clusterversions" })
	return needs
}

// VerifyNeeds are the permissions to read the keyrings and signature stores of the cluster (signature.Override). The CA
// bundles in spec.signatureStores have names that the administrator chooses, and a store without its CA bundle is not
// used.
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

// registryNeeds are the permissions to find out how the cluster pulls images, and
// which manifests apply to it.
func registryNeeds() access.Needs {
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
