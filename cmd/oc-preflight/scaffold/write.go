package scaffold

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// maxReferences bounds image-references, of which the largest are a few KiB.
const maxReferences = 1 << 20

// References reads the image-references of the repository in directory. They
// are empty where it has none.
func References(directory string) (_ []byte, err error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.Open(referencesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err := io.ReadAll(io.LimitReader(file, maxReferences+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxReferences {
		return nil, fmt.Errorf("read %s: it has more than %d bytes", referencesFile, maxReferences)
	}
	return content, nil
}

// ExistsError says that files are in the way. None of them was touched.
type ExistsError struct {
	// Paths are as in File.Path.
	Paths []string
}

func (e *ExistsError) Error() string {
	return "there is already " + strings.Join(e.Paths, ", ") + ": nothing was written"
}

// Write puts all files into the repository in directory, which exists, or none
// of them. It replaces nothing: where a file is there already, the error is an
// *ExistsError.
func (s Scaffold) Write(directory string) (err error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := s.vacant(root); err != nil {
		return err
	}
	w := writer{root: root}
	for _, file := range s.Files {
		if err := w.write(file); err != nil {
			return errors.Join(err, w.undo())
		}
	}
	return nil
}

// vacant fails when anything is where a file is to be.
func (s Scaffold) vacant(root *os.Root) error {
	var taken ExistsError
	for _, file := range s.Files {
		_, err := root.Lstat(file.Path)
		switch {
		case err == nil:
			taken.Paths = append(taken.Paths, file.Path)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if len(taken.Paths) > 0 {
		return &taken
	}
	return nil
}

// writer remembers what it made, files and directories, in that order.
type writer struct {
	root *os.Root
	made []string
}

func (w *writer) write(file File) error {
	if err := w.mkdir(path.Dir(file.Path)); err != nil {
		return err
	}
	out, err := w.root.OpenFile(file.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w.made = append(w.made, file.Path)
	_, err = out.Write(file.Content)
	return errors.Join(err, out.Close())
}

// mkdir makes a directory and those above it, where they are missing.
func (w *writer) mkdir(directory string) error {
	if directory == "." {
		return nil
	}
	if err := w.mkdir(path.Dir(directory)); err != nil {
		return err
	}
	err := w.root.Mkdir(directory, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		w.made = append(w.made, directory)
	}
	return err
}

// undo removes what was made, the last first.
func (w *writer) undo() error {
	var failed error
	for _, path := range slices.Backward(w.made) {
		failed = errors.Join(failed, w.root.Remove(path))
	}
	return failed
}
