package payload

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/finding"
)

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

// manifests collects the relevant content of all files of a release.
type manifests struct {
	// cluster is the cluster to filter for; nil for none.
	cluster    *Cluster
	scheme     *runtime.Scheme
	references []byte
	metadata   []byte
	found      []located[Object]
	problems   []located[finding.Finding]
	gates      adminGates
	crds       definitions
	// annotated is the size of annotated objects in bytes, kept their estimated memory.
	annotated, kept int
}

// located is a value with its place in the release, by which it is sorted.
type located[T any] struct {
	file  string
	place place
	// lines are those of the fields, if the value is an object.
	lines Lines
	value T
}

func newManifests(cluster *Cluster) *manifests {
	return &manifests{cluster: cluster, scheme: newScheme()}
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
	documents, err := split(content)
	if err != nil {
		m.report(file, place{}, broken(content, err))
	}
	for _, each := range documents {
		if !m.addDocument(file, content, each) {
			break
		}
	}
	return m.bounded()
}

// addDocument reads one document, and reports whether the next one can be read.
func (m *manifests) addDocument(file string, content []byte, doc document) bool {
	root, err := doc.tree()
	if err != nil {
		m.report(file, doc.place, broken(content, err))
		return false
	}
	if root == nil {
		return true
	}
	m.gates.add(file, doc.place, root)
	if m.cluster != nil {
		m.crds.add(*m.cluster, file, doc, root)
	}
	line := mention(root)
	if line == 0 {
		m.report(file, doc.place, incomplete(root))
		return true
	}
	m.annotated += len(doc.raw)
	m.kept += bytesPerNode*count(root) + bytesPerItem*items(root)
	object, violation := m.preflight(doc, root, doc.line+line-1)
	m.report(file, doc.place, violation)
	if object != nil {
		m.found = append(m.found, located[Object]{file: file, place: doc.place, lines: linesOf(root, doc.line), value: object})
	}
	return true
}

func (m *manifests) report(file string, at place, found *violation) {
	if found != nil {
		m.problems = append(m.problems, located[finding.Finding]{file: file, place: at, value: found.at(file, at)})
	}
}

// bounded reports an exceeded limit.
func (m *manifests) bounded() error {
	switch {
	case m.annotated > maxAnnotated:
		return reject(ReasonTooManyPreflights, "the objects with the annotation %s have more than %d bytes", Annotation, maxAnnotated)
	case m.kept > maxKept:
		return reject(ReasonTooManyPreflights, "the objects with the annotation %s would take more than %d bytes of memory", Annotation, maxKept)
	case len(m.problems) > maxProblems:
		return reject(ReasonTooManyProblems, "more than %d manifests are invalid; the first: %s", maxProblems, m.problems[0].value.Message)
	}
	return nil
}

// broken reports a file that cannot be parsed. Its kind is unknown, so it fails
// only if it mentions the annotation.
func broken(content []byte, err error) *violation {
	if !bytes.Contains(content, []byte(Annotation)) {
		return warn(ReasonBrokenManifest, "the file cannot be parsed: "+oneLine(err.Error()),
			"Report it to the authors of the component: the cluster-version operator would reject the release.")
	}
	return fail(ReasonBrokenPreflight, "the file mentions "+Annotation+" and cannot be parsed: "+oneLine(err.Error()),
		"Report it to the authors of the component: the check in this file cannot be run.")
}

// incomplete warns about documents without the annotation that the
// cluster-version operator would reject (openshift/library-go pkg/manifest).
func incomplete(root *yaml.Node) *violation {
	if text(root, "kind") != "" && text(child(root, "metadata"), "name") != "" {
		return nil
	}
	return warn(ReasonBrokenManifest, "the document is not an object with kind and metadata.name",
		"Report it to the authors of the component: the cluster-version operator would reject the release.")
}

// release returns the release of the collected content.
func (m *manifests) release() (*Release, error) {
	if m.references == nil || m.metadata == nil {
		failure := reject(ReasonNotARelease, "the last layer has no %s/%s or no %s/%s; it is not a release image", manifestDirectory, referencesFile, manifestDirectory, metadataFile)
		failure.Remediation, failure.Actions = "Name a release image.", []finding.Action{finding.Run("oc adm release info")}
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
	sortLocated(m.found)
	first := map[string]string{}
	for _, each := range m.found {
		key := identity(each.value)
		if other, ok := first[key]; ok {
			m.report(each.file, each.place, fail(ReasonDuplicateManifest, key+" is also in "+oneLine(other), "Report it to the authors of the component: only one of the two can be right."))
			continue
		}
		first[key] = each.file
		release.keep(each)
	}
	gates, violation := m.gates.merged()
	m.report(m.gates.over, place{}, violation)
	release.AdminGates = gates
	crds, violation := m.crds.merged()
	m.report(m.crds.over, place{}, violation)
	release.Definitions = crds
	sortLocated(m.problems)
	for _, each := range m.problems {
		if each.value.Blocks && release.Version != "" {
			each.value.BlockedTargets = []string{release.Version}
		}
		release.Problems = append(release.Problems, each.value)
	}
	return m.bounded()
}

// keep adds an object under the sanitized name of its file, which findings, listings
// and annotations show.
func (r *Release) keep(each located[Object]) {
	file := oneLine(each.file)
	if job, ok := each.value.(*batchv1.Job); ok {
		r.Jobs = append(r.Jobs, Job{File: file, Component: component(file), Lines: each.lines, Job: job})
		return
	}
	r.Supporting = append(r.Supporting, Supporting{File: file, Component: component(file), Lines: each.lines, Object: each.value})
}

func sortLocated[T any](items []located[T]) {
	slices.SortStableFunc(items, func(a, b located[T]) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.place.number-b.place.number)
	})
}

// identity names an object in messages.
func identity(object Object) string {
	kind := object.GetObjectKind().GroupVersionKind().GroupKind().String()
	return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
}
