package scaffold

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	imagev1 "github.com/openshift/api/image/v1"
	"sigs.k8s.io/yaml"
)

// referencesFile lists the images in the manifests of a repository. "oc adm release
// new" replaces them with the images of the release.
const referencesFile = "manifests/image-references"

// imageOf returns the pull spec by which manifests refer to the image of the
// component. listed reports whether image-references contains it already.
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
			return "", false, fmt.Errorf("read %s: the tag %q has no image name", referencesFile, component)
		}
		if _, err := name.ParseReference(tag.From.Name); err != nil {
			return "", false, fmt.Errorf("read %s: the tag %q: %w", referencesFile, component, err)
		}
		return tag.From.Name, true, nil
	}
	return "quay.io/openshift/origin-" + component + ":latest", false, nil
}
