package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxChunk bounds the compressed data in one ConfigMap if the data can be split:
	// the API server accepts 1 MiB, and the header has other data.
	maxChunk = 256 << 10
	// maxWhole bounds compressed data that cannot be split.
	maxWhole = 900 << 10
	// maxMember bounds the text of a gzip member, unless one line is longer.
	maxMember = 128 << 10
	// maxChunkText and maxText bound the decompressed size of one chunk and of all.
	maxChunkText = 8 << 20
	maxText      = 64 << 20
	maxResults   = 20_000
	maxParts     = 512
)

// resultLog has compressed results in chunks: full ones, which never change, and an
// open one. A chunk is a sequence of gzip members, so that appending compresses only
// the new results.
type resultLog struct {
	full     [][]byte
	open     []byte
	openText int
	used     budget
}

// budget is the used part of the bounds on text and results.
type budget struct {
	text, count int
}

func (b budget) allows(text, count int) bool {
	return b.text+text <= maxText && b.count+count <= maxResults
}

// add compresses results. Results beyond the bounds are dropped.
func (j *resultLog) add(results []Result) error {
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

// append adds lines of results as a gzip member.
func (j *resultLog) append(lines []byte, count int) error {
	member, err := pack(lines)
	if err != nil {
		return err
	}
	if len(member) > maxWhole || len(lines) > maxChunkText || !j.used.allows(len(lines), count) || len(j.full) == maxParts {
		return nil
	}
	j.used.text += len(lines)
	j.used.count += count
	if len(j.open)+len(member) > maxChunk || j.openText+len(lines) > maxChunkText {
		j.seal()
	}
	j.open = append(j.open, member...)
	j.openText += len(lines)
	if len(j.open) > maxChunk {
		j.seal()
	}
	return nil
}

// readable counts the full chunks before the first that could not be read. The others
// are written again, without results.
func (j *resultLog) readable() int {
	for i, chunk := range j.full {
		if chunk == nil {
			return i
		}
	}
	return len(j.full)
}

// seal completes the open chunk.
func (j *resultLog) seal() {
	if len(j.open) > 0 {
		j.full = append(j.full, j.open)
	}
	j.open, j.openText = nil, 0
}

// reopen continues an open chunk, unless it is unreadable.
func (j *resultLog) reopen(chunk []byte) {
	before := j.used.text
	if _, err := j.used.results(chunk); err != nil {
		return
	}
	j.open, j.openText = bytes.Clone(chunk), j.used.text-before
}

// pack compresses text; empty text is nil.
func pack(text []byte) ([]byte, error) {
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

// unpack reverses pack, for at most limit bytes of text.
func unpack(packed []byte, limit int) ([]byte, error) {
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
func PackEnding(e Ending) ([]byte, error) {
	if !e.Phase.final() {
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
	if len(text) > maxText {
		return nil, fmt.Errorf("the report has %d bytes, more than %d", len(text), maxText)
	}
	return pack(text)
}

// unpackReport reverses packReport.
func unpackReport(packed []byte) ([]byte, map[string]string, error) {
	if len(packed) == 0 {
		return nil, nil, nil
	}
	text, err := unpack(packed, maxText)
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

// results reads one complete chunk: one that cannot be read to its end is damaged and
// has no results.
func (b *budget) results(chunk []byte) ([]Result, error) {
	limit := min(maxChunkText, maxText-b.text)
	text, err := unpack(chunk, limit)
	if err != nil {
		if limit < maxChunkText {
			b.text = maxText // the remaining chunks are not read
		}
		return nil, err
	}
	var results []Result
	for line := range bytes.Lines(text) {
		var result Result
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
	b.count += len(results)
	return results, nil
}
