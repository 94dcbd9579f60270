package payload

import (
	"bytes"
	"path"
	"slices"

	yaml "go.yaml.in/yaml/v3"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

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
		m.found = append(m.found, manifestdoc.Located[Object]{File: file, Place: doc.Place, Lines: manifestdoc.LinesOf(root, doc.Line), Value: object})
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
		"Report it to the authors of the component: the check in this file cannot be run.")
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
		failure := imagefiles.Reject(reasonNotARelease, "the last layer has no %s/%s or no %s/%s; it is not a release image", imagefiles.ReleaseDirectory, referencesFile, imagefiles.ReleaseDirectory, metadataFile)
		failure.Remediation, failure.Actions = "Name a release image: `oc adm release info` describes one.", nil
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
			m.report(each.File, each.Place, manifestfilter.Fail(reasonDuplicateManifest, key+" is also in "+words.External(other), "Report it to the authors of the component: only one of the two can be right."))
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
