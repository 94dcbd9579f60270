// Package packaging answers: which files does an archive have?
//
// [Walk] reads each once, as a stream: nothing is written to disk, and only what the visitor
// reads of a file is kept. What an archive is follows from its content, not from its name: a
// directory, a tar, a zip, a tar compressed by gzip or xz, or one file of YAML or JSON. Symbolic
// links, devices and pipes are not read, and neither is a path that leads out of the archive.
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

	"github.com/openshift/update-preflight/signature/localfile" //nolint:depguard // opens files, and knows no release
)

const (
	// maxUnpacked bounds the content of an archive, read or not, in bytes: that of a large
	// cluster has several GB of logs.
	maxUnpacked = 64 << 30
	// maxFiles bounds the files of an archive. One of six nodes has 6 000.
	maxFiles = 2_000_000
	// maxPath bounds a path, in bytes.
	maxPath = 4096
	// maxDictionary bounds the memory that decompressing xz takes: "xz -9" uses 64 MiB.
	maxDictionary = 64 << 20
)

// Visit is called for each file, with its path in the archive and its size; content ends with the
// call. An error ends the walk.
type Visit func(path string, size int64, content io.Reader) error

// Skip is called for each entry that is not read, with the cause.
type Skip func(path, cause string)

// Walk calls visit for the files of the archive in the order in which it has them; a directory
// has them in lexical order. The path may continue below the file of an archive, as in
// "a.tar.gz/dir": then only files below that directory are visited, and paths are relative to
// it. The error names the archive, and is that of visit where it returned one.
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
	ctx    context.Context //nolint:containedctx // of one call
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

// directory visits the regular files of a directory.
func (w *walk) directory(name string) error {
	root, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case w.ctx.Err() != nil:
			return context.Cause(w.ctx)
		case err != nil:
			w.skip(name, err.Error())
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			w.skip(name, "it is not a regular file")
			return nil
		}
		return w.regular(root, name)
	})
	return errors.Join(err, root.Close())
}

func (w *walk) regular(root *os.Root, name string) error {
	file, err := localfile.OpenRegularIn(root, name)
	if err != nil {
		w.skip(name, err.Error())
		return nil
	}
	info, err := file.Stat()
	if err == nil {
		err = w.one(name, info.Size(), file)
	}
	return errors.Join(err, file.Close())
}

// The first bytes of the formats.
var (
	magicGzip = []byte{0x1f, 0x8b}                  //nolint:gochecknoglobals // never changed
	magicXZ   = []byte{0xfd, '7', 'z', 'X', 'Z', 0} //nolint:gochecknoglobals // never changed
	magicZip  = []byte{'P', 'K', 3, 4}              //nolint:gochecknoglobals // never changed
	emptyZip  = []byte{'P', 'K', 5, 6}              //nolint:gochecknoglobals // never changed
)

// blockSize is that of tar.
const blockSize = 512

// stream visits the files of one file, which is an archive or has YAML or JSON.
func (w *walk) stream(file io.Reader, name string, info fs.FileInfo) error {
	buffered := bufio.NewReaderSize(file, 1<<16)
	head, err := buffered.Peek(blockSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(head, magicZip), bytes.HasPrefix(head, emptyZip):
		return w.zip(file, info)
	case bytes.HasPrefix(head, magicGzip):
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return err
		}
		return w.compressed(unpacked)
	case bytes.HasPrefix(head, magicXZ):
		unpacked, err := xz.NewReader(buffered, maxDictionary)
		if err != nil {
			return err
		}
		return w.compressed(unpacked)
	case isTar(head):
		return w.tar(buffered)
	case isText(name):
		return w.one(filepath.Base(name), info.Size(), buffered)
	}
	return errors.New("it is neither a directory nor a tar, tar.gz, tar.xz or zip, nor a file of YAML or JSON")
}

// unpackedBlock is how much is decompressed ahead of what is read, in bytes.
const unpackedBlock = 256 << 10

// compressed visits the files of a compressed tar. Decompressing takes as long as the rest, so it
// has a goroutine of its own, which has ended when compressed returns.
func (w *walk) compressed(unpacked io.Reader) error {
	reader, writer := io.Pipe()
	var unpacking sync.WaitGroup
	unpacking.Go(func() {
		_, err := io.CopyBuffer(writer, unpacked, make([]byte, unpackedBlock))
		_ = writer.CloseWithError(err) // it never fails
	})
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

// isTar reports whether the first block is that of a tar, of an old one or an empty one too.
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

func (w *walk) tar(content io.Reader) error {
	files := tar.NewReader(&bounded{walk: w, next: content})
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeReg, tar.TypeRegA: //nolint:staticcheck // of old archives
			err = w.entry(header.Name, header.Size, files)
		case tar.TypeDir, tar.TypeXGlobalHeader:
		default:
			w.skip(header.Name, "it is not a regular file")
		}
		if err != nil {
			return err
		}
	}
}

// zip visits the files of a zip, whose list is at its end.
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
		switch mode := entry.Mode(); {
		case mode.IsDir():
			continue
		case !mode.IsRegular():
			w.skip(entry.Name, "it is not a regular file")
			continue
		}
		content, err := entry.Open()
		if err != nil {
			w.skip(entry.Name, err.Error())
			continue
		}
		size := int64(min(entry.UncompressedSize64, maxUnpacked))
		if err := errors.Join(w.entry(entry.Name, size, &bounded{walk: w, next: content}), content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// entry visits an entry of a tar or zip, unless its path leads out of the archive.
func (w *walk) entry(name string, size int64, content io.Reader) error {
	for part := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if part == ".." {
			w.skip(name, "its path leads out of the archive")
			return nil
		}
	}
	inside := strings.TrimPrefix(path.Clean("/"+name), "/")
	if w.within != "" {
		var below bool
		if inside, below = strings.CutPrefix(inside, w.within+"/"); !below {
			return nil
		}
	}
	return w.one(inside, size, content)
}

// one visits a file.
func (w *walk) one(name string, size int64, content io.Reader) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.files++; w.files > maxFiles {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	if len(name) > maxPath {
		w.skip(name[:maxPath], "its path is too long")
		return nil
	}
	return w.visit(name, size, content)
}

// bounded ends with an error where an archive has too much content, or the context has ended.
type bounded struct {
	walk *walk
	next io.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.walk.ctx.Err() != nil {
		return 0, context.Cause(b.walk.ctx)
	}
	n, err := b.next.Read(p)
	if b.walk.bytes += int64(n); b.walk.bytes > maxUnpacked {
		return n, fmt.Errorf("it has more than %d bytes of content", int64(maxUnpacked))
	}
	return n, err
}
