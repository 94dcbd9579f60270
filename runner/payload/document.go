package payload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxDocument is the largest request that an API server takes, so that no
	// object can be larger (k8s.io/apiserver pkg/server/config.go,
	// MaxRequestBodyBytes).
	maxDocument = 3 << 20
	// maxTokens bounds the memory of parsing, which depends on the number
	// of nodes rather than bytes: about 20 MiB. The largest CustomResourceDefinition
	// of OpenShift has a sixth of it.
	maxTokens    = 100_000
	maxDocuments = 1_000
)

// place is the start of a document in a file. Both count from 1; the zero value
// means the whole file.
type place struct {
	number, line int
}

// document is one document of a file.
type document struct {
	place
	raw []byte
	// json is true for documents to be parsed as JSON.
	json bool
}

// split finds the documents of a file: of a stream of JSON objects, or else of
// YAML, where a line that starts with "---" or "..." ends a document wherever
// it is (YAML 1.2, 9.1.2). The parser would silently drop the rest.
func split(content []byte) ([]document, error) {
	documents, ok := splitJSON(content)
	if !ok {
		documents = splitYAML(content)
	}
	if len(documents) > maxDocuments {
		return nil, fmt.Errorf("the file has more than %d documents", maxDocuments)
	}
	return documents, nil
}

func splitJSON(content []byte) ([]document, bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return nil, false
	}
	var documents []document
	decoder := json.NewDecoder(bytes.NewReader(content))
	line, start := 1, 0
	for len(documents) <= maxDocuments {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false
		}
		begin := int(decoder.InputOffset()) - len(raw)
		line += bytes.Count(content[start:begin], []byte("\n"))
		start = begin
		documents = append(documents, document{place: place{len(documents) + 1, line}, raw: raw, json: true})
	}
	return documents, true
}

func splitYAML(content []byte) []document {
	var documents []document
	line, start, from := 1, 0, 1
	end := func(offset int) {
		if raw := content[start:offset]; len(bytes.TrimSpace(raw)) > 0 && len(documents) <= maxDocuments {
			documents = append(documents, document{place: place{len(documents) + 1, from}, raw: raw})
		}
	}
	offset := 0
	for text := range bytes.Lines(content) {
		switch {
		case marks(text, "---"):
			end(offset)
			start, from = offset, line
		case marks(text, "..."):
			end(offset)
			start, from = offset+len(text), line+1
		}
		offset += len(text)
		line++
	}
	end(offset)
	return documents
}

// marks reports whether the line is the document marker, with or without content
// after it.
func marks(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// tree parses the document, whose node is nil when the document is empty. It
// expands no aliases, and its memory is bounded.
func (d document) tree() (*yaml.Node, error) {
	if err := checkSize(d.raw); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(d.plain()))
	var root yaml.Node
	err := decoder.Decode(&root)
	if errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // An empty document is no error and has no node.
	}
	if err != nil {
		return nil, d.locate(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("content follows the end of the document")
	}
	if len(root.Content) != 1 || root.Content[0].Tag == "!!null" {
		return nil, nil //nolint:nilnil // As above: null has no node.
	}
	return root.Content[0], nil
}

// plain returns the document as YAML. The escapes of JSON are not all escapes
// of YAML, which has no surrogate pairs.
func (d document) plain() []byte {
	if !d.json || !bytes.Contains(d.raw, []byte(`\`)) {
		return d.raw
	}
	var value any
	if err := json.Unmarshal(d.raw, &value); err != nil {
		return d.raw
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return d.raw
	}
	return plain
}

// checkSize bounds the memory of parsing. A parser creates at most one node for
// each indicator and each line.
func checkSize(content []byte) error {
	if len(content) > maxDocument {
		return fmt.Errorf("it has %d bytes; the limit is %d", len(content), maxDocument)
	}
	tokens := 0
	for _, b := range content {
		switch b {
		case ',', '[', ']', '{', '}', ':', '?', '-', '\n', '\r':
			tokens++
		}
	}
	if tokens > maxTokens {
		return fmt.Errorf("it has %d tokens; the limit is %d", tokens, maxTokens)
	}
	return nil
}

// locate converts the line numbers in a parser's error to those of the file.
func (d document) locate(err error) error {
	text := regexp.MustCompile(`\bline \d+`).ReplaceAllStringFunc(err.Error(), func(match string) string {
		line, err := strconv.Atoi(strings.TrimPrefix(match, "line "))
		if err != nil {
			return match
		}
		return "line " + strconv.Itoa(line+d.line-1)
	})
	return errors.New(words.External(text))
}

// located is a value with its place in the release, by which it is sorted.
type located[T any] struct {
	file  string
	place place
	// lines are those of the fields, if the value is an object.
	lines Lines
	value T
}

func sortLocated[T any](items []located[T]) {
	slices.SortStableFunc(items, func(a, b located[T]) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.place.number-b.place.number)
	})
}

// child returns the value of the key in a mapping, nil when there is none. An
// alias is resolved.
func child(node *yaml.Node, key string) *yaml.Node {
	_, value := entry(node, key)
	return target(value)
}

// keyOf returns the key itself.
func keyOf(node *yaml.Node, key string) *yaml.Node {
	found, _ := entry(node, key)
	return found
}

func entry(node *yaml.Node, key string) (found, value *yaml.Node) {
	node = target(node)
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

func target(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// text returns the scalar at the key, "" when there is none.
func text(node *yaml.Node, key string) string {
	if value := child(node, key); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}
	return ""
}

// count returns how many nodes the tree has.
func count(node *yaml.Node) int {
	n := 1
	for _, inner := range node.Content {
		n += count(inner)
	}
	return n
}

// items returns how many items the lists of the tree have.
func items(node *yaml.Node) int {
	n := 0
	if node.Kind == yaml.SequenceNode {
		n = len(node.Content)
	}
	for _, inner := range node.Content {
		n += items(inner)
	}
	return n
}

// irregular returns the first construct that parsers may read in different ways:
// an alias, or a duplicate key of a mapping. It returns "" when there is none.
func irregular(node *yaml.Node) (what string, line int) {
	if node.Kind == yaml.AliasNode {
		return "an alias", node.Line
	}
	keys := map[string]bool{}
	for i, inner := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && inner.Kind == yaml.ScalarNode {
			if keys[inner.Value] {
				return fmt.Sprintf("a second key %q", words.External(inner.Value)), inner.Line
			}
			keys[inner.Value] = true
		}
		if what, line := irregular(inner); what != "" {
			return what, line
		}
	}
	return "", 0
}
