package payload

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	yaml "go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	maxAnnotated = 8 << 20
	// maxKept bounds the memory that all annotated objects take, by an estimate:
	// a list item of two bytes can become a container of half a KiB, while a
	// field of a structure is there anyway, and only the line of it is new. It is
	// enough for more than five thousand Jobs as the SDK's guide has them.
	// maxObjectNodes bounds the fields and items of one object.
	maxKept        = 48 << 20
	bytesPerItem   = 600
	bytesPerNode   = 100
	maxObjectNodes = 5_000
	maxProblems    = 1_000
)

// manifests gathers what matters of all files of a release.
type manifests struct {
	// cluster is what manifests are filtered for, nil when there is none.
	cluster    *Cluster
	scheme     *runtime.Scheme
	references []byte
	metadata   []byte
	found      []located[Object]
	problems   []located[finding.Finding]
	gates      adminGates
	// annotated counts the bytes of annotated objects, kept is what they become.
	annotated, kept int
}

// located is something at a place in the release, by which it is sorted.
type located[T any] struct {
	file  string
	place place
	// lines are those of the fields, where the file was read as an object.
	lines Lines
	value T
}

func newManifests(cluster *Cluster) *manifests {
	return &manifests{cluster: cluster, scheme: newScheme()}
}

// add looks at one file. Only YAML and JSON files are manifests, by the same
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

// addDocument looks at one document, and says whether the file is sound so far.
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
	line := mention(root)
	if line == 0 {
		m.report(file, doc.place, incomplete(root))
		return true
	}
	m.annotated += len(doc.raw)
	m.kept += bytesPerNode*count(root) + bytesPerItem*items(root)
	object, problem := m.preflight(doc, root, doc.line+line-1)
	m.report(file, doc.place, problem)
	if object != nil {
		m.found = append(m.found, located[Object]{file: file, place: doc.place, lines: linesOf(root, doc.line), value: object})
	}
	return true
}

func (m *manifests) report(file string, at place, said *problem) {
	if said != nil {
		m.problems = append(m.problems, located[finding.Finding]{file: file, place: at, value: said.at(file, at)})
	}
}

// bounded ends the reading when too much was found to be kept.
func (m *manifests) bounded() error {
	switch {
	case m.annotated > maxAnnotated:
		return refuse("TooManyPreflights", "the objects with the annotation %s have more than %d bytes", Annotation, maxAnnotated)
	case m.kept > maxKept:
		return refuse("TooManyPreflights", "the objects with the annotation %s would take more than %d bytes of memory", Annotation, maxKept)
	case len(m.problems) > maxProblems:
		return refuse("TooManyProblems", "more than %d manifests have problems, the first being: %s", maxProblems, m.problems[0].value.Message)
	}
	return nil
}

// broken says that a file cannot be parsed. Nobody can tell what it was meant
// to be, so it counts by whether it mentions the annotation.
func broken(content []byte, err error) *problem {
	if !bytes.Contains(content, []byte(Annotation)) {
		return warn("BrokenManifest", "the file cannot be parsed: "+oneLine(err.Error()),
			"Report it to the authors of the component: the cluster-version operator would refuse the release.")
	}
	return fail("BrokenPreflight", "the file mentions "+Annotation+" and cannot be parsed: "+oneLine(err.Error()),
		"Report it to the authors of the component: the check in this file cannot be run.")
}

// incomplete warns about documents without the annotation that the
// cluster-version operator would refuse (openshift/library-go pkg/manifest).
func incomplete(root *yaml.Node) *problem {
	if text(root, "kind") != "" && text(child(root, "metadata"), "name") != "" {
		return nil
	}
	return warn("BrokenManifest", "the document is not an object with kind and metadata.name",
		"Report it to the authors of the component: the cluster-version operator would refuse the release.")
}

// release puts together what was found.
func (m *manifests) release() (*Release, error) {
	if m.references == nil || m.metadata == nil {
		failure := refuse("NotARelease", "the last layer has no %s/%s or no %s/%s: this is not a release image", manifestDirectory, referencesFile, manifestDirectory, metadataFile)
		failure.Remediation = "Give the pull spec of a release image: oc adm release info"
		return nil, failure
	}
	release, err := m.describe()
	if err != nil {
		return nil, err
	}
	return release, m.gather(release)
}

// gather gives the release what was found, once each, and what there is to say.
func (m *manifests) gather(release *Release) error {
	sortLocated(m.found)
	first := map[string]string{}
	for _, each := range m.found {
		key := identity(each.value)
		if other, ok := first[key]; ok {
			m.report(each.file, each.place, fail("DuplicateManifest", key+" is also in "+oneLine(other), "Report it to the authors of the component: only one of the two can be right."))
			continue
		}
		first[key] = each.file
		release.keep(each)
	}
	gates, problem := m.gates.merged()
	m.report(m.gates.over, place{}, problem)
	release.AdminGates = gates
	sortLocated(m.problems)
	for _, each := range m.problems {
		if each.value.Blocks && release.Version != "" {
			each.value.BlockedTargets = []string{release.Version}
		}
		release.Problems = append(release.Problems, each.value)
	}
	return m.bounded()
}

func (r *Release) keep(each located[Object]) {
	if job, ok := each.value.(*batchv1.Job); ok {
		r.Jobs = append(r.Jobs, Job{File: each.file, Component: component(each.file), Lines: each.lines, Job: job})
		return
	}
	r.Supporting = append(r.Supporting, Supporting{File: each.file, Component: component(each.file), Lines: each.lines, Object: each.value})
}

func sortLocated[T any](items []located[T]) {
	slices.SortStableFunc(items, func(a, b located[T]) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.place.number-b.place.number)
	})
}

// identity names an object as people do.
func identity(object Object) string {
	kind := object.GetObjectKind().GroupVersionKind().GroupKind().String()
	return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
}
