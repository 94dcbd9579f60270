package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/openshift/update-preflight/preflight-sdk/internal/wire"
)

// ErrNoFrame means that there is no complete frame: the process did not write
// one, or it was cut off.
var ErrNoFrame = wire.ErrNoFrame

const (
	// defaultBudget is the size of a termination message that a kubelet keeps, in
	// bytes.
	defaultBudget = 4096
	// minBudget is the size in bytes into which every result fits.
	minBudget = 512
)

// Frame encodes the result as one line that ends in a newline and is at most
// budget bytes long. A budget of 0 means 4096, the size of a termination message
// that a kubelet keeps. The minimum is 512.
//
// What does not fit is removed in this order: the evidence of passed and skipped
// checks; all evidence and objects; the ends of messages and remediations, and long
// commands; everything except name, outcome and reason; and finally the findings, which
// are replaced by one finding with the worst outcome and the counts.
//
// Frame returns an error for a result that [ParseFrame] would not accept: one
// without findings, or with missing, malformed or duplicate names.
func (r Result) Frame(budget int) ([]byte, error) {
	if budget == 0 {
		budget = defaultBudget
	}
	if budget < minBudget {
		return nil, fmt.Errorf("frame budget of %d bytes: want at least %d", budget, minBudget)
	}
	d := newDocument(r)
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("cannot frame the result: %w", err)
	}
	line, _, err := fit(d, budget)
	return line, err
}

// fit encodes as much of d as the budget allows. truncated reports whether
// anything was removed.
func fit(d document, budget int) (line []byte, truncated bool, err error) {
	line, err = d.encode(budget)
	if err != nil || line != nil {
		return line, false, err
	}
	for _, shorten := range shortenings() {
		d = shorten(d)
		d.Truncated = true
		line, err = d.encode(budget)
		if err != nil || line != nil {
			return line, true, err
		}
	}
	return nil, true, fmt.Errorf("a result of %d findings does not fit into %d bytes", len(d.Findings), budget)
}

// encode returns the line for d, or nil if it does not fit into the budget.
func (d document) encode(budget int) ([]byte, error) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("cannot encode the result: %w", err)
	}
	return wire.Line(bytes.TrimSuffix(plain.Bytes(), []byte("\n")), budget)
}

// logLines encodes the result for a log, where up to 1 MiB of JSON is written in
// full. A long frame is split into lines that each contain a part.
func logLines(r Result) ([]byte, error) {
	d := newDocument(r)
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("cannot frame the result: %w", err)
	}
	line, _, err := fit(d, 2*wire.MaxDocument)
	if err != nil {
		return nil, err
	}
	return wire.Split(line), nil
}

// ParseFrame returns the result in data, which is a termination message or a
// log. Other text and incomplete frames are ignored. If there are several
// complete frames, the last one counts.
//
// It returns [ErrNoFrame] if there is no complete frame. It returns another
// error if the only frames are damaged or have an unsupported version of the
// wire format, or if the frame that counts does not contain a valid result.
//
// At most 1 MiB of JSON is decoded, whatever data contains. Unknown fields are
// ignored; an unknown outcome becomes Unknown.
func ParseFrame(data []byte) (Result, error) {
	plain, err := wire.Last(data)
	if err != nil {
		return Result{}, err
	}
	var d document
	if err := json.Unmarshal(plain, &d); err != nil {
		return Result{}, fmt.Errorf("preflight frame has no valid result: %w", err)
	}
	if err := d.validate(); err != nil {
		return Result{}, fmt.Errorf("preflight frame has no valid result: %w", err)
	}
	return d.result(), nil
}
