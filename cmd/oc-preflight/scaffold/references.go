package scaffold

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	imagev1 "github.com/openshift/api/image/v1"
	"sigs.k8s.io/yaml"
)

// referencesFile lists the images that the manifests of a repository mention.
// "oc adm release new" puts the release's images in their place.
const referencesFile = "manifests/image-references"

// imageOf is what the manifests of a repository have to call the image of the
// component, and whether its image-references say so already.
func imageOf(references []byte, component string) (image string, listed bool, err error) {
	var stream imagev1.ImageStream
	if err := yaml.Unmarshal(references, &stream); err != nil {
		return "", false, fmt.Errorf("read %s: %w", referencesFile, err)
	}
	for _, tag := range stream.Spec.Tags {
		if tag.Name != component {
			continue
		}
		if tag.From == nil || tag.From.Name == "" {
			return "", false, fmt.Errorf("read %s: the tag %q does not say what the image is called", referencesFile, component)
		}
		if _, err := name.ParseReference(tag.From.Name); err != nil {
			return "", false, fmt.Errorf("read %s: the tag %q: %w", referencesFile, component, err)
		}
		return tag.From.Name, true, nil
	}
	return "quay.io/openshift/origin-" + component + ":latest", false, nil
}
