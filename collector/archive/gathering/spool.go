package gathering

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/openshift/update-preflight/collector/archive/redaction"
)

// spool keeps what was read on the disk until all names are known: the name of a host may stand before what
// shows that it is one. Its file has no name, and ends with the process.
type spool struct {
	file    *os.File
	into    *bufio.Writer
	encoder *json.Encoder
	names   *redaction.Names
	// sources are what was read, and count is the number of records.
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
	// Source is the position of what was read.
	Source int `json:"source"`
	// Object is that of a single object or an item, and Revision the resourceVersion of a list that ends.
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
