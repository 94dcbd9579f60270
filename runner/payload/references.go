package payload

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	imagev1 "github.com/openshift/api/image/v1"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

const referencesFile = "image-references"

// readReferences reads image-references: an ImageStream named by the version of
// the release that lists its images. It reports and omits images that are not by
// digest.
func (m *manifests) readReferences() (string, map[string]string, error) {
	var stream imagev1.ImageStream
	if err := unmarshal(m.references, &stream, kjson.DisallowDuplicateFields, kjson.DisallowUnknownFields); err != nil {
		return "", nil, invalid(referencesFile, err)
	}
	if stream.Kind != "ImageStream" || stream.APIVersion != imagev1.GroupVersion.String() {
		return "", nil, invalid(referencesFile, fmt.Errorf("it is a %q of %q instead of an ImageStream of %s", words.External(stream.Kind), words.External(stream.APIVersion), imagev1.GroupVersion))
	}
	images := make(map[string]string, len(stream.Spec.Tags))
	seen := make(map[string]bool, len(stream.Spec.Tags))
	for _, tag := range stream.Spec.Tags {
		if tag.Name == "" || seen[tag.Name] {
			return "", nil, invalid(referencesFile, fmt.Errorf("the tag %q is duplicate or empty", words.External(tag.Name)))
		}
		seen[tag.Name] = true
		if violation := checkReference(tag); violation != nil {
			m.report(referencesFile, manifestdoc.Place{}, violation)
			continue
		}
		images[tag.Name] = tag.From.Name
	}
	if len(seen) == 0 {
		return "", nil, invalid(referencesFile, errors.New("it lists no images"))
	}
	return stream.Name, images, nil
}

func checkReference(tag imagev1.TagReference) *manifestfilter.Violation {
	const remedy = "Do not update to this release: its signature does not cover all of its images."
	if tag.From == nil || tag.From.Kind != "DockerImage" {
		return manifestfilter.Fail(reasonImageNotByDigest, fmt.Sprintf("the tag %q does not name a DockerImage", words.External(tag.Name)), remedy)
	}
	if _, err := name.NewDigest(tag.From.Name, name.StrictValidation); err != nil {
		return manifestfilter.Fail(reasonImageNotByDigest, fmt.Sprintf("the tag %q is %q, which is not a pull spec by digest", words.External(tag.Name), words.External(tag.From.Name)), remedy)
	}
	return nil
}

// unmarshal parses JSON with case-sensitive fields and the given strictness.
func unmarshal(content []byte, into any, strict ...kjson.StrictOption) error {
	if err := manifestdoc.CheckSize(content); err != nil {
		return err
	}
	violations, err := kjson.UnmarshalStrict(content, into, strict...)
	if err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	if len(violations) > 0 {
		return violations[0]
	}
	return nil
}

func invalid(file string, err error) error {
	failure := imagefiles.Reject(reasonInvalidRelease, "%s/%s is invalid", imagefiles.ReleaseDirectory, file)
	failure.Err = err
	return failure
}
