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

// ErrNoFrame means that there is no complete frame: the process never wrote
// one, or what is left of it was cut off.
var ErrNoFrame = errors.New("no complete preflight frame")

const (
	// The version of the wire that is spoken here.
	wireVersion = "1"
	// The encodings of a payload.
	encodingJSON  = "json"
	encodingFlate = "flate"
	encodingPart  = "part"

	// The bytes that a kubelet keeps of a termination message.
	defaultBudget = 4096
	// Every result can be put into this many bytes.
	minBudget = 512
	// A line of a log longer than 16 KiB may be interrupted by other output
	// (the CRI's limit), so longer frames go into a log in parts.
	maxLine  = 8 << 10
	maxParts = 512
)

// Frame encodes the result as one line that ends in a newline and is at most
// budget bytes long. A budget of 0 means 4096, what a kubelet keeps of a
// termination message; less than 512 is refused.
//
// What does not fit is left out in a fixed order: the evidence of checks that
// passed or were skipped; all evidence and objects; the ends of messages and
// remedies; everything but name, outcome and reason; and at last the checks
// themselves, for one finding with the worst outcome and the counts.
//
// It refuses a result that [ParseFrame] would not take: without findings, or
// with names that are missing, malformed or given twice.
func (r Result) Frame(budget int) ([]byte, error) {
	if budget == 0 {
		budget = defaultBudget
	}
	if budget < minBudget {
		return nil, fmt.Errorf("budget of %d bytes for a frame: want at least %d", budget, minBudget)
	}
	d := newDocument(r)
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("cannot frame the result: %w", err)
	}
	line, _, err := fit(d, budget)
	return line, err
}

// fit encodes as much of d as budget allows, and reports whether something
// had to be left out.
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

// encode gives the line for d, as readable JSON where that fits into budget,
// else compressed; nil when neither does.
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

// logLines encodes the result for a log, where there is room for all of it,
// up to 1 MiB of JSON. A long frame is cut into lines that each hold a part.
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

// ParseFrame finds a result in data, which is a termination message or a log:
// noise, and frames cut off at either end, may be around it. Of several
// complete frames, the last one counts. It returns [ErrNoFrame] when there is
// none, and another error when the only frames are damaged or of a version of
// the wire that it does not know, or when the frame that counts does not hold
// a valid result.
//
// At most 1 MiB of JSON is decoded, whatever data holds. Fields that are not
// known are ignored; an outcome that is not known becomes Unknown.
func ParseFrame(data []byte) (Result, error) {
	scan := scanner{pattern: framePattern(), problem: ErrNoFrame}
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		scan.line(line)
		data = rest
	}
	if scan.last == nil {
		return Result{}, scan.problem
	}
	return scan.last.decode()
}

// framePattern matches the head of a frame: version, encoding, length in
// bytes and CRC-32 of the payload that follows.
func framePattern() *regexp.Regexp {
	return regexp.MustCompile(`^preflight/([0-9]{1,9}) ([a-z0-9-]{1,16}) ([0-9]{1,7}) ([0-9a-f]{8}) `)
}

// frame is a payload whose length and checksum were right.
type frame struct {
	encoding string
	payload  []byte
}

// scanner goes through lines and keeps the last complete frame.
type scanner struct {
	pattern *regexp.Regexp
	last    *frame
	// problem is what was wrong with the last line that looked like a frame.
	problem error
	// parts holds the text of the parts 1 to count of a frame in parts.
	parts []byte
	count int
}

func (s *scanner) line(line []byte) {
	f, err := s.frame(line)
	if err != nil {
		s.problem = err
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

// frame checks one line; nil without an error means that it is not one, or
// was cut off.
func (s *scanner) frame(line []byte) (*frame, error) {
	head := s.pattern.FindSubmatch(line)
	if head == nil {
		return nil, nil
	}
	version, encoding, checksum := string(head[1]), string(head[2]), string(head[4])
	if version != wireVersion {
		return nil, fmt.Errorf("preflight frame of wire version %s: only version %s is known here", version, wireVersion)
	}
	length, err := strconv.Atoi(string(head[3]))
	if err != nil {
		return nil, fmt.Errorf("preflight frame of length %q: %w", head[3], err)
	}
	payload := line[len(head[0]):]
	if len(payload) < length {
		return nil, nil
	}
	payload = payload[:length]
	if sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE(payload)); sum != checksum {
		return nil, fmt.Errorf("damaged preflight frame: its checksum is %s, it says %s", sum, checksum)
	}
	return &frame{encoding: encoding, payload: payload}, nil
}

// join adds one part, and gives the whole line once the last one is there. A
// part out of order loses the frame.
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

// decode reads the result that the frame holds.
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
		return Result{}, fmt.Errorf("preflight frame with unknown encoding %q", f.encoding)
	}
	if len(plain) > maxDocument {
		return Result{}, fmt.Errorf("preflight frame with more than %d bytes of JSON", maxDocument)
	}

	var d document
	if err := json.Unmarshal(plain, &d); err != nil {
		return Result{}, fmt.Errorf("preflight frame without a result: %w", err)
	}
	if err := d.validate(); err != nil {
		return Result{}, fmt.Errorf("invalid result in a preflight frame: %w", err)
	}
	return d.result(), nil
}

// inflate undoes deflate, for at most one byte more than a document may have.
func inflate(packed []byte) ([]byte, error) {
	raw := base64.NewDecoder(base64.RawURLEncoding, bytes.NewReader(packed))
	return io.ReadAll(io.LimitReader(flate.NewReader(raw), maxDocument+1))
}
