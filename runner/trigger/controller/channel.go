package controller

import (
	"context"
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/graphsource"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner/registry"
)

const (
	// channelTimeout bounds a request to the update service, since it delays everything else.
	channelTimeout = 5 * time.Second
	// channelPause is after which time a release that was not found is requested again.
	channelPause = 10 * time.Minute
)

// channels finds the image of a release in another channel than the cluster's, in the update
// service that CVO uses. It has the last answer. It is not used concurrently.
type channels struct {
	cluster *cluster.Cluster
	logger  *slog.Logger

	channel, version, found string
	asked                   time.Time
}

// image is empty for a release that the channel does not have, and while the update service
// cannot be reached.
func (c *channels) image(ctx context.Context, present *configv1.ClusterVersion, channel, version string) string {
	now := c.cluster.Now()
	if same := c.channel == channel && c.version == version; same && (c.found != "" || now.Sub(c.asked) < channelPause) {
		return c.found
	}
	ctx, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	transport := registry.Outbound(ctx, registry.Cluster{Kubernetes: c.cluster.Kubernetes, OpenShift: c.cluster.OpenShift, Dynamic: c.cluster.Dynamic})
	release, err := graphsource.InChannel(ctx, scene.Scene{Cluster: c.cluster, Version: present}, transport, channel, version)
	if err != nil {
		c.logger.Warn("the release of the scheduled update is unknown", "channel", channel, "version", version, "cause", err)
	}
	c.channel, c.version, c.found, c.asked = channel, version, release.Image, now
	return c.found
}
