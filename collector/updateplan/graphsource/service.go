package graphsource

import (
	"cmp"
	"context"
	"net/http"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
)

// Service is the update service that is used unless others are named.
type Service struct {
	// Transport reaches all update services.
	Transport http.RoundTripper
	// URL locates the service; only it receives ID, the ID of the cluster.
	URL, ID string
}

// Public is the service of a plan without a cluster.
func Public(transport http.RoundTripper) Service {
	return Service{Transport: transport, URL: updateservice.Default}
}

// ServiceOf is the service that CVO uses.
func ServiceOf(s scene.Scene, transport http.RoundTripper) Service {
	return Service{Transport: transport, URL: upstream(s.Version), ID: s.About.ID}
}

func upstream(clusterVersion *configv1.ClusterVersion) string {
	return cmp.Or(string(clusterVersion.Spec.Upstream), updateservice.Default)
}

// InChannel returns the release of a version that a channel has, from the update service that
// CVO uses; the zero release where the channel does not have it. The ID of the cluster is not
// sent. Of the scene, Cluster and Version are used.
func InChannel(ctx context.Context, s scene.Scene, transport http.RoundTripper, channel, version string) (update.Release, error) {
	found, _, err := updateservice.Graph(ctx, transport, updateservice.Query{
		URL: upstream(s.Version), Channel: channel, Version: s.Version.Status.Desired.Version,
		Architecture: Architecture(ctx, s, func(string, ...any) {}),
	})
	if err != nil {
		return update.Release{}, err
	}
	if at := found.Find(version); at >= 0 {
		return found.Releases[at].Release, nil
	}
	return update.Release{}, nil
}

// Architecture is the architecture that CVO requests, by the name that update services use.
// It calls miss where that is assumed.
func Architecture(ctx context.Context, s scene.Scene, miss func(string, ...any)) string {
	if s.Version.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti {
		return "multi"
	}
	if found := s.ControlPlaneArchitecture(ctx); found != "" {
		return found
	}
	const usual = "amd64"
	miss("the architecture: no control plane node could be read, and %s is assumed", usual)
	return usual
}
