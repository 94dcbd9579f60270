package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	yaml "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/words"
)

const (
	// apiVersion and kind of an acceptance file.
	apiVersion = "preflight.openshift.io/v1alpha1"
	kind       = "AcceptedRisks"
	// maxFile bounds a file, in bytes.
	maxFile = 1 << 20
	// maxError bounds an error of a parser, in bytes.
	maxError = 4 << 10
	// maxEntries bounds a file as ClusterVersion bounds acceptRisks.
	maxEntries = 1000
)

type document struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Risks      []json.RawMessage `json:"risks"`
}

type acceptedRisk struct {
	Risk     string `json:"risk"`
	Reason   string `json:"reason"`
	Owner    string `json:"owner"`
	Expires  string `json:"expires"`
	Versions string `json:"versions"`
	// Clusters is decoded as clusters.
	Clusters json.RawMessage `json:"clusters"`
}

// decode decodes the file without its entries.
func decode(content []byte) (document, error) {
	if err := checkPlain(content); err != nil {
		return document{}, err
	}
	converted, err := sigsyaml.YAMLToJSONStrict(content)
	if err != nil {
		return document{}, oneLine(err)
	}
	var file document
	if err := strict(converted, &file); err != nil {
		return document{}, err
	}
	if file.APIVersion != apiVersion || file.Kind != kind {
		return document{}, fmt.Errorf("the file has apiVersion %q and kind %q, not %q and %q", file.APIVersion, file.Kind, apiVersion, kind)
	}
	if len(file.Risks) > maxEntries {
		return document{}, fmt.Errorf("the file has %d risks, and %d are the limit", len(file.Risks), maxEntries)
	}
	return file, nil
}

// checkPlain returns an error for several documents, of which the strict parser
// silently drops all but the first, and for aliases, by which a small file can become
// a big one.
func checkPlain(content []byte) error {
	started := false
	for line := range bytes.Lines(content) {
		text := bytes.TrimSpace(line)
		marker := bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("..."))
		if marker && started {
			return errors.New("the file has more than one YAML document")
		}
		started = started || (len(text) > 0 && text[0] != '#' && text[0] != '%')
	}
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil {
		return oneLine(err)
	}
	if line := alias(&root); line > 0 {
		return fmt.Errorf("line %d has a YAML alias: write it out", line)
	}
	return nil
}

func alias(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		return node.Line
	}
	for _, inner := range node.Content {
		if line := alias(inner); line > 0 {
			return line
		}
	}
	return 0
}

// strict decodes JSON. Unknown and duplicate fields are errors: an acceptance with a
// misspelled limit would have none.
func strict(data []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return oneLine(err)
	}
	if len(unknown) > 0 {
		return oneLine(unknown[0])
	}
	return nil
}

func oneLine(err error) error { return errors.New(words.Line(err.Error(), maxError)) }
