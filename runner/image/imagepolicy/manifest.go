package imagepolicy

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
)

// maxArchitectures bounds how many images of one list are verified.
const maxArchitectures = 16

// instances are the digests of the images in a list that nodes would pull.
func instances(list ocimanifest.Manifest, architectures []string) ([]string, error) {
	images, err := list.Images(architectures...)
	if err != nil {
		return nil, err
	}
	var digests, found []string
	for _, image := range images {
		digests = append(digests, image.Digest.String())
		found = append(found, image.Platform.Architecture)
	}
	if len(digests) > maxArchitectures {
		return nil, fmt.Errorf("the index has %d images for linux, more than %d: %s", len(digests), maxArchitectures, words.External(strings.Join(found, ", ")))
	}
	return digests, nil
}
