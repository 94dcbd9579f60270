// Package payload answers: which checks does this release ship?
//
// [Extract] reads the manifests of a release image, and returns the [Release]: its check Jobs, their supporting
// objects, the list of the release's images and its metadata. It requires proof that the release's digest was verified.
//
// # Bounds
//
// All input from a registry or release is bounded: the manifests of the image (4 MiB), the layer (64 MiB), its
// decompressed size (512 MiB), each file in it (8 MiB), their number (20 000), each document in a file (3 MiB and 100
// 000 tokens), all annotated objects (8 MiB, and 48 MiB decoded), all CustomResourceDefinitions, ClusterImagePolicies
// and ImageStreams (48 MiB for each of the kinds, and 200 levels for each object) and the number of problems (1 000).
// The total time is at most four minutes. The layer is held in memory, and written only to the cache, if there is one;
// beyond it, at most one file is held in memory.
package payload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	imagev1 "github.com/openshift/api/image/v1"
	yaml "go.yaml.in/yaml/v3"
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
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
)

// Options configure how a release is read. The zero value reads it from the
// repository in the pull spec, without credentials, for an unknown cluster.
type Options struct {
	// Access resolves and reaches the cluster's registries.
	Access *registry.Access
	// Cache stores content between runs; nil for none.
	Cache imagefiles.Cache
	// Cluster decides which manifests apply.
	Cluster manifestfilter.Cluster
	// Manifests keeps the manifests of all kinds, of at most 48 MiB, and not only those that checks compare.
	Manifests bool
}

// Extract reads the release that proof is for. The error is always an
// *Error, and then there is no result. Violations of single manifests are
// among the Problems of the Release.
func Extract(ctx context.Context, proof signature.Release, options Options) (*Release, error) {
	manifests := newManifests(&options.Cluster)
	if options.Manifests {
		manifests.all = &definitions{}
	}
	source := imagefiles.Source{Access: options.Access, Cache: options.Cache, Architecture: options.Cluster.Architecture}
	reading, err := imagefiles.ReadRelease(ctx, proof, source, manifests.add)
	if err != nil {
		return nil, err
	}
	release, err := manifests.release()
	if err != nil {
		return nil, err
	}
	release.Image = proof.PullSpec()
	release.ManifestLayerBytes, release.BytesRead, release.Child = reading.Layer, reading.Read, reading.Child
	return release, nil
}

// ReadManifests reads manifests that are not part of a release yet, by file name. The rules and bounds of a release
// apply, except the filters, because there is no cluster. Of the Release it sets only Jobs, Supporting and Problems.
// The error is an *Error.
func ReadManifests(files map[string][]byte) (*Release, error) {
	manifests := newManifests(nil)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := manifests.add(name, files[name]); err != nil {
			return nil, err
		}
	}
	release := &Release{}
	if err := manifests.gather(release); err != nil {
		return nil, err
	}
	return release, nil
}

// add reads one file. Only YAML and JSON files are manifests, by the same
// extensions as for the cluster-version operator (pkg/payload/payload.go).
func (m *manifests) add(file string, content []byte) error {
	switch file {
	case referencesFile:
		m.references = content
		return nil
	case metadataFile:
		m.metadata = content
		return nil
	}
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file)) {
		return nil
	}
	documents, err := manifestdoc.Split(content)
	if err != nil {
		m.report(file, manifestdoc.Place{}, broken(content, err))
	}
	for _, each := range documents {
		if !m.addDocument(file, content, each) {
			break
		}
	}
	return m.bounded()
}

// addDocument reads one document, and reports whether the next one can be read.
func (m *manifests) addDocument(file string, content []byte, doc manifestdoc.Document) bool {
	root, err := doc.Tree()
	if err != nil {
		m.report(file, doc.Place, broken(content, err))
		return false
	}
	if root == nil {
		return true
	}
	m.gates.add(file, doc.Place, root)
	if m.cluster != nil {
		m.crds.add(*m.cluster, file, doc, root)
		m.policies.add(*m.cluster, file, doc, root)
		m.streams.add(*m.cluster, file, doc, root)
		if m.all != nil {
			m.all.add(*m.cluster, file, doc, root)
		}
	}
	line := mention(root)
	if line == 0 {
		m.report(file, doc.Place, incomplete(root))
		return true
	}
	m.annotated += len(doc.Raw)
	m.kept += bytesPerNode*manifestdoc.Count(root) + bytesPerItem*manifestdoc.Items(root)
	object, violation := m.preflight(doc, root, doc.Line+line-1)
	m.report(file, doc.Place, violation)
	if object != nil {
		m.found = append(m.found, manifestdoc.Located[Object]{
			File: file, Place: doc.Place, Lines: manifestdoc.LinesOf(root, doc.Line),
			Value: object,
		})
	}
	return true
}

// broken reports a file that cannot be parsed. Its kind is unknown, so it fails only if it mentions the annotation.
func broken(content []byte, err error) *manifestfilter.Violation {
	if !bytes.Contains(content, []byte(Annotation)) {
		return manifestfilter.Warn(reasonBrokenManifest, "the file cannot be parsed: "+words.External(err.Error()),
			"Report it to the authors of the component: the cluster-version operator would reject the release.")
	}
	return manifestfilter.Fail(reasonBrokenPreflight, "the file mentions "+Annotation+" and cannot be parsed: "+words.External(err.Error()),
		"Report it to the authors of the component: the check in this file cannot run.")
}

// incomplete warns about documents without the annotation that the
// cluster-version operator would reject (openshift/library-go pkg/manifest).
func incomplete(root *yaml.Node) *manifestfilter.Violation {
	if manifestdoc.Text(root, "kind") != "" && manifestdoc.Text(manifestdoc.Child(root, "metadata"), "name") != "" {
		return nil
	}
	return manifestfilter.Warn(reasonBrokenManifest, "the document is not an object with kind and metadata.name",
		"Report it to the authors of the component: the cluster-version operator would reject the release.")
}

func (m *manifests) release() (*Release, error) {
	if m.references == nil || m.metadata == nil {
		failure := imagefiles.Reject(reasonNotARelease, "the last layer has no %s/%s or no %s/%s; it is not a release image",
			imagefiles.ReleaseDirectory, referencesFile, imagefiles.ReleaseDirectory, metadataFile)
		failure.Remediation, failure.Actions = "Specify a release image: `oc adm release info` describes one.", nil
		return nil, failure
	}
	release, err := m.describe()
	if err != nil {
		return nil, err
	}
	return release, m.gather(release)
}

// gather adds the collected objects, without duplicates, and the problems to the release.
func (m *manifests) gather(release *Release) error {
	manifestdoc.SortLocated(m.found)
	first := map[string]string{}
	for _, each := range m.found {
		key := manifestfilter.Identity(each.Value)
		if other, ok := first[key]; ok {
			m.report(each.File, each.Place, manifestfilter.Fail(reasonDuplicateManifest, key+" is also in "+words.External(other),
				"Report it to the authors of the component: only one of the two can be correct."))
			continue
		}
		first[key] = each.File
		release.keep(each)
	}
	gates, violation := m.gates.merged()
	m.report(m.gates.over, manifestdoc.Place{}, violation)
	release.AdminGates = gates
	crds, violation := m.crds.merged(release.Version)
	m.report(m.crds.over, manifestdoc.Place{}, violation)
	release.Definitions = crds
	policies, violation := m.policies.merged(release.Version)
	m.report(m.policies.over, manifestdoc.Place{}, violation)
	release.ImagePolicies = policies
	streams, violation := m.streams.merged(release.Version)
	m.report(m.streams.over, manifestdoc.Place{}, violation)
	release.ImageStreams = streams
	if m.all != nil {
		all, violation := m.all.merged(release.Version)
		m.report(m.all.over, manifestdoc.Place{}, violation)
		release.Manifests = all
	}
	manifestdoc.SortLocated(m.problems)
	for _, each := range m.problems {
		if each.Value.Blocks && release.Version != "" {
			each.Value.BlockedTargets = []string{release.Version}
		}
		release.Problems = append(release.Problems, each.Value)
	}
	return m.bounded()
}

// mention returns the line of the first key, anywhere in the tree, that is the
// annotation; 0 when there is none. It does not follow aliases, so it ends.
func mention(node *yaml.Node) int {
	for i, inner := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && inner.Value == Annotation {
			return inner.Line
		}
		if line := mention(inner); line > 0 {
			return line
		}
	}
	return 0
}

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
		return "", nil, invalid(referencesFile, fmt.Errorf("it is a %q of %q instead of an ImageStream of %s", words.External(stream.Kind),
			words.External(stream.APIVersion), imagev1.GroupVersion))
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
		return manifestfilter.Fail(reasonImageNotByDigest, fmt.Sprintf("the tag %q does not name a DockerImage", words.External(tag.Name)),
			remedy)
	}
	if _, err := name.NewDigest(tag.From.Name, name.StrictValidation); err != nil {
		return manifestfilter.Fail(reasonImageNotByDigest,
			fmt.Sprintf("the tag %q is %q, which is not a pull spec by digest", words.External(tag.Name), words.External(tag.From.Name)), remedy)
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
	// maxKept bounds the estimated memory of all annotated objects, in bytes: a list item of two bytes can become a
	// container of half a KiB, while the field of a structure adds only its line. It is sufficient for more than five
	// thousand Jobs like the ones in the SDK's guide. maxObjectNodes bounds the fields and items of one object.
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
	// all are the manifests of all kinds; nil if they are not kept.
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
		return imagefiles.Reject(reasonTooManyPreflights, "the objects with the annotation %s would take more than %d bytes of memory",
			Annotation, maxKept)
	case len(m.problems) > maxProblems:
		return imagefiles.Reject(reasonTooManyProblems, "more than %d manifests are invalid; the first: %s", maxProblems,
			m.problems[0].Value.Message)
	}
	return nil
}

// maxGateBytes bounds the admin gates of a release, their names and their
// descriptions together. The longest description so far has some hundred bytes.
const maxGateBytes = 256 << 10

type adminGates struct {
	found []manifestdoc.Located[map[string]string]
	bytes int
	// over is the file that exceeded the limit.
	over string
}

// add collects the gates of a document: the data of the
// ConfigMap openshift-config-managed/admin-gates, in any manifest
// (cluster-version-operator install, 01_admingate).
func (g *adminGates) add(file string, at manifestdoc.Place, root *yaml.Node) {
	metadata := manifestdoc.Child(root, "metadata")
	if manifestdoc.Text(root, "kind") != "ConfigMap" || manifestdoc.Text(metadata, "namespace") != "openshift-config-managed" ||
		manifestdoc.Text(metadata, "name") != "admin-gates" {
		return
	}
	gates := map[string]string{}
	if data := manifestdoc.Child(root, "data"); data != nil && data.Kind == yaml.MappingNode {
		for i := 0; i < len(data.Content); i += 2 {
			key := data.Content[i].Value
			gates[key] = manifestdoc.Text(data, key)
			g.bytes += len(key) + len(gates[key])
		}
	}
	switch {
	case g.bytes <= maxGateBytes:
		g.found = append(g.found, manifestdoc.Located[map[string]string]{File: file, Place: at, Value: gates})
	case g.over == "":
		g.over = file
	}
}

// merged are the gates of all manifests: CVO applies the manifests in the order of
// their names, so the last description of a gate wins. Above the limit, none
// is returned rather than some.
func (g *adminGates) merged() (map[string]string, *manifestfilter.Violation) {
	if g.over != "" {
		return nil, manifestfilter.Warn(ReasonTooManyAdminGates,
			fmt.Sprintf("the admin gates of the release have more than %d bytes, so none is reported", maxGateBytes),
			"Read the admin gates in the release: `oc adm release extract` writes its manifests.")
	}
	manifestdoc.SortLocated(g.found)
	var all map[string]string
	for _, manifest := range g.found {
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, manifest.Value)
	}
	return all, nil
}
