package payload

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	imagev1 "github.com/openshift/api/image/v1"
	kjson "sigs.k8s.io/json"
)

const referencesFile = "image-references"

// readReferences reads image-references: an ImageStream that has the name of
// the release and lists its images. It reports images that are not by digest,
// and leaves them out.
func (m *manifests) readReferences() (string, map[string]string, error) {
	var stream imagev1.ImageStream
	if err := unmarshal(m.references, &stream, kjson.DisallowDuplicateFields, kjson.DisallowUnknownFields); err != nil {
		return "", nil, invalid(referencesFile, err)
	}
	if stream.Kind != "ImageStream" || stream.APIVersion != imagev1.GroupVersion.String() {
		return "", nil, invalid(referencesFile, fmt.Errorf("it is a %q of %q, not an ImageStream of %s", oneLine(stream.Kind), oneLine(stream.APIVersion), imagev1.GroupVersion))
	}
	images := make(map[string]string, len(stream.Spec.Tags))
	seen := make(map[string]bool, len(stream.Spec.Tags))
	for _, tag := range stream.Spec.Tags {
		if tag.Name == "" || seen[tag.Name] {
			return "", nil, invalid(referencesFile, fmt.Errorf("it has the tag %q twice, or without a name", oneLine(tag.Name)))
		}
		seen[tag.Name] = true
		if fault := checkReference(tag); fault != nil {
			m.report(referencesFile, place{}, fault)
			continue
		}
		images[tag.Name] = tag.From.Name
	}
	if len(seen) == 0 {
		return "", nil, invalid(referencesFile, errors.New("it lists no image"))
	}
	return stream.Name, images, nil
}

func checkReference(tag imagev1.TagReference) *problem {
	const remedy = "Do not update to this release: what it would run is not bound to its signature."
	if tag.From == nil || tag.From.Kind != "DockerImage" {
		return fail("ImageNotByDigest", fmt.Sprintf("the tag %q does not name a DockerImage", oneLine(tag.Name)), remedy)
	}
	if _, err := name.NewDigest(tag.From.Name, name.StrictValidation); err != nil {
		return fail("ImageNotByDigest", fmt.Sprintf("the tag %q is %q, which is not a pull spec by digest", oneLine(tag.Name), oneLine(tag.From.Name)), remedy)
	}
	return nil
}

// unmarshal reads JSON with fields in exactly the case that they have, and with
// the strictness given.
func unmarshal(content []byte, into any, strict ...kjson.StrictOption) error {
	if err := checkSize(content); err != nil {
		return err
	}
	faults, err := kjson.UnmarshalStrict(content, into, strict...)
	if err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	if len(faults) > 0 {
		return faults[0]
	}
	return nil
}

// invalid is the error for a file without which there is no release.
func invalid(file string, err error) error {
	failure := refuse("InvalidRelease", "%s/%s cannot be used", manifestDirectory, file)
	failure.Err = err
	return failure
}
