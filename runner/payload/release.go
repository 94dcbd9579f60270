package payload

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	yaml "go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

// Release is the content of a release: its metadata, images and preflights.
type Release struct {
	// Release identifies it: its version is the same in both files that state it, its
	// image is the verified pull spec.
	update.Release
	// Previous are the versions from which the release can be reached, by its metadata.
	Previous []string
	// Child is the digest of the image for the architecture of the cluster if the release is an index; empty otherwise,
	// and if the architecture is unknown.
	Child string
	// Metadata is free text by key, for example "url".
	Metadata map[string]string
	// Images maps the name of a component to its pull spec, always by digest.
	Images map[string]string
	// AdminGates are the descriptions of the admin gates of the release, by key: a
	// cluster that runs it must acknowledge them before it leaves a minor version.
	AdminGates map[string]string
	// Definitions are the CustomResourceDefinitions that the cluster-version operator
	// would apply to the cluster or delete from it, or for which that is unknown,
	// sorted by file; for each name the last one.
	Definitions []Definition
	// ImagePolicies are the ClusterImagePolicies, as Definitions are.
	ImagePolicies []Definition
	// ImageStreams are those for the cluster, as Definitions are; the list of the images is not among them.
	ImageStreams []Definition
	// Manifests are the manifests of all kinds for the cluster, in the order in which the operator applies them; nil
	// unless Options.Manifests is set, or if they exceed the limit.
	Manifests []Definition
	// Jobs and Supporting are sorted by file, then by place in the file.
	Jobs       []Job
	Supporting []Supporting
	// Problems are warnings and failures, sorted by file and place. Each names
	// its file; those that fail or are inconclusive block the update to Version.
	Problems []finding.Finding
	// ManifestLayerBytes is the compressed size of the layer that holds the
	// manifests; BytesRead is the total size of all responses of registries,
	// 0 when the cache had all content.
	ManifestLayerBytes int64
	BytesRead          int64
}

// Job is one preflight Job, as its author wrote it.
type Job struct {
	// File is the sanitized name of the manifest, Component the part of it that identifies
	// the component that ships it.
	File      string
	Component string
	// Lines are the lines of the Job's fields in the file.
	Lines manifestdoc.Lines
	// Management is true for a Job that runs in the management cluster if the cluster is hosted.
	Management bool
	Job        *batchv1.Job
}

// Supporting is an annotated object that Jobs need: a ServiceAccount, Role,
// ClusterRole, RoleBinding, ClusterRoleBinding or ConfigMap.
type Supporting struct {
	File       string
	Component  string
	Lines      manifestdoc.Lines
	Management bool
	Object     Object
}

// keep adds an object under the sanitized name of its file, which findings, listings and annotations show.
func (r *Release) keep(each manifestdoc.Located[Object]) {
	file := words.External(each.File)
	if job, ok := each.Value.(*batchv1.Job); ok {
		r.Jobs = append(r.Jobs, Job{
			File: file, Component: manifestfilter.Component(file), Lines: each.Lines,
			Management: manifestfilter.ForManagement(job), Job: job,
		})
		return
	}
	r.Supporting = append(r.Supporting, Supporting{
		File: file, Component: manifestfilter.Component(file), Lines: each.Lines,
		Management: manifestfilter.ForManagement(each.Value), Object: each.Value,
	})
}

// Annotation marks a Job as a preflight, and other objects as its supporting
// objects, when its value is "true" (openshift/enhancements#363).
const Annotation = "openshift.io/preflight-check"

// deleteAnnotation makes the cluster-version operator delete the object (lib/resourcedelete/helper.go).
const deleteAnnotation = "release.openshift.io/delete"

// Object is a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}

const (
	metadataFile = "release-metadata"
	metadataKind = "cincinnati-metadata-v0"
)

// releaseMetadata is the file that "oc adm release new" writes for the update
// service (openshift/oc pkg/cli/admin/release/new.go).
type releaseMetadata struct {
	Kind     string         `json:"kind"`
	Version  string         `json:"version"`
	Previous []string       `json:"previous"`
	Metadata map[string]any `json:"metadata"`
}

// describe reads the two files that every release has, and checks that they belong to the same release, as the
// cluster-version operator does (pkg/payload/payload.go).
func (m *manifests) describe() (*Release, error) {
	metadata, err := m.readMetadata()
	if err != nil {
		return nil, err
	}
	named, images, err := m.readReferences()
	if err != nil {
		return nil, err
	}
	if named != metadata.Version {
		return nil, imagefiles.Reject(reasonVersionMismatch, "%s contains version %q, but %s contains %q", referencesFile, words.External(named),
			metadataFile, words.External(metadata.Version))
	}
	release := &Release{
		Release: update.Release{Version: metadata.Version}, Previous: metadata.Previous, Images: images,
		Metadata: map[string]string{},
	}
	for _, key := range slices.Sorted(maps.Keys(metadata.Metadata)) {
		value, ok := metadata.Metadata[key].(string)
		if !ok {
			m.report(metadataFile, manifestdoc.Place{}, manifestfilter.Warn(reasonMetadataNotString,
				fmt.Sprintf("the value of metadata %q is not a string; it is ignored", words.External(key)),
				"Report it to the publisher of the release."))
			continue
		}
		release.Metadata[key] = value
	}
	return release, nil
}

// readMetadata reads release-metadata. Unknown fields are ignored, as in the cluster-version operator.
func (m *manifests) readMetadata() (releaseMetadata, error) {
	var metadata releaseMetadata
	if err := unmarshal(m.metadata, &metadata, kjson.DisallowDuplicateFields); err != nil {
		return releaseMetadata{}, invalid(metadataFile, err)
	}
	if metadata.Kind != metadataKind {
		return releaseMetadata{}, invalid(metadataFile, fmt.Errorf("its kind is %q, not %q", words.External(metadata.Kind), metadataKind))
	}
	if _, err := semver.Parse(metadata.Version); err != nil {
		return releaseMetadata{}, invalid(metadataFile,
			fmt.Errorf("its version %q is not a semantic version: %w", words.External(metadata.Version), err))
	}
	return metadata, nil
}

const (
	// maxDefinitionBytes bounds the manifests of a kind in a release: several times
	// the CustomResourceDefinitions of OpenShift.
	maxDefinitionBytes = 48 << 20
	// maxDefinitionDepth bounds the depth of one manifest: four times the depth of a schema with a pod template.
	maxDefinitionDepth = 200
)

// Definition is the manifest of an object, such as a CustomResourceDefinition, that the cluster-version operator would apply to
// the cluster, or delete from it.
type Definition struct {
	// File is the sanitized name of the manifest's file.
	File string
	// Kind is the kind of the object, as its author wrote it.
	Kind schema.GroupVersionKind
	// Namespace and Name identify the object, as its author wrote them.
	Namespace, Name string
	// Deleted is true when the operator would delete the object.
	Deleted bool
	// IfPresent is true for a manifest of a disabled capability: the operator applies it if it already manages the
	// object, which enables the capability (CVO lib/capability, GetImplicitlyEnabledCapabilities). Only
	// Release.Manifests has these.
	IfPresent bool
	// Cause is why it is unknown whether the operator would apply the manifest, or why
	// the manifest cannot be decoded; empty for a manifest that it would apply.
	Cause string
	// Manifest is the document, as YAML or JSON.
	Manifest []byte
}

// collected is a definition before the version of the release is known.
type collected struct {
	Definition

	// major has the major versions of releases for which the manifest is; nil for all.
	major *string
}

// identity is the part that two manifests of one object share.
type identity struct {
	schema.GroupKind
	namespace, name string
}

func (d Definition) object() identity { return identity{d.Kind.GroupKind(), d.Namespace, d.Name} }

// Decode returns the CustomResourceDefinition, without defaults. Unknown fields are
// ignored, as the API server does.
func (d Definition) Decode() (*apiextensionsv1.CustomResourceDefinition, error) {
	decoded := &apiextensionsv1.CustomResourceDefinition{}
	return decoded, d.Into(decoded)
}

// Into decodes the object, without defaults.
func (d Definition) Into(object any) error {
	if d.Cause != "" {
		return errors.New(d.Cause)
	}
	if err := kyaml.Unmarshal(d.Manifest, object); err != nil {
		return fmt.Errorf("%s cannot be decoded: %s", d.File, words.External(err.Error()))
	}
	return nil
}

// Object decodes the object, whatever its kind, without defaults. Numbers are as in the answers of an API server.
func (d Definition) Object() (*unstructured.Unstructured, error) {
	if d.Cause != "" {
		return nil, errors.New(d.Cause)
	}
	object := &unstructured.Unstructured{}
	content, err := kyaml.YAMLToJSON(d.Manifest)
	if err == nil {
		err = object.UnmarshalJSON(content)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be decoded: %s", d.File, words.External(err.Error()))
	}
	return object, nil
}

// definitions are the objects of a kind in a release, by manifest; without a kind, the objects of all kinds.
type definitions struct {
	group, kind string

	found []manifestdoc.Located[collected]
	bytes int
	// over is the file that exceeded the limit.
	over string
}

// add collects the document if it has the kind, and the cluster-version operator would not skip it on the cluster.
func (d *definitions) add(cluster manifestfilter.Cluster, file string, doc manifestdoc.Document, root *yaml.Node) {
	version, found := strings.CutPrefix(manifestdoc.Text(root, "apiVersion"), d.group+"/")
	if d.kind != "" && (!found || manifestdoc.Text(root, "kind") != d.kind) {
		return
	}
	object := metadataOf(root)
	var major *string
	if of, ok := object.Annotations[manifestfilter.MajorVersionAnnotation]; ok {
		major = &of
		delete(object.Annotations, manifestfilter.MajorVersionAnnotation) // the rule of the filter is for Jobs
	}
	ifPresent := d.kind == "" && cluster.WithoutCapability(object)
	if ifPresent {
		delete(object.Annotations, manifestfilter.CapabilityAnnotation)
	}
	cause, applies := define(cluster, object)
	if !applies || object.Kind == "" || object.Name == "" {
		return // an object without a kind or a name is a problem of the release
	}
	switch {
	case cause != "":
	case d.kind != "" && version != "v1":
		cause = fmt.Sprintf("its apiVersion is %s/%s, which the API server does not serve", d.group, words.External(version))
	default:
		cause = undecodable(root)
	}
	if d.bytes += len(doc.Raw); d.bytes > maxDefinitionBytes {
		if d.over == "" {
			d.over = file
		}
		return
	}
	d.found = append(d.found, manifestdoc.Located[collected]{
		File: file, Place: doc.Place,
		Value: collected{major: major, Definition: Definition{
			File: words.External(file), Kind: object.GroupVersionKind(), Namespace: object.Namespace, Name: object.Name,
			Deleted: object.Annotations[deleteAnnotation] == "true", IfPresent: ifPresent, Cause: cause,
			Manifest: bytes.Clone(doc.Plain()),
		}},
	})
}

// isFor reports whether the operator applies the manifest of a release of this version, by its major version
// (openshift/library-go pkg/manifest, checkMajorVersion): it has to be among those that are listed, if any is, and not among those
// with a minus sign. A list that cannot be read, or contradicts itself, and one of another kind, exclude the manifest.
func (d collected) isFor(version string) bool {
	if d.major == nil {
		return true
	}
	release, err := semver.Parse(version)
	if err != nil || d.Kind.Kind != "FeatureGate" && d.Kind.Kind != "CustomResourceDefinition" {
		return false
	}
	included, excluded, ok := majorVersions(*d.major)
	contradicts := func(major uint64) bool { return slices.Contains(excluded, major) }
	switch {
	case !ok, slices.ContainsFunc(included, contradicts), contradicts(release.Major):
		return false
	}
	return len(included) == 0 || slices.Contains(included, release.Major)
}

// majorVersions returns the versions in a list, and those with a minus sign; false for a list that cannot be read.
func majorVersions(list string) (included, excluded []uint64, ok bool) {
	for item := range strings.SplitSeq(list, ",") {
		number, minus := strings.CutPrefix(strings.TrimSpace(item), "-")
		if number == "" && !minus {
			continue
		}
		major, err := strconv.ParseUint(number, 10, 64)
		switch {
		case err != nil:
			return nil, nil, false
		case minus:
			excluded = append(excluded, major)
		default:
			included = append(included, major)
		}
	}
	return included, excluded, true
}

// metadataOf returns what the filters need of an object. Annotations that are not scalars are not returned.
func metadataOf(root *yaml.Node) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
		APIVersion: manifestdoc.Text(root, "apiVersion"),
		Kind:       manifestdoc.Text(root, "kind"),
	}}
	metadata := manifestdoc.Child(root, "metadata")
	object.Namespace, object.Name = manifestdoc.Text(metadata, "namespace"), manifestdoc.Text(metadata, "name")
	object.Annotations = map[string]string{}
	if annotations := manifestdoc.Child(metadata, "annotations"); annotations != nil && annotations.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(annotations.Content); i += 2 {
			if value := manifestdoc.Target(annotations.Content[i+1]); value.Kind == yaml.ScalarNode {
				object.Annotations[annotations.Content[i].Value] = value.Value
			}
		}
	}
	return object
}

// define applies the filters to an object. Unlike a Job of a
// preflight, it needs the annotation of the cluster's profile. The cause is why the
// filters are inconclusive.
func define(c manifestfilter.Cluster, object *metav1.PartialObjectMetadata) (cause string, applies bool) {
	if violated := c.Filter(object); violated != nil {
		// The CVO of the target applies the definition, and may know a newer feature set.
		return violated.Message, violated.Outcome != preflight.Skipped || violated.Reason == manifestfilter.ReasonUnknownFeatureSet
	}
	included, _ := c.Include(object)
	return "", included != ""
}

// undecodable returns why a manifest cannot be decoded, or whether that is unsafe.
func undecodable(root *yaml.Node) string {
	if what, line := manifestdoc.Irregular(root); what != "" {
		return fmt.Sprintf("the manifest has %s in line %d of the document", what, line)
	}
	if deeper(root, maxDefinitionDepth) {
		return fmt.Sprintf("the manifest is nested more than %d levels deep", maxDefinitionDepth)
	}
	return ""
}

// deeper reports whether the tree has more levels than limit.
func deeper(node *yaml.Node, limit int) bool {
	if limit == 0 {
		return true
	}
	for _, inner := range node.Content {
		if deeper(inner, limit-1) {
			return true
		}
	}
	return false
}

// merged are the definitions of a release of this version in the order of their manifests, without those that a
// later manifest of the same name replaces. Above the limit, none is returned
// rather than some.
func (d *definitions) merged(version string) ([]Definition, *manifestfilter.Violation) {
	if d.over != "" {
		return nil, &manifestfilter.Violation{
			Outcome: preflight.Unknown, Reason: reasonTooManyDefinitions,
			Message: fmt.Sprintf("the manifests of %s in the release have more than %d bytes, so none is checked", cmp.Or(d.kind, "all kinds"),
				maxDefinitionBytes),
			Remediation: "Read the manifests in the release: `oc adm release extract` writes them.",
		}
	}
	d.found = slices.DeleteFunc(d.found, func(each manifestdoc.Located[collected]) bool { return !each.Value.isFor(version) })
	manifestdoc.SortLocated(d.found)
	last := map[identity]int{}
	for i, each := range d.found {
		last[each.Value.object()] = i
	}
	var all []Definition
	for i, each := range d.found {
		if last[each.Value.object()] == i {
			all = append(all, each.Value.Definition)
		}
	}
	return all, nil
}
