// Package localfile answers: how is a file that the user names opened safely?
//
// A path may lead to anything, such as a device or a named pipe without a writer. In a directory, whose files the user
// did not name individually, only regular files are opened. The size is not bounded here: each caller of [Read] has a
// limit of its own.
package localfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular means that a file is a directory, a device, a pipe or a socket.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a file that the user names: a regular file, or for example the pipe of a
// process substitution. When ctx ends, it returns, and reads of a pipe end.
func Open(ctx context.Context, path string) (io.ReadCloser, error) {
	type outcome struct {
		file *os.File
		err  error
	}
	done := make(chan outcome, 1)
	go func() { // opening a pipe without a writer blocks
		file, err := os.Open(path) //nolint:gosec // the user names the file
		done <- outcome{file, err}
	}()
	select {
	case opened := <-done:
		if opened.err != nil {
			return nil, opened.err
		}
		return &interruptible{File: opened.file, stop: context.AfterFunc(ctx, func() { _ = opened.file.Close() })}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("opening %s was interrupted: %w", path, context.Cause(ctx))
	}
}

// Read reads a file like [Open]: its first limit bytes, and one more if it is longer, for the error of the caller.
func Read(ctx context.Context, path string, limit int64) ([]byte, error) {
	file, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return ReadAll(file, limit+1)
}

// interruptible is a file that is closed when its context ends.
type interruptible struct {
	*os.File
	stop func() bool
}

func (f *interruptible) Close() error {
	f.stop()
	return f.File.Close()
}

// OpenRegular opens a regular file, or a symbolic link to one. Any other file is an ErrNotRegular.
func OpenRegular(path string) (fs.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the user names the directory
	if err != nil {
		return nil, err
	}
	return regular(file)
}

// OpenRegularIn is OpenRegular for a file below root.
func OpenRegularIn(root *os.Root, name string) (fs.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return regular(file)
}

// ReadAll reads at most limit bytes of a file, and closes it.
func ReadAll(file io.ReadCloser, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(file, limit))
	return content, errors.Join(err, file.Close())
}

// regular closes a file that is not regular.
func regular(file *os.File) (fs.File, error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %w", file.Name(), ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
