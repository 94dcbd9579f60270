package flagset

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File is a file that appears under its name once it is complete.
type File struct {
	path string
	// unfinished is the temporary file; nil once it was renamed or deleted.
	unfinished *os.File
}

// CreateFile creates the temporary file beside that of path, so that one which cannot be
// written is found before anything else is done. The file must be discarded at the end.
func CreateFile(path string) (*File, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	file := &File{path: path}
	return file, file.create()
}

// create makes the temporary file, with the permissions of any new file: those of a
// temporary one would keep a web server from reading it.
func (f *File) create() error {
	name := filepath.Join(filepath.Dir(f.path), ".preflight-"+rand.Text())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the umask decides
	f.unfinished = file
	return err
}

// Replace writes the content, and renames the file to its path. After an error nothing of the content is left,
// and the file under its name is as before.
func (f *File) Replace(write func(io.Writer) error) error {
	if f.unfinished == nil {
		if err := f.create(); err != nil {
			return err
		}
	}
	if err := f.complete(write); err != nil {
		f.Discard()
		return err
	}
	err := f.unfinished.Close()
	f.unfinished = nil
	return err
}

func (f *File) complete(write func(io.Writer) error) error {
	err := write(f.unfinished)
	if err := errors.Join(err, f.unfinished.Sync()); err != nil {
		return err
	}
	return os.Rename(f.unfinished.Name(), f.path)
}

// Remove deletes the file under its name, if there is one.
func (f *File) Remove() error {
	if err := os.Remove(f.path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Discard deletes what was created and not completed.
func (f *File) Discard() {
	if f == nil || f.unfinished == nil {
		return
	}
	_ = f.unfinished.Close()
	_ = os.Remove(f.unfinished.Name())
	f.unfinished = nil
}

// resolve follows the symbolic links of a path to a regular file, or to one that does not
// exist yet. Anything else, such as a device, would be replaced and is an error.
func resolve(path string) (string, error) {
	directory, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return "", err
	}
	path = filepath.Join(directory, filepath.Base(path))
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case info.Mode()&os.ModeSymlink != 0:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", err
		}
		return resolve(path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	return path, nil
}
