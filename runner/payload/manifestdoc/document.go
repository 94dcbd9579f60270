// Package manifestdoc answers: which documents does a file of manifests contain?
//
// [Split] finds the documents of a file, and [Document.Tree] parses one. Their size is bounded. [Irregular] finds
// content that two parsers may interpret differently.
package manifestdoc

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

// Place is the start of a document in a file. Both count from 1; the zero value means the whole file.
type Place struct {
	Number, Line int
}

// Document is one document of a file.
type Document struct {
	Place
	Raw []byte
	// JSON is true for documents to be parsed as JSON.
	JSON bool
}

// Split finds the documents of a file: of a stream of JSON objects, or else of
// YAML, where a line that starts with "---" or "..." ends a document wherever
// it is (YAML 1.2, 9.1.2). The parser would silently drop the rest.
func Split(content []byte) ([]Document, error) {
	documents, ok := splitJSON(content)
	if !ok {
		documents = splitYAML(content)
	}
	if len(documents) > maxDocuments {
		return nil, fmt.Errorf("the file has more than %d documents", maxDocuments)
	}
	return documents, nil
}

func splitJSON(content []byte) ([]Document, bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return nil, false
	}
	var documents []Document
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
		documents = append(documents, Document{Place: Place{len(documents) + 1, line}, Raw: raw, JSON: true})
	}
	return documents, true
}

func splitYAML(content []byte) []Document {
	var documents []Document
	line, start, from := 1, 0, 1
	end := func(offset int) {
		if raw := content[start:offset]; len(bytes.TrimSpace(raw)) > 0 && len(documents) <= maxDocuments {
			documents = append(documents, Document{Place: Place{len(documents) + 1, from}, Raw: raw})
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

// marks reports whether the line is the document marker, with or without content after it.
func marks(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// Tree parses the document, whose node is nil when the document is empty. It
// expands no aliases, and its memory is bounded.
func (d Document) Tree() (*yaml.Node, error) {
	if err := CheckSize(d.Raw); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(d.Plain()))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, d.Locate(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("content follows the end of the document")
	}
	if len(root.Content) != 1 || root.Content[0].Tag == "!!null" {
		return nil, nil //nolint:nilnil // An empty document, and null, are not errors and have no node.
	}
	return root.Content[0], nil
}

// Plain returns the document as YAML. The escapes of JSON are not all escapes
// of YAML, which has no surrogate pairs.
func (d Document) Plain() []byte {
	if !d.JSON || !bytes.Contains(d.Raw, []byte(`\`)) {
		return d.Raw
	}
	var value any
	if err := json.Unmarshal(d.Raw, &value); err != nil {
		return d.Raw
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return d.Raw
	}
	return plain
}

// CheckSize bounds the memory of parsing. A parser creates at most one node for each indicator and each line.
func CheckSize(content []byte) error {
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

// Locate converts the line numbers in a parser's error to line numbers in the file.
func (d Document) Locate(err error) error {
	text := regexp.MustCompile(`\bline \d+`).ReplaceAllStringFunc(err.Error(), func(match string) string {
		line, err := strconv.Atoi(strings.TrimPrefix(match, "line "))
		if err != nil {
			return match
		}
		return "line " + strconv.Itoa(line+d.Line-1)
	})
	return errors.New(words.External(text))
}

// Located is a value with its place in the release, by which values are sorted.
type Located[T any] struct {
	File  string
	Place Place
	// Lines locate the fields, if the value is an object.
	Lines Lines
	Value T
}

// SortLocated sorts by file and place.
func SortLocated[T any](items []Located[T]) {
	slices.SortStableFunc(items, func(a, b Located[T]) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Place.Number-b.Place.Number)
	})
}

// Child returns the value of the key in a mapping, nil when there is none. An alias is resolved.
func Child(node *yaml.Node, key string) *yaml.Node {
	_, value := entry(node, key)
	return Target(value)
}

// KeyOf returns the key itself.
func KeyOf(node *yaml.Node, key string) *yaml.Node {
	found, _ := entry(node, key)
	return found
}

func entry(node *yaml.Node, key string) (found, value *yaml.Node) {
	node = Target(node)
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

// Target returns the node to which an alias refers, or the node itself.
func Target(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// Text returns the scalar at the key, "" when there is none.
func Text(node *yaml.Node, key string) string {
	if value := Child(node, key); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}
	return ""
}

// Count returns how many nodes the tree has.
func Count(node *yaml.Node) int {
	n := 1
	for _, inner := range node.Content {
		n += Count(inner)
	}
	return n
}

// Items returns how many items the lists of the tree have.
func Items(node *yaml.Node) int {
	n := 0
	if node.Kind == yaml.SequenceNode {
		n = len(node.Content)
	}
	for _, inner := range node.Content {
		n += Items(inner)
	}
	return n
}

// Irregular returns the first construct that parsers may read in different ways:
// an alias, or a duplicate key of a mapping. It returns "" when there is none.
func Irregular(node *yaml.Node) (what string, line int) {
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
		if what, line := Irregular(inner); what != "" {
			return what, line
		}
	}
	return "", 0
}

// Lines are the lines of an object's fields in its file, from 1, by the
// path of the field, e.g. "spec.template.spec.containers[0].image". The path ""
// is the object.
type Lines map[string]int

// Of returns the line of the field, or of the closest field around it that the author wrote; 0 when unknown.
func (l Lines) Of(path string) int {
	for {
		if line, ok := l[path]; ok || path == "" {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// LinesOf returns the lines of an object without aliases, whose document begins in the given line.
func LinesOf(root *yaml.Node, begin int) Lines {
	lines := Lines{"": begin + root.Line - 1}
	lines.add("", root, begin)
	return lines
}

func (l Lines) add(path string, node *yaml.Node, begin int) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := strings.TrimPrefix(path+"."+node.Content[i].Value, ".")
			l[key] = begin + node.Content[i].Line - 1
			l.add(key, node.Content[i+1], begin)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			key := path + "[" + strconv.Itoa(i) + "]"
			l[key] = begin + item.Line - 1
			l.add(key, item, begin)
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
		// A leaf has no fields.
	}
}
