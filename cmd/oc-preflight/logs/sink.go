package logs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/openshift/update-preflight/collector/words"
)

// Sink writes logs, one line at a time from any number of goroutines.
type Sink struct {
	lines, notes io.Writer
	turn         *sync.Mutex
}

// To makes a Sink: the output is written to lines, remarks about it to notes.
func To(lines, notes io.Writer) Sink { return Sink{lines: lines, notes: notes, turn: &sync.Mutex{}} }

// only is the output for the only container: its lines are not labeled.
func (s Sink) only(c container) *output { return &output{sink: s, label: "[" + c.key() + "] "} }

// one is the output for one of several containers: its lines are labeled.
func (s Sink) one(c container) *output {
	out := s.only(c)
	out.prefix = out.label
	return out
}

// output writes the lines of one container.
type output struct {
	sink          Sink
	label, prefix string
	// taken counts the bytes of the log that were written.
	taken int64
	// rest is an unterminated last line.
	rest []byte
}

func (o *output) note(text string) {
	o.sink.turn.Lock()
	defer o.sink.turn.Unlock()
	fmt.Fprintf(o.sink.notes, "%s%s\n", o.label, words.Printable(text))
}

// maxLine bounds the part of a line that is written at once, in bytes.
const maxLine = 64 << 10

// copy writes the lines of a log that were not written before. An unterminated last
// line is kept for flush: an API server that stops ends a log anywhere.
func (o *output) copy(log io.Reader) error {
	o.rest = nil
	switch _, err := io.CopyN(io.Discard, log, o.taken); {
	case errors.Is(err, io.EOF):
		return nil // the log was rotated meanwhile
	case err != nil:
		return err
	}
	lines := bufio.NewReaderSize(log, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			o.rest = slices.Clone(line)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		if err := o.write(line); err != nil {
			return err
		}
	}
}

// flush writes the unterminated last line.
func (o *output) flush() error {
	if len(o.rest) == 0 {
		return nil
	}
	line := o.rest
	o.rest = nil
	return o.write(line)
}

// write writes a line, or as much of it as fits, without control characters.
func (o *output) write(line []byte) error {
	o.sink.turn.Lock()
	defer o.sink.turn.Unlock()
	o.taken += int64(len(line))
	_, err := fmt.Fprintf(o.sink.lines, "%s%s\n", o.prefix, words.Printable(strings.TrimSuffix(string(line), "\n")))
	return err
}
