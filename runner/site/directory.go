package site

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/openshift/update-preflight/signature/localfile"
)

const (
	maxEntries = 1000
	maxDepth   = 4
)

// Directory reads the manifests of a directory and those below it. A link that leads out of
// the directory, a link to a directory and a manifest that is not a regular file are errors.
func Directory(directory string) (Source, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return Source{}, err
	}
	r := reader{root: root, budget: budget{source: directory}, files: map[string][]byte{}}
	if err := errors.Join(r.read(".", 1), root.Close()); err != nil {
		return Source{}, err
	}
	if len(r.files) == 0 {
		return Source{}, fmt.Errorf("%s: %w", directory, errNoManifest)
	}
	return Source{Name: directory, Files: r.files}, nil
}

// reader reads one directory within the bounds.
type reader struct {
	root    *os.Root
	budget  budget
	entries int
	files   map[string][]byte
}

// read reads a directory of that depth below the root.
func (r *reader) read(directory string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: %q is more than %d levels deep", r.budget.source, directory, maxDepth)
	}
	entries, err := r.list(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		file := path.Join(directory, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			err = r.read(file, depth+1)
		case isManifest(file):
			err = r.add(file)
		case entry.Type()&fs.ModeSymlink != 0:
			err = r.rejectLink(file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list returns the entries of a directory. Beyond the bound, no more are read.
func (r *reader) list(directory string) (_ []fs.DirEntry, err error) {
	opened, err := r.root.Open(directory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.budget.source, err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	entries, err := opened.ReadDir(maxEntries + 1 - r.entries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", r.budget.source, err)
	}
	if r.entries += len(entries); r.entries > maxEntries {
		return nil, fmt.Errorf("%s: more than %d entries", r.budget.source, maxEntries)
	}
	return entries, nil
}

func (r *reader) add(file string) (err error) {
	opened, err := localfile.OpenRegularIn(r.root, file)
	if err != nil {
		return fmt.Errorf("%s: %w", r.budget.source, err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	content, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err != nil {
		return fmt.Errorf("%s: %w", r.budget.source, err)
	}
	r.files[file] = content
	return r.budget.take(file, len(content))
}

// rejectLink returns an error for a link to a directory, whose manifests would not be read.
func (r *reader) rejectLink(link string) error {
	info, err := r.root.Stat(link)
	if err == nil && info.IsDir() {
		return fmt.Errorf("%s: %q is a link to a directory, which is not followed", r.budget.source, link)
	}
	return nil
}
