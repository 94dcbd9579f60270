// Package site answers: which checks does the administrator of a site add to those of a
// release?
//
// The manifests are those of a release: Jobs with the annotation openshift.io/preflight-check:
// "true", and the objects that they need. They come from directories and from images. The
// names of the checks start with "Site.".
//
// # Bounds
//
// At most 16 sources, each with at most 200 manifests of 1 MiB each and 4 MiB in total, in
// a directory with at most 1 000 entries in 4 levels. Entries whose names start with a dot
// are not read. The directories of a run have at most 64 KiB compressed, since its record
// contains them: a run is continued with the checks that it began with, also on another
// machine.
//
// # Trust
//
// A directory is trusted as a flag of the administrator is. An image is named by its digest,
// and is read only if the image policies of the cluster admit it. Every image that a check
// runs is a digest; the policies of the cluster apply to it on the nodes.
package site

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

const (
	maxSources   = 16
	maxManifests = 200
	maxFile      = 1 << 20
	maxTotal     = 4 << 20
)

// Source is where manifests come from: a directory that was read, or an image.
type Source struct {
	// Name is the directory as the user named it, or the pull spec of the image by digest.
	Name string `json:"name"`
	// Files are the manifests of a directory, by path in it; nil for an image.
	Files map[string][]byte `json:"files,omitempty"`
}

// Image returns the source of a pull spec by digest. One with a tag is an error, also beside
// a digest.
func Image(pullSpec string) (Source, error) {
	repository, _, _ := strings.Cut(pullSpec, "@")
	_, err := name.NewDigest(pullSpec, name.StrictValidation)
	if err != nil || strings.Contains(path.Base(repository), ":") {
		return Source{}, fmt.Errorf("%q is not a pull spec by digest: name the image as REPOSITORY@sha256:DIGEST", pullSpec)
	}
	return Source{Name: pullSpec}, nil
}

// IsImage reports whether the source is an image.
func (s Source) IsImage() bool { return s.Files == nil }

// ID identifies the content: the pull spec of an image, or the SHA-256 digest of the paths
// and contents of a directory. It does not depend on the name of the directory.
func (s Source) ID() string {
	if s.IsImage() {
		return s.Name
	}
	sum := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(s.Files)) {
		fmt.Fprintf(sum, "%d %s %d ", len(file), file, len(s.Files[file]))
		sum.Write(s.Files[file])
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// IDs lists the IDs of the sources, sorted, each once.
func IDs(sources []Source) []string {
	ids := make([]string, 0, len(sources))
	for _, source := range sources {
		ids = append(ids, source.ID())
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Canonical returns the sources in the order of their IDs, each once, so that the names of
// the checks do not depend on the order of the request.
func Canonical(sources []Source) []Source {
	sorted := slices.Clone(sources)
	slices.SortStableFunc(sorted, func(a, b Source) int { return strings.Compare(a.ID(), b.ID()) })
	return slices.CompactFunc(sorted, func(a, b Source) bool { return a.ID() == b.ID() })
}

func (s Source) validate() error {
	if s.IsImage() {
		_, err := Image(s.Name)
		return err
	}
	b := budget{source: s.Name}
	for _, file := range slices.Sorted(maps.Keys(s.Files)) {
		if err := b.take(file, len(s.Files[file])); err != nil {
			return err
		}
	}
	if len(s.Files) == 0 {
		return fmt.Errorf("%s: %w", s.Name, errNoManifest)
	}
	return nil
}

var errNoManifest = errors.New("no file is a manifest (.yaml, .yml or .json)")

// budget is what was read of one source.
type budget struct {
	source       string
	files, bytes int
}

// take accounts for a manifest, and returns an error that names it beyond the bounds.
func (b *budget) take(file string, size int) error {
	b.files++
	b.bytes += size
	switch {
	case b.files > maxManifests:
		return fmt.Errorf("%s: more than %d manifests", b.source, maxManifests)
	case size > maxFile:
		return fmt.Errorf("%s: %q has more than %d bytes", b.source, file, maxFile)
	case b.bytes > maxTotal:
		return fmt.Errorf("%s: the manifests up to %q have more than %d bytes in total", b.source, file, maxTotal)
	}
	return nil
}

// isManifest reports whether a file is read, by the extensions of a release.
func isManifest(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file))
}
