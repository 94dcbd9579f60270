package hypershift

import (
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// Desired is the image of the release that the cluster-version operator of the guest wants; empty before
// it has reported one.
func (h *HostedCluster) Desired() string {
	if h.Status.Version == nil {
		return ""
	}
	return h.Status.Version.Desired.Image
}

// Releases are those that the status lists: present, available, conditional and past.
func (h *HostedCluster) Releases() []configv1.Release {
	status := h.Status.Version
	if status == nil {
		return nil
	}
	known := append([]configv1.Release{status.Desired}, status.AvailableUpdates...)
	for i := range status.ConditionalUpdates {
		known = append(known, status.ConditionalUpdates[i].Release)
	}
	for _, past := range status.History {
		known = append(known, configv1.Release{Version: past.Version, Image: past.Image})
	}
	return known
}

// ImageOf is the image of a version that the status lists; false for another.
func (h *HostedCluster) ImageOf(version string) (string, bool) {
	for _, known := range h.Releases() {
		if known.Version == version && known.Image != "" {
			return known.Image, true
		}
	}
	return "", false
}

// IsMulti reports whether the status lists a version as one for all architectures; false for another, and where the
// cluster-version operator of the guest states no architectures.
func (h *HostedCluster) IsMulti(version string) bool {
	return slices.ContainsFunc(h.Releases(), func(known configv1.Release) bool {
		return known.Version == version && known.Architecture == configv1.ClusterVersionArchitectureMulti
	})
}

// VersionOf is the version of an image that the status lists; empty for another.
func (h *HostedCluster) VersionOf(image string) string {
	for _, known := range h.Releases() {
		if SameImage(known.Image, image) {
			return known.Version
		}
	}
	return ""
}

// SameImage compares images as HyperShift does where it can, by the digest.
func SameImage(a, b string) bool {
	digest := func(image string) string {
		_, after, found := strings.Cut(image, "@")
		if !found {
			return image
		}
		return after
	}
	return digest(a) == digest(b)
}
