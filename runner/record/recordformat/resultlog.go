package recordformat

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/openshift/update-preflight/runner/record"
)

const (
	// MaxChunk bounds the compressed data in one ConfigMap if the data can be split:
	// the API server accepts 1 MiB, and the header has other data.
	MaxChunk = 256 << 10
	// MaxWhole bounds compressed data in one ConfigMap that cannot be split.
	MaxWhole = 900 << 10
	// maxMember bounds the text of a gzip member, unless one line is longer.
	maxMember = 128 << 10
	// maxChunkText bounds the decompressed size of one chunk.
	maxChunkText = 8 << 20
	// MaxText bounds the decompressed size of all results, and of a report, in bytes.
	MaxText    = 64 << 20
	maxResults = 20_000
	maxParts   = 512
)

// ResultLog has compressed results in chunks: full ones, which never change, and an
// open one. A chunk is a sequence of gzip members, so that appending compresses only
// the new results.
type ResultLog struct {
	Full     [][]byte
	Open     []byte
	openText int
	Used     Budget
}

// Budget is the used part of the bounds on text and results.
type Budget struct {
	text, Count int
}

func (b Budget) allows(text, count int) bool {
	return b.text+text <= MaxText && b.Count+count <= maxResults
}

// Add compresses results. Results beyond the bounds are dropped.
func (j *ResultLog) Add(results []record.Result) error {
	var lines bytes.Buffer
	count := 0
	for _, result := range results {
		line, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("could not encode the result of %q: %w", result.Check, err)
		}
		if lines.Len() > 0 && lines.Len()+len(line) > maxMember {
			if err := j.append(lines.Bytes(), count); err != nil {
				return err
			}
			lines.Reset()
			count = 0
		}
		lines.Write(line)
		lines.WriteByte('\n')
		count++
	}
	return j.append(lines.Bytes(), count)
}

func (j *ResultLog) append(lines []byte, count int) error {
	member, err := Pack(lines)
	if err != nil {
		return err
	}
	if len(member) > MaxWhole || len(lines) > maxChunkText || !j.Used.allows(len(lines), count) || len(j.Full) == maxParts {
		return nil
	}
	j.Used.text += len(lines)
	j.Used.Count += count
	if len(j.Open)+len(member) > MaxChunk || j.openText+len(lines) > maxChunkText {
		j.seal()
	}
	j.Open = append(j.Open, member...)
	j.openText += len(lines)
	if len(j.Open) > MaxChunk {
		j.seal()
	}
	return nil
}

// Readable counts the full chunks before the first that could not be read. The others
// are written again, without results.
func (j *ResultLog) Readable() int {
	for i, chunk := range j.Full {
		if chunk == nil {
			return i
		}
	}
	return len(j.Full)
}

func (j *ResultLog) seal() {
	if len(j.Open) > 0 {
		j.Full = append(j.Full, j.Open)
	}
	j.Open, j.openText = nil, 0
}

// Reopen continues an open chunk, unless it is unreadable.
func (j *ResultLog) Reopen(chunk []byte) {
	before := j.Used.text
	if _, err := j.Used.Results(chunk); err != nil {
		return
	}
	j.Open, j.openText = bytes.Clone(chunk), j.Used.text-before
}

// Pack compresses text; empty text is nil.
func Pack(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(text); err != nil {
		return nil, fmt.Errorf("could not compress: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("could not compress: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack reverses Pack, for at most limit bytes of text.
func Unpack(packed []byte, limit int) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("could not decompress: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("could not decompress: %w", err)
	case len(text) > limit:
		return nil, fmt.Errorf("decompresses to more than %d bytes", limit)
	}
	return text, nil
}

// PackEnding encodes the report and the fingerprint of an ending.
func PackEnding(e record.Ending) ([]byte, error) {
	if !e.Phase.Final() {
		return nil, fmt.Errorf("%q is not a final phase", e.Phase)
	}
	return packReport(e.Report, e.Fingerprint)
}

// packReport compresses a report, after a line with its fingerprint; nil without both.
func packReport(report []byte, fingerprint map[string]string) ([]byte, error) {
	if len(report) == 0 && len(fingerprint) == 0 {
		return nil, nil
	}
	line, err := json.Marshal(fingerprint)
	if err != nil {
		return nil, fmt.Errorf("could not encode the fingerprint: %w", err)
	}
	text := append(append(line, '\n'), report...)
	if len(text) > MaxText {
		return nil, fmt.Errorf("the report has %d bytes, more than %d", len(text), MaxText)
	}
	return Pack(text)
}

// UnpackReport reverses packReport.
func UnpackReport(packed []byte) ([]byte, map[string]string, error) {
	if len(packed) == 0 {
		return nil, nil, nil
	}
	text, err := Unpack(packed, MaxText)
	if err != nil {
		return nil, nil, err
	}
	line, report, _ := bytes.Cut(text, []byte("\n"))
	var fingerprint map[string]string
	if err := json.Unmarshal(line, &fingerprint); err != nil {
		return nil, nil, fmt.Errorf("could not decode the fingerprint: %w", err)
	}
	if len(report) == 0 {
		report = nil
	}
	return report, fingerprint, nil
}

// Results reads one complete chunk: one that cannot be read to its end is damaged and has no results.
func (b *Budget) Results(chunk []byte) ([]record.Result, error) {
	limit := min(maxChunkText, MaxText-b.text)
	text, err := Unpack(chunk, limit)
	if err != nil {
		if limit < maxChunkText {
			b.text = MaxText // the remaining chunks are not read
		}
		return nil, err
	}
	var results []record.Result
	for line := range bytes.Lines(text) {
		var result record.Result
		switch err := json.Unmarshal(line, &result); {
		case err != nil:
			return nil, fmt.Errorf("could not decode a result: %w", err)
		case result.Check == "":
			return nil, errors.New("a result has no check")
		case !b.allows(0, len(results)+1):
			return nil, fmt.Errorf("more than %d results", maxResults)
		}
		results = append(results, result)
	}
	b.text += len(text)
	b.Count += len(results)
	return results, nil
}
