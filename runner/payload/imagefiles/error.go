package imagefiles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
)

// maxCause bounds the text of an underlying error, in bytes: the responses of several mirrors must fit.
const maxCause = 1536

// Error reports that a release could not be read or must not be used.
type Error struct {
	Reason finding.Reason
	// Message is the cause in one line.
	Message string
	// Remediation is an imperative sentence, Actions are its commands.
	Remediation string
	Actions     []finding.Action
	// Outcome is Fail when the release must not be used, and Unknown when it could not be read.
	Outcome preflight.Outcome
	// Err is the underlying error; nil when there is none.
	Err error
}

// Error returns the message and the underlying error in one line.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + words.Line(e.Err.Error(), maxCause)
}

// Remedy returns the next step, with its commands.
func (e *Error) Remedy() (sentence string, commands []finding.Action) {
	return e.Remediation, e.Actions
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Reject returns the error for a release that must not be used.
func Reject(reason finding.Reason, format string, args ...any) *Error {
	return &Error{
		Reason: reason, Message: fmt.Sprintf(format, args...), Outcome: preflight.Fail,
		Remediation: "Do not update to this image. Compare its digest with the announcement of the release, and mirror the release " +
			"again with `oc adm release mirror`.",
	}
}

func unreadable(err error, what string) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	failure := &Error{
		Reason: registry.ReasonRegistryUnreachable, Message: "cannot read " + what, Outcome: preflight.Unknown, Err: err,
		Remediation: "Make the registry reachable from here, then run the preflight again.",
	}
	failed, ok := errors.AsType[*registry.Error](err)
	switch {
	case ok:
		failure.Reason, failure.Remediation, failure.Actions = failed.Reason, failed.Remediation, failed.Actions
	case errors.Is(err, context.Canceled):
		failure.Reason, failure.Remediation = collector.ReasonInterrupted, "Run the preflight again and let it finish."
	case errors.Is(err, context.DeadlineExceeded):
		failure.Reason, failure.Remediation = collector.ReasonTimeout, "Run the preflight again with a longer timeout."
		failure.Actions = []finding.Action{finding.Retry(finding.OptionTimeout)}
	}
	return failure
}

// unusable returns the error for a manifest that must not be used.
func unusable(err error) error {
	rejected, ok := errors.AsType[*ocimanifest.Violation](err)
	if !ok {
		return err
	}
	failure := Reject(rejected.Reason, "%s", rejected.Message)
	switch rejected.Reason {
	case ocimanifest.ReasonSchemaVersion1:
		failure.Remediation = "Mirror the release again, to a registry that preserves manifests."
	case ocimanifest.ReasonArchitectureMissing:
		failure.Message += ", the architecture of the control plane"
		failure.Remediation = "Choose the release for this architecture, or the multi-architecture release; on a mirror, mirror it with " +
			"all architectures: `oc adm release mirror --keep-manifest-list`."
	}
	return failure
}

var (
	reasonNotVerified = finding.NewReason("NotVerified", finding.Explanation{
		Meaning: "A release is read that was not verified.",
		Cause:   "The calling program is defective.",
		Remedy:  "Verify the release first.",
	})
	reasonInvalidPullSpec = finding.NewReason("InvalidPullSpec", finding.Explanation{
		Meaning: "The pull spec of the release does not contain the verified digest.",
		Cause:   "The calling program is defective.",
		Remedy:  "Specify the release as REPOSITORY@sha256:DIGEST.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "A registry serves content that does not match the digest.",
		Cause:   "The registry or a proxy is defective or compromised.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonLayerTruncated = finding.NewReason("LayerTruncated", finding.Explanation{
		Meaning: "A registry ends the response before the layer is complete.",
		Cause:   "The connection was closed, or the registry lacks a part of the layer.",
		Remedy:  "Run the preflight again; if it persists, mirror the release again: oc adm release mirror.",
	})
	reasonLayerTooLarge = finding.NewReason("LayerTooLarge", finding.Explanation{
		Meaning: "The layer with the manifests exceeds the limits.",
		Cause:   "The image is not a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonDuplicateEntry = finding.NewReason("DuplicateEntry", finding.Explanation{
		Meaning: "The layer contains a file twice.",
		Cause:   "The image was not built like a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonUnsafeEntry = finding.NewReason("UnsafeEntry", finding.Explanation{
		Meaning: "The layer contains an entry with a path outside of the image.",
		Cause:   "The image was not built like a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonNotAFile = finding.NewReason("NotAFile", finding.Explanation{
		Meaning: "An entry in the manifests directory is not a regular file.",
		Cause:   "The image was not built like a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonWhiteout = finding.NewReason("Whiteout", finding.Explanation{
		Meaning: "The layer deletes a manifest of a lower layer.",
		Cause:   "The image was not built like a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonFileTooLarge = finding.NewReason("FileTooLarge", finding.Explanation{
		Meaning: "A manifest is larger than 8 MiB.",
		Cause:   "The image was not built like a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonMalformedLayer = finding.NewReason("MalformedLayer", finding.Explanation{
		Meaning: "The layer with the manifests is not a valid tar archive.",
		Cause:   "The image is not a release image, or was built by an incompatible tool.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
)

const (
	// ReleaseDirectory is the directory of the manifests in a release image.
	ReleaseDirectory = "release-manifests"
	maxUnpacked      = 512 << 20
	maxFile          = 8 << 20
	maxEntries       = 20_000
	// maxWindow is the window that every zstd decoder should support (RFC 8878, 3.1.1.1.2).
	maxWindow = 8 << 20
)

// eachManifest decompresses the layer and calls visit with every file directly in the
// directory, in the order of the layer. It retains no content.
func eachManifest(ctx context.Context, layer []byte, directory string, visit func(file string, content []byte) error) error {
	stream, err := decompress(layer)
	if err != nil {
		return err
	}
	defer stream.Close()
	contents := &contents{directory: directory, archive: tar.NewReader(&bounded{reader: stream, left: maxUnpacked}), seen: map[string]bool{}}
	for ctx.Err() == nil {
		file, content, err := contents.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if file == "" {
			continue
		}
		if err := visit(file, content); err != nil {
			return err
		}
	}
	return unreadable(ctx.Err(), "the manifests of the image")
}

// contents reads an archive within the limits.
type contents struct {
	directory string
	archive   *tar.Reader
	seen      map[string]bool
	entries   int
	total     int64
}

// next returns the next entry; the name is empty for an entry outside of
// the directory, and the error is io.EOF after the last.
func (c *contents) next() (string, []byte, error) {
	header, err := c.archive.Next()
	if errors.Is(err, io.EOF) {
		return "", nil, io.EOF
	}
	if err != nil {
		return "", nil, malformed(err)
	}
	if c.entries++; c.entries > maxEntries || header.Size > maxUnpacked-c.total {
		return "", nil, Reject(reasonLayerTooLarge, "the layer has more than %d entries or %d bytes decompressed", maxEntries, maxUnpacked)
	}
	c.total += header.Size
	file, err := manifestFile(header, c.directory)
	if file == "" || err != nil {
		return "", nil, err
	}
	if c.seen[file] {
		return "", nil, Reject(reasonDuplicateEntry, "the layer has the file %q twice", words.External(header.Name))
	}
	c.seen[file] = true
	content := make([]byte, header.Size)
	if _, err := io.ReadFull(c.archive, content); err != nil {
		return "", nil, malformed(err)
	}
	return file, content, nil
}

// manifestFile returns the name of a file of the directory, or "" for any other entry. An
// entry that may imitate or hide such a file is an error.
func manifestFile(header *tar.Header, within string) (string, error) {
	shown := words.External(header.Name)
	switch {
	case strings.ContainsRune(header.Name, 0) || path.IsAbs(header.Name) || slices.Contains(strings.Split(header.Name, "/"), ".."):
		return "", Reject(reasonUnsafeEntry, "the layer has an entry %q, which is not a path inside the image", shown)
	case path.Clean(header.Name) == within && header.Typeflag != tar.TypeDir:
		return "", Reject(reasonNotAFile, "%q in the layer is not a directory", shown)
	}
	directory, file := path.Split(path.Clean(header.Name))
	if directory != within+"/" || header.Typeflag == tar.TypeDir || file == ".wh..wh..opq" {
		return "", nil
	}
	switch {
	case header.Typeflag != tar.TypeReg:
		return "", Reject(reasonNotAFile, "%q in the layer is not a regular file", shown)
	case strings.HasPrefix(file, ".wh."):
		return "", Reject(reasonWhiteout, "the layer deletes %q of a lower layer, which release images never do", shown)
	case header.Size > maxFile:
		return "", Reject(reasonFileTooLarge, "the file %q has %d bytes; the limit is %d", shown, header.Size, maxFile)
	}
	return file, nil
}

// malformed returns the error for an archive that cannot be read, or the exceeded limit that caused it.
func malformed(err error) error {
	if limit, ok := errors.AsType[*Error](err); ok {
		return limit
	}
	failure := Reject(reasonMalformedLayer, "the layer is not a valid tar archive")
	failure.Err = err
	return failure
}

// decompress detects the compression by content; media types of layers are often wrong.
func decompress(layer []byte) (io.ReadCloser, error) {
	switch {
	case bytes.HasPrefix(layer, []byte{0x1f, 0x8b}):
		reader, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			return nil, malformed(err)
		}
		return reader, nil
	case bytes.HasPrefix(layer, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		reader, err := zstd.NewReader(bytes.NewReader(layer), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxUnpacked+maxWindow))
		if err != nil {
			return nil, malformed(err)
		}
		return reader.IOReadCloser(), nil
	}
	return io.NopCloser(bytes.NewReader(layer)), nil
}

// bounded fails beyond the limit, where io.LimitReader would end.
type bounded struct {
	reader io.Reader
	left   int64
}

// Read fails with LayerTooLarge beyond the limit.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, Reject(reasonLayerTooLarge, "the layer has more than %d bytes decompressed", maxUnpacked)
	}
	return n, err
}
