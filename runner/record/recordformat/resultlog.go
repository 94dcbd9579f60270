package recordformat

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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

// Results reads one complete chunk: a chunk that cannot be read to its end is damaged and has no results.
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

const (
	keyMAC        = "record.mac"
	keyVerdictMAC = "verdict.mac"

	domainRecord  = "preflight.openshift.io/record.mac/v1"
	domainVerdict = "preflight.openshift.io/verdict.mac/v1"
	domainDigests = "preflight.openshift.io/baseline.digests/v1"

	// digestDigits is the length of a digest of a name: 64 bits, of which a million names have two equal ones once in
	// 37 million baselines.
	digestDigits = 16
)

// Key authenticates records; nil if there is none.
type Key []byte

// sum returns the MAC of a message in a domain, in hex: HMAC-SHA256, keyed with the HMAC-SHA256 of the domain.
func (k Key) sum(domain string, message []byte) string {
	derived := hmac.New(sha256.New, k)
	derived.Write([]byte(domain))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

// Digest returns a digest of a name, with which names can be compared without being readable: without the key, they
// cannot be guessed and tried either.
func (k Key) Digest(name string) string { return k.sum(domainDigests, []byte(name))[:digestDigits] }

// LoadedKey is the key, or what its absence means for the authentication of records.
type LoadedKey struct {
	Key     Key
	Without record.Authentication
	// Absent is true if the Secret does not exist.
	Absent bool
}

// Seal sets the MACs of a header, whose UID the API server has assigned, or of a part, whose owner is the header. A
// header without a UID only gets the MAC of its verdict.
func (k Key) Seal(object *corev1.ConfigMap, id string) {
	delete(object.Data, keyMAC)
	delete(object.Data, keyVerdictMAC)
	if k == nil {
		return
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	if text, ok := object.Data[KeyVerdict]; ok {
		object.Data[keyVerdictMAC] = k.sum(domainVerdict, []byte(text))
	}
	header := object.UID
	if len(object.OwnerReferences) > 0 {
		header = object.OwnerReferences[0].UID
	}
	if header != "" {
		object.Data[keyMAC] = k.sum(domainRecord, canonical(object, id, header))
	}
}

// Authentication describes how what this process writes is authenticated.
func (l LoadedKey) Authentication() record.Authentication {
	if l.Key == nil {
		return l.Without
	}
	return record.Authentication{State: record.Authentic}
}

// Verify verifies the MAC of a header or part of the run; header is the UID of the header.
func (l LoadedKey) Verify(object *corev1.ConfigMap, id string, header types.UID) record.Authentication {
	switch mac := object.Data[keyMAC]; {
	case mac == "":
		return Unauthentic(object.Name, "has no MAC")
	case l.Key == nil:
		return l.Without
	case !hmac.Equal([]byte(mac), []byte(l.Key.sum(domainRecord, canonical(object, id, header)))):
		return Unauthentic(object.Name, "has a MAC that does not match its content")
	}
	return record.Authentication{State: record.Authentic}
}

// canonical is the content that a MAC covers: the object, the run, the UID of its
// header and all data but the MAC. Each text has its length before it, so that
// different contents have different encodings.
func canonical(object *corev1.ConfigMap, id string, header types.UID) []byte {
	var encoded []byte
	add := func(texts ...string) {
		for _, text := range texts {
			encoded = binary.BigEndian.AppendUint64(encoded, uint64(len(text)))
			encoded = append(encoded, text...)
		}
	}
	add(object.Namespace, object.Name, string(header), id)
	for _, name := range slices.Sorted(maps.Keys(object.Data)) {
		if name != keyMAC {
			add("data", name, object.Data[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object.BinaryData)) {
		add("binaryData", name, string(object.BinaryData[name]))
	}
	return encoded
}

// Unauthentic is the result for a ConfigMap.
func Unauthentic(name, cause string) record.Authentication {
	return record.Authentication{State: record.Unauthentic, Cause: fmt.Sprintf("configmap %q %s", name, cause)}
}
