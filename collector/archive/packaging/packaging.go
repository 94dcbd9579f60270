// Package packaging answers: which files does an archive have?
//
// [Walk] reads each file once, as a stream: nothing is written to disk, and only the data that the visitor keeps
// stays in memory. The type of an archive follows from its content, not from its name: a directory, a tar, a zip,
// a tar compressed by gzip or xz, or one file of YAML or JSON.
//
// Links, devices and pipes are not read, and neither are paths that lead out of the archive, or directories that
// cannot be listed: each is reported as an [Entry]. A truncated archive, or one with a wrong checksum, is an
// error, since its missing content is unknown: a tar must have its end mark, and a stream is read to its end.
package packaging

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/therootcompany/xz"

	"github.com/openshift/update-preflight/signature/localfile" //nolint:depguard // it only opens files, and does not depend on releases
)

const (
	// maxUnpacked bounds the content of an archive, read or not, in bytes: the archive of a large cluster has several
	// GB of logs.
	maxUnpacked = 64 << 30
	// maxFiles bounds the files of an archive. One of six nodes has 6 000.
	maxFiles = 2_000_000
	// maxPath bounds a path, in bytes.
	maxPath = 4096
	// maxDictionary bounds the memory that decompressing xz takes: "xz -9" uses 64 MiB.
	maxDictionary = 64 << 20
)

// Visit is called for each file, with its path in the archive and its size; content is valid only during the call.
// An error stops the walk.
type Visit func(path string, size int64, content io.Reader) error

// EntryType is the type of an entry that is not read.
type EntryType int

// The types of entries.
const (
	// File has no entries below it.
	File EntryType = iota
	// Directory lacks everything below it.
	Directory
	// SymbolicLink leads to a file or to a directory.
	SymbolicLink
	// HardLink is another name of a file of the same tar.
	HardLink
)

// Entry is an entry that is not read.
type Entry struct {
	// Path is that in the archive. One that leads out of the archive is given as if it began in the root.
	Path string
	Type EntryType
	// Target is the path of the file that a hard link names; empty if it is not visited.
	Target string
	// Cause completes "the entry is not read, since ...".
	Cause string
}

// Skip is called for each entry that is not read.
type Skip func(Entry)

// Walk calls visit for each file of the archive, in the archive's order; a directory is walked in lexical order.
// The path may continue below the file of an archive, as in "a.tar.gz/dir": then only the files below that
// directory are visited or skipped, and paths are relative to it. The error names the archive, or is the error
// that visit returned.
func Walk(ctx context.Context, name string, visit Visit, skip Skip) error {
	file, within := split(name)
	w := &walk{ctx: ctx, within: within, visit: visit, skip: skip}
	if err := w.open(file); err != nil {
		return fmt.Errorf("the archive %s cannot be read: %w", name, err)
	}
	return nil
}

// split is the longest part of a path that exists, and the rest if that part is a file.
func split(name string) (file, within string) {
	for file = filepath.Clean(name); ; {
		if info, err := os.Stat(file); err == nil {
			if info.IsDir() && within != "" {
				return name, "" // opening it returns the error
			}
			return file, within
		}
		parent := filepath.Dir(file)
		if parent == file {
			return name, ""
		}
		within = path.Join(filepath.Base(file), within)
		file = parent
	}
}

type walk struct {
	ctx    context.Context //nolint:containedctx // a walk lives for a single call of Walk
	within string
	visit  Visit
	skip   Skip
	files  int
	bytes  int64
}

func (w *walk) open(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return w.directory(name)
	}
	file, err := localfile.Open(w.ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(w.stream(file, name, info), file.Close())
}

func (w *walk) directory(name string) error {
	root, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case w.ctx.Err() != nil:
			return context.Cause(w.ctx)
		case err != nil && name == ".":
			return err
		case err != nil:
			w.omit(Entry{Path: name, Type: Directory, Cause: err.Error()})
			return nil //nolint:nilerr // the omitted entry records the error
		case entry.IsDir():
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			w.omit(Entry{Path: name, Type: SymbolicLink, Cause: symbolic})
			return nil
		case !entry.Type().IsRegular():
			w.omit(Entry{Path: name, Cause: special})
			return nil
		}
		return w.regular(root, name)
	})
	return errors.Join(err, root.Close())
}

// The causes for which entries are not read by their type.
const (
	symbolic = "it is a symbolic link"
	special  = "it is not a regular file"
)

func (w *walk) regular(root *os.Root, name string) error {
	file, err := localfile.OpenRegularIn(root, name)
	if err != nil {
		w.omit(Entry{Path: name, Cause: err.Error()})
		return nil //nolint:nilerr // the omitted entry records the error
	}
	info, err := file.Stat()
	if err == nil {
		err = w.one(name, info.Size(), file)
	}
	return errors.Join(err, file.Close())
}

// The first bytes of the formats.
const (
	magicGzip = "\x1f\x8b"
	magicXZ   = "\xfd7zXZ\x00"
	magicZip  = "PK\x03\x04"
	emptyZip  = "PK\x05\x06"
)

const blockSize = 512

// stream visits the files of one file, which is an archive or has YAML or JSON.
func (w *walk) stream(file io.Reader, name string, info fs.FileInfo) error {
	buffered := bufio.NewReaderSize(file, 1<<16)
	head, err := buffered.Peek(blockSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	magic := string(head)
	switch {
	case strings.HasPrefix(magic, magicZip), strings.HasPrefix(magic, emptyZip):
		return w.zip(file, info)
	case strings.HasPrefix(magic, magicGzip):
		return w.compressed(func(into io.Writer) error { return unpackGzip(into, buffered) })
	case strings.HasPrefix(magic, magicXZ):
		return w.compressed(func(into io.Writer) error { return unpackXZ(into, buffered) })
	case isTar(head):
		return w.tar(buffered)
	case isText(name):
		return w.one(filepath.Base(name), info.Size(), buffered)
	}
	return errors.New("it is neither a directory nor a tar, tar.gz, tar.xz or zip, nor a YAML or JSON file")
}

// unpackedBlock is how much is decompressed ahead of what is read, in bytes.
const unpackedBlock = 256 << 10

// unpackGzip decompresses all members (RFC 1952, 2.2), of which programs that compress in parallel
// write many. Zeros may follow, as GNU gzip accepts them.
func unpackGzip(into io.Writer, packed *bufio.Reader) error {
	member, err := gzip.NewReader(packed)
	for buffer := make([]byte, unpackedBlock); err == nil; err = member.Reset(packed) {
		member.Multistream(false)
		if _, err := io.CopyBuffer(into, member, buffer); err != nil {
			return err
		}
		ended, err := skipZeros(packed)
		if err != nil || ended {
			return err
		}
	}
	return err
}

// unpackXZ decompresses all streams, which zeros may follow.
func unpackXZ(into io.Writer, packed io.Reader) error {
	unpacked, err := xz.NewReader(packed, maxDictionary)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(into, unpacked, make([]byte, unpackedBlock))
	return err
}

// skipZeros reads zeros, and reports whether nothing else follows.
func skipZeros(content *bufio.Reader) (bool, error) {
	for {
		next, err := content.Peek(max(content.Buffered(), 1))
		if errors.Is(err, io.EOF) && len(next) == 0 {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		rest := len(bytes.TrimLeft(next, "\x00"))
		if _, err := content.Discard(len(next) - rest); err != nil || rest > 0 {
			return false, err
		}
	}
}

// compressed visits the files of a compressed tar. Decompressing takes as long as the rest, so it
// has a goroutine of its own, which has ended when compressed returns.
func (w *walk) compressed(unpack func(io.Writer) error) error {
	reader, writer := io.Pipe()
	var unpacking sync.WaitGroup
	unpacking.Go(func() { _ = writer.CloseWithError(unpack(writer)) }) // it never fails
	err := w.unpacked(reader)
	_ = reader.Close() // it never fails
	unpacking.Wait()
	return err
}

// unpacked visits the files of a tar that was compressed.
func (w *walk) unpacked(content io.Reader) error {
	buffered := bufio.NewReaderSize(content, unpackedBlock)
	head, err := buffered.Peek(blockSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !isTar(head) {
		return errors.New("its compressed content is not a tar")
	}
	return w.tar(buffered)
}

// isTar reports whether the first block begins a tar, also an old or an empty one.
func isTar(head []byte) bool {
	if len(head) < blockSize {
		return false
	}
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func isText(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// tar visits the files of a tar. What follows its end mark would not be read: zeros may, which fill a record.
func (w *walk) tar(content io.Reader) error {
	all := &bounded{walk: w, next: content}
	files := tar.NewReader(all)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.tarEntry(header, files); err != nil {
			return err
		}
	}
	if all.ended { // archive/tar also accepts a stream that ends between two entries
		return errors.New("it was cut off: the end mark of the tar is missing; copy or gather it again")
	}
	ended, err := skipZeros(bufio.NewReaderSize(all, blockSize))
	if err == nil && !ended {
		err = errors.New("content follows the end mark of the tar: if the file contains several archives, name each with its own " +
			"--archive")
	}
	return err
}

func (w *walk) tarEntry(header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeRegA: //nolint:staticcheck // old tar writers set TypeRegA
		return w.entry(header.Name, header.Size, content)
	case tar.TypeDir, tar.TypeXGlobalHeader:
	case tar.TypeSymlink:
		w.omitInside(header.Name, Entry{Type: SymbolicLink, Cause: symbolic})
	case tar.TypeLink:
		target, _ := w.inside(header.Linkname) // empty where it is not visited
		w.omitInside(header.Name, Entry{Type: HardLink, Target: target, Cause: "it is a hard link to a file that was not read"})
	default:
		w.omitInside(header.Name, Entry{Cause: special})
	}
	return nil
}

func (w *walk) zip(file io.Reader, info fs.FileInfo) error {
	random, ok := file.(io.ReaderAt)
	if !ok || !info.Mode().IsRegular() {
		return errors.New("a zip must be a regular file")
	}
	files, err := zip.NewReader(random, info.Size())
	if err != nil {
		return err
	}
	for _, entry := range files.File {
		if err := w.zipEntry(entry); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) zipEntry(entry *zip.File) error {
	switch mode := entry.Mode(); {
	case mode.IsDir():
		return nil
	case mode&fs.ModeSymlink != 0:
		w.omitInside(entry.Name, Entry{Type: SymbolicLink, Cause: symbolic})
		return nil
	case !mode.IsRegular():
		w.omitInside(entry.Name, Entry{Cause: special})
		return nil
	}
	content, err := entry.Open()
	if err != nil {
		w.omitInside(entry.Name, Entry{Cause: err.Error()})
		return nil //nolint:nilerr // the omitted entry records the error
	}
	size := int64(min(entry.UncompressedSize64, maxUnpacked))
	return errors.Join(w.entry(entry.Name, size, &bounded{walk: w, next: content}), content.Close())
}

// entry visits an entry of a tar or zip, unless its path leads out of the archive.
func (w *walk) entry(name string, size int64, content io.Reader) error {
	for part := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if part == ".." {
			w.omitInside(name, Entry{Cause: "its path leads out of the archive"})
			return nil
		}
	}
	inside, ok := w.inside(name)
	if !ok {
		return nil
	}
	return w.one(inside, size, content)
}

// inside is the path of an entry of a tar or zip below the directory that is walked.
func (w *walk) inside(name string) (string, bool) {
	inside := strings.TrimPrefix(path.Clean("/"+name), "/")
	if w.within == "" {
		return inside, true
	}
	return strings.CutPrefix(inside, w.within+"/")
}

// omitInside is omit for an entry of a tar or zip.
func (w *walk) omitInside(name string, of Entry) {
	if inside, ok := w.inside(name); ok {
		of.Path = inside
		w.omit(of)
	}
}

// omit skips an entry. If its path is too long, the directory is named in its place.
func (w *walk) omit(of Entry) {
	if len(of.Path) > maxPath {
		of = Entry{Path: path.Dir(of.Path[:maxPath]), Type: Directory, Cause: "the path of a file is too long"}
	}
	w.skip(of)
}

func (w *walk) one(name string, size int64, content io.Reader) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.files++; w.files > maxFiles {
		return fmt.Errorf("it contains more than %d files", maxFiles)
	}
	if len(name) > maxPath {
		if isText(name) { // other files have no objects
			w.omit(Entry{Path: name})
		}
		return nil
	}
	return w.visit(name, size, content)
}

// bounded ends with an error where an archive has too much content, or the context has ended.
type bounded struct {
	walk *walk
	next io.Reader
	// ended is true once the content was read to its end.
	ended bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.walk.ctx.Err() != nil {
		return 0, context.Cause(b.walk.ctx)
	}
	n, err := b.next.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	if b.walk.bytes += int64(n); b.walk.bytes > maxUnpacked {
		return n, fmt.Errorf("it contains more than %d bytes of content", int64(maxUnpacked))
	}
	return n, err
}
