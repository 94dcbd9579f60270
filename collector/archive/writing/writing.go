// Package writing answers: how is an archive written completely or not at all?
//
// [Create] starts an archive beside its path, under a temporary name, [Writer.Begin] starts its next file, and
// [Writer.Commit] gives the archive its name. Without Commit, [Writer.Close] removes everything. Written content
// is not kept in memory.
package writing

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrExists is the error for a path at which something is already.
var ErrExists = errors.New("it already exists, and is not overwritten")

// Writer writes one archive. Writes go to the current file.
type Writer struct {
	path string
	// into has the files that are complete.
	into packing
	// current is the content of the current file; nil between files.
	current *os.File
	buffer  *bufio.Writer
	name    string
	closed  bool
	scratch []*os.File
}

// packing keeps complete files, which it may take from their place.
type packing interface {
	// scratch makes the file in which the content of the file of that name is written.
	scratch(name string) (*os.File, error)
	// add adds a file with the content of the scratch file, and drop forgets it.
	add(name string, content *os.File) error
	drop(name string, content *os.File) error
	// finish ends the writing under the temporary name, and remove removes everything.
	finish() (temporary string, err error)
	remove() error
}

// Create starts an archive: a tar compressed by gzip if the path ends in ".tar.gz" or ".tgz", and otherwise a
// directory. Only their owner can read its files. In a tar they are below a directory with the name of the
// archive, and have the time now.
func Create(path string, now time.Time) (*Writer, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = ErrExists
		}
		return nil, fmt.Errorf("cannot write %s: %w", path, err)
	}
	create := newDirectory
	root, packed := unpackedName(filepath.Base(path))
	if packed {
		create = func(path string) (packing, error) { return newTarball(path, root, now) }
	}
	into, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", path, err)
	}
	return &Writer{path: path, into: into, buffer: bufio.NewWriterSize(nil, 64<<10)}, nil
}

// unpackedName is the name of a tarball without its extension.
func unpackedName(name string) (string, bool) {
	for _, extension := range []string{".tar.gz", ".tgz"} {
		if root, ok := strings.CutSuffix(name, extension); ok && root != "" {
			return root, true
		}
	}
	return name, false
}

// Scratch returns an empty file beside the archive that is not part of it. If the system allows it, the file has
// no name, so that it does not outlive the process; Close removes it.
func (w *Writer) Scratch() (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(w.path), "."+filepath.Base(w.path)+".*")
	if err != nil {
		return nil, err
	}
	w.scratch = append(w.scratch, file)
	_ = os.Remove(file.Name()) // Close does where a file that is open cannot be removed
	return file, nil
}

// Begin begins a file; name is its path in the archive, with slashes.
func (w *Writer) Begin(name string) error {
	if !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("%q is not the path of a file in an archive", name)
	}
	scratch, err := w.into.scratch(name)
	if err != nil {
		return err
	}
	w.current, w.name = scratch, name
	w.buffer.Reset(scratch)
	return nil
}

// Write adds to the current file.
func (w *Writer) Write(content []byte) (int, error) { return w.buffer.Write(content) }

// End completes the current file.
func (w *Writer) End() error {
	current := w.current
	w.current = nil
	if err := w.buffer.Flush(); err != nil {
		return errors.Join(err, w.into.drop(w.name, current))
	}
	return w.into.add(w.name, current)
}

// Drop leaves the current file out.
func (w *Writer) Drop() error {
	current := w.current
	w.current = nil
	return w.into.drop(w.name, current)
}

// Commit gives the archive its name, and returns its size, in bytes.
func (w *Writer) Commit() (int64, error) {
	temporary, err := w.into.finish()
	if err != nil {
		return 0, fmt.Errorf("cannot write %s: %w", w.path, err)
	}
	if _, err := os.Lstat(w.path); err == nil { // it was made meanwhile
		return 0, fmt.Errorf("cannot write %s: %w", w.path, ErrExists)
	}
	size, err := sizeOf(temporary)
	if err != nil {
		return 0, err
	}
	if err := os.Rename(temporary, w.path); err != nil {
		return 0, err
	}
	return size, nil
}

// Close removes everything that was not committed.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	var err error
	if w.current != nil {
		err = w.Drop()
	}
	for _, file := range w.scratch {
		err = errors.Join(err, file.Close(), ignoreMissing(os.Remove(file.Name())))
	}
	return errors.Join(err, w.into.remove())
}

func sizeOf(path string) (int64, error) {
	var size int64
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// tarball is a tar that is compressed by gzip. A file of it begins with its size, so its content
// is written to a scratch file before.
type tarball struct {
	root          string
	now           time.Time
	file, content *os.File
	zip           *gzip.Writer
	tar           *tar.Writer
}

func newTarball(path, root string, now time.Time) (packing, error) {
	pattern := "." + filepath.Base(path) + ".*"
	file, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return nil, err
	}
	content, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	zip := gzip.NewWriter(file)
	return &tarball{root: root, now: now, file: file, content: content, zip: zip, tar: tar.NewWriter(zip)}, nil
}

func (t *tarball) scratch(name string) (*os.File, error) { return t.content, t.drop(name, t.content) }

func (t *tarball) drop(_ string, content *os.File) error {
	_, err := content.Seek(0, io.SeekStart)
	return errors.Join(err, content.Truncate(0))
}

func (t *tarball) add(name string, content *os.File) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	header := &tar.Header{Name: t.root + "/" + name, Size: size, Typeflag: tar.TypeReg, Mode: 0o600, ModTime: t.now.Truncate(time.Second)}
	if err := t.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(t.tar, content)
	return err
}

func (t *tarball) finish() (string, error) {
	return t.file.Name(), errors.Join(t.tar.Close(), t.zip.Close(), t.file.Sync(), t.file.Close())
}

func (t *tarball) remove() error {
	_ = t.file.Close() // it is closed once it is finished
	return errors.Join(t.content.Close(), os.Remove(t.content.Name()), ignoreMissing(os.Remove(t.file.Name())))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

type directory struct {
	path string
	root *os.Root
}

func newDirectory(path string) (packing, error) {
	temporary, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(temporary)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temporary))
	}
	return &directory{path: temporary, root: root}, nil
}

func (d *directory) scratch(name string) (*os.File, error) {
	local := filepath.FromSlash(name)
	if err := d.root.MkdirAll(filepath.Dir(local), 0o700); err != nil {
		return nil, err
	}
	return d.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d *directory) add(_ string, content *os.File) error { return content.Close() }

func (d *directory) drop(name string, content *os.File) error {
	return errors.Join(content.Close(), d.root.Remove(filepath.FromSlash(name)))
}

func (d *directory) finish() (string, error) { return d.path, d.root.Close() }

func (d *directory) remove() error {
	_ = d.root.Close() // it is closed once it is finished
	return os.RemoveAll(d.path)
}
