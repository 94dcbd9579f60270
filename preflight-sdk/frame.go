package preflight

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strconv"
)

// ErrNoFrame means that there is no complete frame: the process did not write
// one, or it was cut off.
var ErrNoFrame = errors.New("no complete preflight frame")

const (
	// wireVersion is the version of the wire format that this package implements.
	wireVersion = "1"
	// The encodings of a payload.
	encodingJSON  = "json"
	encodingFlate = "flate"
	encodingPart  = "part"

	// defaultBudget is the size of a termination message that a kubelet keeps, in
	// bytes.
	defaultBudget = 4096
	// minBudget is the size in bytes into which every result fits.
	minBudget = 512
	// maxLine limits the bytes of a frame on one line of a log: the CRI may
	// interrupt a line of more than 16 KiB. A longer frame is written in parts.
	maxLine  = 8 << 10
	maxParts = 512
)

// frameHead matches the head of a frame: version, encoding, length in bytes and
// CRC-32 of the payload that follows.
var frameHead = regexp.MustCompile(`^preflight/([0-9]{1,9}) ([a-z0-9-]{1,16}) ([0-9]{1,7}) ([0-9a-f]{8}) `)

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
	line, err = encode(d, budget)
	if err != nil || line != nil {
		return line, false, err
	}
	for _, shorten := range shortenings() {
		d = shorten(d)
		d.Truncated = true
		line, err = encode(d, budget)
		if err != nil || line != nil {
			return line, true, err
		}
	}
	return nil, true, fmt.Errorf("a result of %d findings does not fit into %d bytes", len(d.Findings), budget)
}

// encode returns the line for d: as plain JSON if that fits into the budget,
// otherwise compressed, or nil if neither fits.
func encode(d document, budget int) ([]byte, error) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("cannot encode the result: %w", err)
	}
	payload := bytes.TrimSuffix(plain.Bytes(), []byte("\n"))
	if len(payload) > maxDocument {
		return nil, nil
	}
	if line := frameLine(encodingJSON, payload); len(line) <= budget {
		return line, nil
	}

	packed, err := deflate(payload)
	if err != nil {
		return nil, fmt.Errorf("cannot compress the result: %w", err)
	}
	if line := frameLine(encodingFlate, packed); len(line) <= budget {
		return line, nil
	}
	return nil, nil
}

func frameLine(encoding string, payload []byte) []byte {
	return fmt.Appendf(nil, "preflight/%s %s %d %08x %s\n", wireVersion, encoding, len(payload), crc32.ChecksumIEEE(payload), payload)
}

func deflate(plain []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return base64.RawURLEncoding.AppendEncode(nil, packed.Bytes()), nil
}

// logLines encodes the result for a log, where up to 1 MiB of JSON is written in
// full. A long frame is split into lines that each contain a part.
func logLines(r Result) ([]byte, error) {
	d := newDocument(r)
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("cannot frame the result: %w", err)
	}
	line, _, err := fit(d, 2*maxDocument)
	if err != nil || len(line) <= maxLine {
		return line, err
	}

	text := bytes.TrimSuffix(line, []byte("\n"))
	count := (len(text) + maxLine - 1) / maxLine
	var lines []byte
	for i := range count {
		part := text[i*maxLine : min((i+1)*maxLine, len(text))]
		lines = append(lines, frameLine(encodingPart, fmt.Appendf(nil, "%d/%d %s", i+1, count, part))...)
	}
	return lines, nil
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
	scan := scanner{err: ErrNoFrame}
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		scan.line(line)
		data = rest
	}
	if scan.last == nil {
		return Result{}, scan.err
	}
	return scan.last.decode()
}

// frame is a payload with the right length and checksum.
type frame struct {
	encoding string
	payload  []byte
}

// scanner reads lines and keeps the last complete frame.
type scanner struct {
	last *frame
	// err is the error of the last invalid frame.
	err error
	// parts is the joined text of the parts 1 to count of a frame in parts.
	parts []byte
	count int
}

func (s *scanner) line(line []byte) {
	f, err := parseLine(line)
	if err != nil {
		s.err = err
		return
	}
	if f == nil {
		return
	}
	if f.encoding != encodingPart {
		s.last = f
		return
	}
	if whole := s.join(f.payload); whole != nil {
		s.line(whole)
	}
}

// parseLine returns the frame on the line; nil without an error if the line is
// not a frame or is incomplete.
func parseLine(line []byte) (*frame, error) {
	head := frameHead.FindSubmatch(line)
	if head == nil {
		return nil, nil
	}
	version, encoding, checksum := string(head[1]), string(head[2]), string(head[4])
	if version != wireVersion {
		return nil, fmt.Errorf("preflight frame has wire version %s: only version %s is supported", version, wireVersion)
	}
	length, err := strconv.Atoi(string(head[3]))
	if err != nil {
		return nil, fmt.Errorf("preflight frame has length %q: %w", head[3], err)
	}
	payload := line[len(head[0]):]
	if len(payload) < length {
		return nil, nil
	}
	payload = payload[:length]
	if sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE(payload)); sum != checksum {
		return nil, fmt.Errorf("damaged preflight frame: checksum %s, want %s", sum, checksum)
	}
	return &frame{encoding: encoding, payload: payload}, nil
}

// join adds one part and returns the whole line once the last part is present. A
// part out of order discards the frame.
func (s *scanner) join(payload []byte) []byte {
	head, text, _ := bytes.Cut(payload, []byte(" "))
	var number, count int
	if _, err := fmt.Sscanf(string(head), "%d/%d", &number, &count); err != nil {
		return nil
	}
	if number == 1 {
		s.parts, s.count = nil, 0
	}
	if number != s.count+1 || number > count || count > maxParts {
		s.parts, s.count = nil, 0
		return nil
	}
	s.parts, s.count = append(s.parts, text...), number
	if number < count {
		return nil
	}
	whole := s.parts
	s.parts, s.count = nil, 0
	// Parts do not nest.
	if bytes.HasPrefix(whole, []byte("preflight/"+wireVersion+" "+encodingPart+" ")) {
		return nil
	}
	return whole
}

// decode returns the result in the frame.
func (f frame) decode() (Result, error) {
	plain := f.payload
	switch f.encoding {
	case encodingJSON:
	case encodingFlate:
		var err error
		if plain, err = inflate(f.payload); err != nil {
			return Result{}, fmt.Errorf("damaged preflight frame: %w", err)
		}
	default:
		return Result{}, fmt.Errorf("preflight frame has unknown encoding %q", f.encoding)
	}
	if len(plain) > maxDocument {
		return Result{}, fmt.Errorf("preflight frame has more than %d bytes of JSON", maxDocument)
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

// inflate reverses deflate. It decodes at most one byte more than a document may
// have.
func inflate(packed []byte) ([]byte, error) {
	raw := base64.NewDecoder(base64.RawURLEncoding, bytes.NewReader(packed))
	return io.ReadAll(io.LimitReader(flate.NewReader(raw), maxDocument+1))
}
