// Package objects answers: which objects are in a file of YAML or JSON?
//
// [Read] calls a function for each object of a list, or for the only one, as JSON. A list of YAML is read item by
// item, so it needs the memory of a single item only. A truncated file is an error, even if the part before is
// valid YAML, and so is a duplicate key of an object: parsers disagree on which one counts, and on whether case
// matters.
package objects

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	yaml3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// maxObject bounds an object, in bytes: an API server stores at most 1.5 MiB, and YAML has
	// several times as many characters as JSON.
	maxObject = 16 << 20
	// maxParts bounds the lines and elements of an object of YAML: its parser takes up to a kilobyte for each. The
	// largest CustomResourceDefinitions have 50 000.
	maxParts = 200_000
	// maxJSON bounds a file of JSON, which is read as a whole.
	maxJSON = 32 << 20
)

// List is a list of objects without its items; its fields are empty if the file contains one object.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Metadata is nil if the list has none.
	Metadata *metav1.ListMeta `json:"metadata"`
}

// AnyList is the kind of a list that kubectl has put together, of objects of any kind.
const AnyList = "List"

// Whole reports whether the list contains all requested objects: an API server sets the resourceVersion of a list,
// and a token if it continues. kubectl, which reads all pages, prints the metadata with an empty resourceVersion.
func (l List) Whole() bool {
	if l.Metadata == nil || l.Metadata.Continue != "" {
		return false
	}
	return l.Kind == AnyList || l.Kind != "" && l.Metadata.ResourceVersion != ""
}

var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }} //nolint:gochecknoglobals // all calls share the pool

// Read calls do with each object, which is valid only during the call. An error of do stops Read.
func Read(content io.Reader, do func(object []byte) error) (List, error) {
	buffered, ok := buffers.Get().(*bufio.Reader)
	if !ok {
		return List{}, errors.ErrUnsupported // the pool has no others
	}
	defer buffers.Put(buffered)
	defer buffered.Reset(nil)
	buffered.Reset(content)
	if err := readMark(buffered); err != nil {
		return List{}, err
	}
	for {
		first, err := buffered.Peek(1)
		switch {
		case errors.Is(err, io.EOF):
			return List{}, errors.New("it is empty")
		case err != nil:
			return List{}, err
		case first[0] == '{':
			return readJSON(buffered, do)
		case first[0] != ' ' && first[0] != '\t' && first[0] != '\r' && first[0] != '\n':
			return readYAML(buffered, do)
		}
		if _, err := buffered.Discard(1); err != nil {
			return List{}, err
		}
	}
}

// readMark reads the byte order mark, which programs of Windows write.
func readMark(content *bufio.Reader) error {
	switch mark, _ := content.Peek(3); { // errors recur
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}), bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		return errors.New("it is UTF-16; convert it to UTF-8")
	case bytes.Equal(mark, []byte{0xef, 0xbb, 0xbf}):
		_, err := content.Discard(len(mark))
		return err
	}
	return nil
}

func readJSON(content io.Reader, do func([]byte) error) (List, error) {
	data, err := io.ReadAll(io.LimitReader(content, maxJSON+1))
	if err != nil {
		return List{}, err
	}
	if len(data) > maxJSON {
		return List{}, fmt.Errorf("it is larger than %d bytes of JSON", maxJSON)
	}
	var list struct {
		List

		Items *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return List{}, err
	}
	if err := refuseDuplicates(data); err != nil {
		return List{}, err
	}
	if list.Items == nil {
		return List{}, do(data)
	}
	for _, item := range *list.Items {
		if err := do(item); err != nil {
			return List{}, err
		}
	}
	return list.List, nil
}

func readYAML(content *bufio.Reader, do func([]byte) error) (List, error) {
	s := &splitter{do: do}
	for {
		line, err := content.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // a long line comes in parts
			if err := s.add(line); err != nil {
				return List{}, err
			}
			s.within = true
			line, err = content.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return List{}, err
		}
		if addErr := s.add(line); addErr != nil {
			return List{}, addErr
		}
		s.within = false
		if errors.Is(err, io.EOF) {
			return s.end(len(line) == 0)
		}
	}
}

// splitter splits a document of block style, as the printers of Kubernetes write it, at the items of its list.
type splitter struct {
	do func([]byte) error
	// rest has the document without the items.
	rest bytes.Buffer
	// item has the current item, without its dash.
	item bytes.Buffer
	// list is true once the key "items" was read, and inItems among its items, whose dashes have
	// an indentation of indent.
	list, inItems bool
	indent        int
	// within is true in a line of which a part was added.
	within bool
}

func (s *splitter) add(line []byte) error {
	text := bytes.TrimRight(line, "\r\n")
	switch {
	case s.within:
	case len(text) > 0 && text[0] == '-' && strings.TrimRight(string(text), " ") == "---":
		if s.rest.Len() > 0 || s.item.Len() > 0 {
			return errors.New("it contains several documents")
		}
		return nil
	case !s.inItems && bytes.HasPrefix(text, []byte("items:")):
		if s.list {
			return errors.New("it contains several lists")
		}
		s.list = true
		switch value := strings.TrimSpace(string(text[len("items:"):])); value {
		case "":
			s.inItems, s.indent = true, -1
			return nil
		case "[]", "null":
			return nil
		default:
			return errors.New("its list is not in block style")
		}
	case s.inItems:
		if done, err := s.itemLine(line, text); done || err != nil {
			return err
		}
	}
	into := &s.rest
	if s.inItems {
		into = &s.item
	}
	if into.Len()+len(line) > maxObject {
		return fmt.Errorf("an object is larger than %d bytes", maxObject)
	}
	into.Write(line)
	return nil
}

// itemLine adds a line that begins an item, and ends the items at a line that is not of them.
func (s *splitter) itemLine(line, text []byte) (done bool, err error) {
	content := bytes.TrimLeft(text, " ")
	indent := len(text) - len(content)
	dash := bytes.HasPrefix(content, []byte("- "))
	if s.indent < 0 && dash {
		s.indent = indent
	}
	switch {
	case dash && indent == s.indent:
		err := s.flush()
		s.item.Write(bytes.Repeat([]byte(" "), indent+2))
		s.item.Write(line[indent+2:])
		return true, err
	case len(content) > 0 && indent <= max(s.indent, 0):
		err := s.flush()
		s.inItems = false
		return false, err
	}
	return false, nil
}

func (s *splitter) flush() error {
	if s.item.Len() == 0 {
		return nil
	}
	object, err := toJSON(s.item.Bytes())
	s.item.Reset() // the object is read before the next item is written
	if err != nil {
		return err
	}
	return s.do(object)
}

// end parses what is left. A document ends with a line break, and the printers write the kind of a
// list after its items: without them, the file is torn.
func (s *splitter) end(complete bool) (List, error) { //nolint:revive // complete describes the text, and selects no mode
	if !complete {
		return List{}, errors.New("it ends within a line")
	}
	if err := s.flush(); err != nil {
		return List{}, err
	}
	document, err := toJSON(s.rest.Bytes())
	if err != nil {
		return List{}, err
	}
	if !s.list {
		return List{}, s.do(document)
	}
	var list struct {
		List

		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &list); err != nil {
		return List{}, err
	}
	switch {
	case list.Items != nil: // a key such as "Items"
		return List{}, errors.New("it contains several lists")
	case list.Kind == "":
		return List{}, errors.New("it ends before the kind of its list")
	}
	return list.List, nil
}

// toJSON converts an object, which may use the memory of the document.
func toJSON(document []byte) ([]byte, error) {
	if text := bytes.TrimSpace(document); len(text) > 0 && text[0] == '{' && json.Valid(text) { // which YAML includes
		return text, refuseDuplicates(text)
	}
	if parts(document) > maxParts {
		return nil, fmt.Errorf("an object has more than %d lines and elements", maxParts)
	}
	if suspicious(document) {
		if err := refuseAliases(document); err != nil {
			return nil, err
		}
	}
	object, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if len(object) == 0 || object[0] != '{' {
		return nil, errors.New("it is not an object")
	}
	return object, refuseDuplicates(object)
}

// parts counts what may be a value of its own: a line, and an element in flow style.
func parts(document []byte) int {
	count := 0
	for _, character := range document {
		switch character {
		case '\n', ',', '{', '[':
			count++
		}
	}
	return count
}

// suspicious reports whether a document can have an anchor or an alias: such a token is at the begin of a value.
func suspicious(document []byte) bool {
	for i := 0; i < len(document); i++ {
		next := bytes.IndexAny(document[i:], "&*")
		if next < 0 {
			return false
		}
		i += next
		if i == 0 || bytes.IndexByte([]byte(" \n\t-:,[{?"), document[i-1]) >= 0 {
			return true
		}
	}
	return false
}

var errAlias = errors.New("it contains an anchor or an alias")

// refuseAliases returns an error for a document with an anchor or an alias, which no printer of
// Kubernetes writes: their expansion is not bounded.
func refuseAliases(document []byte) error {
	var root yaml3.Node
	if err := yaml3.Unmarshal(document, &root); err != nil {
		return err
	}
	nodes := []*yaml3.Node{&root}
	for len(nodes) > 0 {
		last := nodes[len(nodes)-1]
		nodes = append(nodes[:len(nodes)-1], last.Content...)
		if last.Anchor != "" || last.Kind == yaml3.AliasNode {
			return errAlias
		}
	}
	return nil
}
