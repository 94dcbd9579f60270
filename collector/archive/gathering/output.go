package gathering

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/redaction"
	"github.com/openshift/update-preflight/collector/archive/reduction"
)

type destination interface {
	// single takes an object that has a file of its own.
	single(content map[string]any, of source) error
	list(of source) sink
}

// sink is where the objects of a list go.
type sink interface {
	add(content map[string]any) error
	// finish completes the list, whose last page had a resourceVersion, and abandon leaves it incomplete.
	finish(revision string) error
	abandon() error
}

type output struct {
	files Files
	index inventory.Collection
	// names replaces names; nil where nothing is redacted.
	names *redaction.Names
}

func (o *output) text(text string) string {
	text = reduction.WithoutUsers(text)
	if o.names != nil {
		text = o.names.Text(text)
	}
	return text
}

func (o *output) value(data json.RawMessage) (json.RawMessage, error) {
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	value = reduction.WithoutUsersIn(value)
	if o.names != nil {
		value = o.names.Object(value)
	}
	return json.Marshal(value)
}

func (o *output) learn(data json.RawMessage) error {
	if o.names == nil {
		return nil
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return err
	}
	o.names.Learn(value)
	return nil
}

func (o *output) list(of source) sink {
	return &lists{output: o, source: of, ended: map[string]bool{}}
}

func (o *output) single(content map[string]any, of source) error {
	made, err := encode(content)
	if err != nil {
		return err
	}
	place := layout.Place{Group: of.resource.Group, Resource: of.resource.Name, Namespace: made.namespace, Name: made.name}
	return o.write(place.Path(), made.text)
}

// writeAlerts writes the alerts; nil for none.
func (o *output) writeAlerts(alerts json.RawMessage) error {
	if alerts == nil {
		return nil
	}
	alerts, err := o.value(alerts)
	if err != nil {
		return err
	}
	return o.write(alertsFile, fmt.Appendf(nil, `{"status":"success","data":%s}`+"\n", alerts))
}

func (o *output) writeIndex() error {
	if err := o.replaceNames(); err != nil {
		return err
	}
	slices.Sort(o.index.Complete)
	slices.Sort(o.index.Unserved)
	content, err := json.MarshalIndent(o.index, "", "  ")
	if err != nil {
		return err
	}
	return o.write(inventory.CollectionFile, append(content, '\n'))
}

func (o *output) replaceNames() error {
	o.index.Metrics = o.text(o.index.Metrics)
	for i, name := range o.index.Nonexistent {
		o.index.Nonexistent[i] = o.text(name)
	}
	for i := range o.index.Missing {
		missing := &o.index.Missing[i]
		missing.Namespace, missing.Name, missing.Cause = o.text(missing.Namespace), o.text(missing.Name), o.text(missing.Cause)
	}
	queries := o.index.Queries
	if queries == nil {
		return nil
	}
	o.index.Queries = make(map[string]json.RawMessage, len(queries))
	for query, data := range queries {
		result, err := o.value(data)
		if err != nil {
			return err
		}
		o.index.Queries[o.text(query)] = result
	}
	return nil
}

func (o *output) write(name string, content []byte) error {
	if err := o.files.Begin(name); err != nil {
		return &writeError{err}
	}
	if _, err := o.files.Write(content); err != nil {
		return &writeError{errors.Join(err, o.files.Drop())}
	}
	if err := o.files.End(); err != nil {
		return &writeError{err}
	}
	return nil
}

// writeError is an error of the archive, and not of the cluster.
type writeError struct{ err error }

func (e *writeError) Error() string { return "the archive cannot be written: " + e.err.Error() }

func (e *writeError) Unwrap() error { return e.err }

// spool keeps what was read on the disk until all names are known: the name of a host may stand before what
// shows that it is one. Its file has no name, and ends with the process.
type spool struct {
	file    *os.File
	into    *bufio.Writer
	encoder *json.Encoder
	names   *redaction.Names
	// sources are the requests that were read, and count is the number of records.
	sources []source
	count   int
}

// The kinds of records of a spool.
const (
	recordSingle = "single"
	recordItem   = "item"
	recordEnd    = "end"
	recordTorn   = "torn"
)

// record is a step of the writing of an archive.
type record struct {
	Kind string `json:"kind"`
	// Source is the position of the request that was read.
	Source int `json:"source"`
	// Object is a single object or an item of a list, and Revision the resourceVersion of a list that ends.
	Object   json.RawMessage `json:"object,omitempty"`
	Revision string          `json:"revision,omitempty"`
}

// spoolBuffer is the size of the buffers of a spool, in bytes.
const spoolBuffer = 64 << 10

func newSpool(file *os.File, names *redaction.Names) *spool {
	into := bufio.NewWriterSize(file, spoolBuffer)
	encoder := json.NewEncoder(into)
	encoder.SetEscapeHTML(false)
	return &spool{file: file, into: into, encoder: encoder, names: names}
}

func (s *spool) put(each record, content map[string]any) error {
	if content != nil {
		s.names.Learn(content)
		text, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("an object cannot be written: %w", err)
		}
		each.Object = text
	}
	if err := s.encoder.Encode(each); err != nil {
		return &writeError{err}
	}
	s.count++
	return nil
}

func (s *spool) add(of source) int {
	s.sources = append(s.sources, of)
	return len(s.sources) - 1
}

func (s *spool) single(content map[string]any, of source) error {
	return s.put(record{Kind: recordSingle, Source: s.add(of)}, content)
}

func (s *spool) list(of source) sink { return spooledList{s, s.add(of)} }

type spooledList struct {
	spool *spool
	at    int
}

func (l spooledList) add(content map[string]any) error {
	return l.spool.put(record{Kind: recordItem, Source: l.at}, content)
}

func (l spooledList) finish(revision string) error {
	return l.spool.put(record{Kind: recordEnd, Source: l.at, Revision: revision}, nil)
}

func (l spooledList) abandon() error { return l.spool.put(record{Kind: recordTorn, Source: l.at}, nil) }

func (s *spool) replay(into *output) error {
	if err := s.names.Seal(); err != nil {
		return err
	}
	if err := s.into.Flush(); err != nil {
		return &writeError{err}
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return &writeError{err}
	}
	lists := map[int]sink{}
	records := json.NewDecoder(bufio.NewReaderSize(s.file, spoolBuffer))
	for range s.count {
		var each record
		if err := records.Decode(&each); err != nil {
			return &writeError{err}
		}
		of := s.sources[each.Source]
		if lists[each.Source] == nil && each.Kind != recordSingle {
			lists[each.Source] = into.list(of)
		}
		if err := each.replay(of, into, lists[each.Source]); err != nil {
			return err
		}
	}
	return nil
}

func (r record) replay(of source, into *output, list sink) error {
	switch r.Kind {
	case recordEnd:
		return list.finish(r.Revision)
	case recordTorn:
		return list.abandon()
	}
	var content map[string]any
	if err := utiljson.Unmarshal(r.Object, &content); err != nil {
		return &writeError{err}
	}
	replaced, ok := into.names.Object(content).(map[string]any)
	switch {
	case !ok:
		return errors.ErrUnsupported // an object stays one
	case r.Kind == recordSingle:
		return into.single(replaced, of)
	}
	return list.add(replaced)
}

// lists writes the objects of one list: cluster-scoped ones to a file each, and others to a list
// for each namespace.
type lists struct {
	source

	output *output
	// open is the namespace of the file which is open; empty where none is.
	open string
	// ended are the namespaces whose lists are written. The API server sorts by them; an object
	// of one that comes later is written to a file of its own.
	ended map[string]bool
	// revision is the resourceVersion of the list, which is known at its end, and count the number of objects.
	revision string
	count    int
}

func (l *lists) add(content map[string]any) error {
	made, err := encode(content)
	if err != nil {
		return err
	}
	l.count++
	if made.namespace == "" || l.ended[made.namespace] {
		if err := l.end(); err != nil {
			return err
		}
		return l.output.write(l.place(made.namespace, made.name).Path(), made.text)
	}
	if made.namespace != l.open {
		if err := l.end(); err != nil {
			return err
		}
		if err := l.begin(made.namespace, "items:\n"); err != nil {
			return err
		}
	}
	return l.print("- " + string(made.text))
}

func (l *lists) place(namespace, name string) layout.Place {
	return layout.Place{Group: l.resource.Group, Resource: l.resource.Name, Namespace: namespace, Name: name}
}

func (l *lists) begin(namespace, items string) error {
	if err := l.output.files.Begin(l.place(namespace, "").Path()); err != nil {
		return &writeError{err}
	}
	l.open = namespace
	return l.print(fmt.Sprintf("---\napiVersion: %s\n%s", l.served.version, items))
}

func (l *lists) print(text string) error {
	if _, err := l.output.files.Write([]byte(text)); err != nil {
		return &writeError{err}
	}
	return nil
}

// end completes the file which is open.
func (l *lists) end() error {
	if l.open == "" {
		return nil
	}
	if err := l.print(fmt.Sprintf("kind: %sList\nmetadata:\n  resourceVersion: %q\n", l.served.kind, l.revision)); err != nil {
		return err
	}
	l.ended[l.open], l.open = true, ""
	if err := l.output.files.End(); err != nil {
		return &writeError{err}
	}
	return nil
}

// finish completes the list. Of a namespace without objects there is an empty one.
func (l *lists) finish(revision string) error {
	l.revision = revision
	if err := l.end(); err != nil {
		return err
	}
	if l.namespace == "" {
		l.output.index.Complete = append(l.output.index.Complete, l.resource.String())
		if l.output.index.Objects == nil {
			l.output.index.Objects = map[string]int{}
		}
		l.output.index.Objects[l.resource.String()] = l.count
		return nil
	}
	if len(l.ended) > 0 {
		return nil
	}
	if err := l.begin(l.output.text(l.namespace), "items: []\n"); err != nil {
		return err
	}
	return l.end()
}

// abandon drops the file which is open: a list that lacks objects is none.
func (l *lists) abandon() error {
	if l.open == "" {
		return nil
	}
	l.open = ""
	if err := l.output.files.Drop(); err != nil {
		return &writeError{err}
	}
	return nil
}
