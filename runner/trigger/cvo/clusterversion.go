package cvo

import "strings"

// release has the fields of a release, and of a selected update, that are used.
type release struct{ Version, Image string }

// clusterVersion has the fields of ClusterVersion that are used.
type clusterVersion struct {
	Spec   struct{ DesiredUpdate release }
	Status struct {
		Desired            release
		AvailableUpdates   []release
		ConditionalUpdates []struct{ Release release }
	}
}

// selected is the selected update, which may not be offered, as CVO resolves it: an image
// comes before a version.
func (c clusterVersion) selected(version string) target {
	if image := c.Spec.DesiredUpdate.Image; image != "" {
		return c.target(version, image)
	}
	return c.offered(version)
}

// offered is the available or the conditional update with that version. An update with a
// risk is conditional.
func (c clusterVersion) offered(version string) target {
	for _, available := range c.Status.AvailableUpdates {
		if available.Version == version {
			return c.target(version, available.Image)
		}
	}
	for _, conditional := range c.Status.ConditionalUpdates {
		if conditional.Release.Version == version {
			return c.target(version, conditional.Release.Image)
		}
	}
	return c.target(version, "")
}

func (c clusterVersion) target(version, image string) target {
	_, digest, _ := strings.Cut(image, "@")
	return target{version: version, digest: digest, from: c.Status.Desired.Version}
}
