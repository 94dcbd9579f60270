// Package wire answers: how is a document written into a termination message or a log, and
// found there again?
//
// [Line] frames the JSON of a document, [Split] makes lines of a log of a long frame, and
// [Last] returns the JSON of the last complete frame. WIRE.md is the specification; what the
// JSON says is not known here.
package wire

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
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

// MaxDocument limits the JSON of a document, in bytes.
const MaxDocument = 1 << 20

const (
	// version is the version of the wire format that this package implements.
	version = "1"
	// The encodings of a payload.
	encodingJSON  = "json"
	encodingFlate = "flate"
	encodingPart  = "part"

	// maxLine limits the bytes of a frame on one line of a log: the CRI may
	// interrupt a line of more than 16 KiB. A longer frame is written in parts.
	maxLine  = 8 << 10
	maxParts = 512
)

// frameHead matches the head of a frame: version, encoding, length in bytes and
// CRC-32 of the payload that follows.
var frameHead = regexp.MustCompile(`^preflight/([0-9]{1,9}) ([a-z0-9-]{1,16}) ([0-9]{1,7}) ([0-9a-f]{8}) `)

// Line returns the line for a JSON document, which ends in a newline: as plain JSON if that
// fits into the budget, in bytes, otherwise compressed, or nil if neither fits.
func Line(plain []byte, budget int) ([]byte, error) {
	if len(plain) > MaxDocument {
		return nil, nil
	}
	if line := frameLine(encodingJSON, plain); len(line) <= budget {
		return line, nil
	}
	packed, err := deflate(plain)
	if err != nil {
		return nil, fmt.Errorf("cannot compress the result: %w", err)
	}
	if line := frameLine(encodingFlate, packed); len(line) <= budget {
		return line, nil
	}
	return nil, nil
}

// Split returns the line for a log: a long one is split into lines that each contain a part.
func Split(line []byte) []byte {
	if len(line) <= maxLine {
		return line
	}
	text := bytes.TrimSuffix(line, []byte("\n"))
	count := (len(text) + maxLine - 1) / maxLine
	var lines []byte
	for i := range count {
		part := text[i*maxLine : min((i+1)*maxLine, len(text))]
		lines = append(lines, frameLine(encodingPart, fmt.Appendf(nil, "%d/%d %s", i+1, count, part))...)
	}
	return lines
}

func frameLine(encoding string, payload []byte) []byte {
	return fmt.Appendf(nil, "preflight/%s %s %d %08x %s\n", version, encoding, len(payload), crc32.ChecksumIEEE(payload), payload)
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

// Last returns the JSON of the last complete frame in data, which is a termination message or
// a log: at most [MaxDocument] bytes. Other text and incomplete frames are ignored. It returns
// [ErrNoFrame] if there is no complete frame, and another error if the only frames are damaged
// or have an unsupported version, or if the last one cannot be decoded.
func Last(data []byte) ([]byte, error) {
	scan := scanner{err: ErrNoFrame}
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		scan.line(line)
		data = rest
	}
	if scan.last == nil {
		return nil, scan.err
	}
	return scan.last.decode()
}

type frame struct {
	encoding string
	payload  []byte
}

// scanner reads lines and keeps the last complete frame.
type scanner struct {
	last  *frame
	err   error
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
	written, encoding, checksum := string(head[1]), string(head[2]), string(head[4])
	if written != version {
		return nil, fmt.Errorf("preflight frame has wire version %s: only version %s is supported", written, version)
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
	if bytes.HasPrefix(whole, []byte("preflight/"+version+" "+encodingPart+" ")) {
		return nil
	}
	return whole
}

func (f frame) decode() ([]byte, error) {
	plain := f.payload
	switch f.encoding {
	case encodingJSON:
	case encodingFlate:
		var err error
		if plain, err = inflate(f.payload); err != nil {
			return nil, fmt.Errorf("damaged preflight frame: %w", err)
		}
	default:
		return nil, fmt.Errorf("preflight frame has unknown encoding %q", f.encoding)
	}
	if len(plain) > MaxDocument {
		return nil, fmt.Errorf("preflight frame has more than %d bytes of JSON", MaxDocument)
	}
	return plain, nil
}

// inflate reverses deflate. It decodes at most one byte more than a document may
// have.
func inflate(packed []byte) ([]byte, error) {
	raw := base64.NewDecoder(base64.RawURLEncoding, bytes.NewReader(packed))
	return io.ReadAll(io.LimitReader(flate.NewReader(raw), MaxDocument+1))
}
