package payload

import (
	"fmt"
	"maps"

	yaml "go.yaml.in/yaml/v3"

	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

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
	if manifestdoc.Text(root, "kind") != "ConfigMap" || manifestdoc.Text(metadata, "namespace") != "openshift-config-managed" || manifestdoc.Text(metadata, "name") != "admin-gates" {
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
		return nil, manifestfilter.Warn(ReasonTooManyAdminGates, fmt.Sprintf("the admin gates of the release have more than %d bytes, so none is reported", maxGateBytes),
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
