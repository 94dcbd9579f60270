package inventory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/objects"
)

const (
	// maxFile bounds a file, in bytes, and maxPackedFile what is kept of it: a larger one is left out.
	maxFile, maxPackedFile = 48 << 20, 32 << 20
	// maxText bounds a file that is not read object by object, in bytes.
	maxText = 32 << 20
	// packedBlock bytes are compressed at a time, and packedPart bytes are kept in one piece.
	packedBlock, packedPart = 64 << 10, 128 << 10
)

// file is a file that is kept, compressed.
type file struct {
	path  string
	place layout.Place
	// packed are the parts of the compressed content, and size is that of the content, in bytes.
	packed [][]byte
	size   int
	// cause is why it could not be kept; empty where it was.
	cause string
}

type packer struct {
	into  *s2.Writer
	parts [][]byte
	// part is the one that is written, and count the bytes of all.
	part  []byte
	count int
}

func newPacker() *packer {
	p := &packer{part: make([]byte, 0, packedPart)}
	p.into = s2.NewWriter(p, s2.WriterConcurrency(1), s2.WriterBlockSize(packedBlock))
	return p
}

var errTooLarge = fmt.Errorf("it has more than %d bytes after compression", maxPackedFile)

// Write implements io.Writer for what is compressed.
func (p *packer) Write(packed []byte) (int, error) {
	if p.count += len(packed); p.count > maxPackedFile {
		return 0, errTooLarge
	}
	if len(p.part)+len(packed) > cap(p.part) {
		p.flush()
	}
	p.part = append(p.part, packed...)
	return len(packed), nil
}

func (p *packer) flush() {
	if len(p.part) > 0 {
		p.parts = append(p.parts, bytes.Clone(p.part))
		p.part = p.part[:0]
	}
}

// pack compresses a file. The cause is why its content is not kept; an error is about the archive.
func (p *packer) pack(name string, content io.Reader) (made *file, cause string, err error) {
	p.parts, p.part, p.count = nil, p.part[:0], 0
	p.into.Reset(p)
	size, err := p.into.ReadFrom(io.LimitReader(content, maxFile+1))
	err = errors.Join(err, p.into.Close())
	switch {
	case errors.Is(err, errTooLarge):
		return nil, errTooLarge.Error(), nil
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", name, err)
	case size > maxFile:
		return nil, fmt.Sprintf("it has more than %d bytes", maxFile), nil
	}
	p.flush()
	return &file{path: name, packed: p.parts, size: int(size)}, "", nil
}

// unpackers are readers of the content of files, each with buffers of some blocks.
var unpackers = sync.Pool{New: func() any { return s2.NewReader(nil, s2.ReaderMaxBlockSize(packedBlock)) }} //nolint:gochecknoglobals // a pool is shared

// unpack calls do with the content, which ends with the call. Of a file that is not read, it returns the cause.
func (f *file) unpack(do func(content io.Reader) error) error {
	if f.cause != "" {
		return errors.New(f.cause)
	}
	content, ok := unpackers.Get().(*s2.Reader)
	if !ok {
		return errors.ErrUnsupported // the pool has no others
	}
	defer unpackers.Put(content)
	parts := make([]io.Reader, len(f.packed))
	for i, part := range f.packed {
		parts[i] = bytes.NewReader(part)
	}
	content.Reset(io.MultiReader(parts...))
	return do(content)
}

// objects calls do with each object, which ends with the call.
func (f *file) objects(do func(object []byte) error) (list objects.List, err error) {
	err = f.unpack(func(content io.Reader) error {
		list, err = objects.Read(content, do)
		return err
	})
	return list, err
}

// text is the content of a file that is not too large for one piece.
func (f *file) text() (text []byte, err error) {
	if f.size > maxText {
		return nil, fmt.Errorf("it has %d bytes, more than %d", f.size, maxText)
	}
	err = f.unpack(func(content io.Reader) error {
		text = make([]byte, f.size)
		_, err := io.ReadFull(content, text)
		return err
	})
	return text, err
}

var lineBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, packedBlock) }} //nolint:gochecknoglobals // a pool is shared

// lines calls do with each line, which ends with the call, until it returns false. A line that is longer than a
// buffer comes in pieces, of which only the first begins a line.
func (f *file) lines(do func(line []byte, begins bool) (more bool)) error {
	return f.unpack(func(content io.Reader) error {
		buffered, ok := lineBuffers.Get().(*bufio.Reader)
		if !ok {
			return errors.ErrUnsupported // the pool has no others
		}
		defer lineBuffers.Put(buffered)
		defer buffered.Reset(nil)
		buffered.Reset(content)
		for begins := true; ; {
			line, err := buffered.ReadSlice('\n')
			full := errors.Is(err, bufio.ErrBufferFull)
			if err != nil && !full && !errors.Is(err, io.EOF) {
				return err
			}
			if !do(line, begins) || err != nil && !full {
				return nil
			}
			begins = !full
		}
	})
}
