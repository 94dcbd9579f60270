package runner

import (
	"cmp"
	"context"
	"net/http"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/updateservice"
)

// graphSource is where graphs are requested.
type graphSource struct {
	transport http.RoundTripper
	// own is the URL of the default service; only it receives id.
	own, id string
}

// InChannel returns the release of a version that a channel has, from the update service that
// CVO uses; the zero release where the channel does not have it. The ID of the cluster is not
// sent.
func InChannel(ctx context.Context, c *cluster.Cluster, present *configv1.ClusterVersion, channel, version string) (update.Release, error) {
	v := view{cluster: c, version: present}
	source := v.graphSource(ctx)
	found, _, err := updateservice.Graph(ctx, source.transport, updateservice.Query{
		URL: source.own, Channel: channel, Version: present.Status.Desired.Version,
		Architecture: v.graphArchitecture(ctx, "", func(string, ...any) {}),
	})
	if err != nil {
		return update.Release{}, err
	}
	if at := found.Find(version); at >= 0 {
		return found.Releases[at].Release, nil
	}
	return update.Release{}, nil
}

// graphSource is the update service that CVO uses, through the proxy of the cluster.
func (v view) graphSource(ctx context.Context) graphSource {
	return graphSource{
		transport: registry.Outbound(ctx, registry.Cluster{Kubernetes: v.cluster.Kubernetes, OpenShift: v.cluster.OpenShift, Dynamic: v.cluster.Dynamic}),
		own:       cmp.Or(string(v.version.Spec.Upstream), updateservice.Default), id: v.about.ID,
	}
}

// graphArchitecture is the architecture that CVO requests, unless another is named.
func (v view) graphArchitecture(ctx context.Context, named string, miss func(string, ...any)) string {
	if named != "" {
		return named
	}
	if v.version.Status.Desired.Architecture == configv1.ClusterVersionArchitectureMulti {
		return "multi"
	}
	if found := v.controlPlaneArchitecture(ctx); found != "" {
		return found
	}
	const usual = "amd64"
	miss("the architecture: no control plane node could be read, and %s is assumed", usual)
	return usual
}
