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

	"github.com/google/go-containerregistry/pkg/name"
	imagev1 "github.com/openshift/api/image/v1"
	"sigs.k8s.io/yaml"
)

// maxReferences limits the size of image-references. The largest have a few KiB.
const maxReferences = 1 << 20

// References reads image-references of the repository in directory. The content is
// empty if the file does not exist.
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
		return nil, fmt.Errorf("read %s: more than %d bytes", referencesFile, maxReferences)
	}
	return content, nil
}

// ExistsError means that files exist already. No file was written.
type ExistsError struct {
	// Paths are the existing files, as in File.Path.
	Paths []string
}

func (e *ExistsError) Error() string {
	return "files already exist: " + strings.Join(e.Paths, ", ") + "; no file was written"
}

// Write writes all files to the repository in directory, which must exist, or none of
// them. It does not replace files: if one exists, the error is an *ExistsError.
func (s Scaffold) Write(directory string) (err error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := s.checkAbsent(root); err != nil {
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

// checkAbsent returns an *ExistsError if any of the files exists.
func (s Scaffold) checkAbsent(root *os.Root) error {
	var existing ExistsError
	for _, file := range s.Files {
		_, err := root.Lstat(file.Path)
		switch {
		case err == nil:
			existing.Paths = append(existing.Paths, file.Path)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if len(existing.Paths) > 0 {
		return &existing
	}
	return nil
}

// writer records the files and directories that it creates, in order.
type writer struct {
	root    *os.Root
	created []string
}

func (w *writer) write(file File) error {
	if err := w.mkdir(path.Dir(file.Path)); err != nil {
		return err
	}
	out, err := w.root.OpenFile(file.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w.created = append(w.created, file.Path)
	_, err = out.Write(file.Content)
	return errors.Join(err, out.Close())
}

// mkdir creates the directory and its missing parents.
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
		w.created = append(w.created, directory)
	}
	return err
}

// undo removes what was created, in reverse order.
func (w *writer) undo() error {
	var failed error
	for _, path := range slices.Backward(w.created) {
		failed = errors.Join(failed, w.root.Remove(path))
	}
	return failed
}

// referencesFile lists the images in the manifests of a repository. "oc adm release
// new" replaces them with the images of the release.
const referencesFile = "manifests/image-references"

// imageOf returns the pull spec by which manifests refer to the image of the
// component. listed reports whether image-references contains it already.
func imageOf(references []byte, component string) (image string, listed bool, err error) {
	var stream imagev1.ImageStream
	if err := yaml.Unmarshal(references, &stream); err != nil {
		return "", false, fmt.Errorf("read %s: %w", referencesFile, err)
	}
	for _, tag := range stream.Spec.Tags {
		if tag.Name != component {
			continue
		}
		if tag.From == nil || tag.From.Name == "" {
			return "", false, fmt.Errorf("read %s: the tag %q has no image name", referencesFile, component)
		}
		if _, err := name.ParseReference(tag.From.Name); err != nil {
			return "", false, fmt.Errorf("read %s: the tag %q: %w", referencesFile, component, err)
		}
		return tag.From.Name, true, nil
	}
	return "quay.io/openshift/origin-" + component + ":latest", false, nil
}
