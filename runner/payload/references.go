package payload

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	imagev1 "github.com/openshift/api/image/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/finding"
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

const (
	maxAnnotated = 8 << 20
	// maxKept bounds the estimated memory of all annotated objects, in bytes:
	// a list item of two bytes can become a container of half a KiB, while the
	// field of a structure adds only its line. It suffices
	// for more than five thousand Jobs like those of the SDK's guide.
	// maxObjectNodes bounds the fields and items of one object.
	maxKept        = 48 << 20
	bytesPerItem   = 600
	bytesPerNode   = 100
	maxObjectNodes = 5_000
	maxProblems    = 1_000
)

type manifests struct {
	// cluster is the cluster to filter for; nil for none.
	cluster    *manifestfilter.Cluster
	scheme     *runtime.Scheme
	references []byte
	metadata   []byte
	found      []manifestdoc.Located[Object]
	problems   []manifestdoc.Located[finding.Finding]
	gates      adminGates
	crds       definitions
	policies   definitions
	streams    definitions
	// all are those of all kinds; nil where they are not kept.
	all *definitions
	// annotated is the size of annotated objects in bytes, kept their estimated memory.
	annotated, kept int
}

func newManifests(cluster *manifestfilter.Cluster) *manifests {
	return &manifests{
		cluster: cluster, scheme: newScheme(),
		crds:     definitions{group: apiextensionsv1.GroupName, kind: "CustomResourceDefinition"},
		policies: definitions{group: configv1.GroupName, kind: "ClusterImagePolicy"},
		streams:  definitions{group: imagev1.GroupName, kind: "ImageStream"},
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(batchv1.SchemeGroupVersion, &batchv1.Job{})
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ServiceAccount{}, &corev1.ConfigMap{})
	scheme.AddKnownTypes(rbacv1.SchemeGroupVersion, &rbacv1.Role{}, &rbacv1.ClusterRole{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRoleBinding{})
	return scheme
}

func (m *manifests) report(file string, at manifestdoc.Place, found *manifestfilter.Violation) {
	if found != nil {
		m.problems = append(m.problems, manifestdoc.Located[finding.Finding]{File: file, Place: at, Value: found.At(file, at)})
	}
}

// bounded reports an exceeded limit.
func (m *manifests) bounded() error {
	switch {
	case m.annotated > maxAnnotated:
		return imagefiles.Reject(reasonTooManyPreflights, "the objects with the annotation %s have more than %d bytes", Annotation, maxAnnotated)
	case m.kept > maxKept:
		return imagefiles.Reject(reasonTooManyPreflights, "the objects with the annotation %s would take more than %d bytes of memory", Annotation, maxKept)
	case len(m.problems) > maxProblems:
		return imagefiles.Reject(reasonTooManyProblems, "more than %d manifests are invalid; the first: %s", maxProblems, m.problems[0].Value.Message)
	}
	return nil
}
