package imagefiles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/openshift/update-preflight/collector/words"
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
	defer stream.Close() //nolint:errcheck // Nothing is written.
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
