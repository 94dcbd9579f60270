// Package site answers: which checks does the administrator of a site add to a release?
//
// The manifests look like a release's: Jobs with the annotation openshift.io/preflight-check: "true", and the objects
// that they need. They come from directories and from images. The names of the checks start with "Site.".
//
// # Bounds
//
// At most 16 sources, each with at most 200 manifests of 1 MiB each and 4 MiB in total, in a directory with at most 1
// 000 entries in 4 levels. Entries whose names start with a dot are not read. The directories of a run have at most 64
// KiB compressed, because its record contains them: a run continues with the checks that it began with, even on another
// machine.
//
// # Trust
//
// A directory is trusted like a flag of the administrator. An image must be specified by its digest, and is read only
// if the image policies of the cluster accept it. Every image that a check runs is specified by digest; the policies of
// the cluster apply to it on the nodes.
package site

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/signature/localfile"
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
		return Source{}, fmt.Errorf("%q is not a pull spec by digest: specify the image as REPOSITORY@sha256:DIGEST", pullSpec)
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

// budget is the amount of data read from one source.
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

// The names of the findings about the checks of the site, and their reasons.
var (
	NameSource = finding.NewName("SiteChecks", "The findings about a source of checks of the site.")

	reasonRead = finding.NewReason("SiteChecksRead", finding.Explanation{
		Meaning: "The manifests of a directory or an image were read.",
		Cause:   "The message contains the digest of the content.",
	})
	reasonNotRead = finding.NewReason("SiteChecksNotRead", finding.Explanation{
		Meaning: "The checks of the site cannot be read or must not be used. No check from that source runs.",
		Cause: "The registry does not have the image, the image policies of the cluster reject it, a manifest " +
			"exceeds a limit, the source contains no check, or the release was not read.",
		Remedy: "Fix the problem in the message. To update without these checks, accept the finding.",
	})
	reasonUnused = finding.NewReason("SiteManifestUnused", finding.Explanation{
		Meaning: "A manifest of the site contains no object of a check.",
		Cause:   "No object in the file has the annotation openshift.io/preflight-check: \"true\".",
		Remedy:  "Annotate the Job and the objects that it needs, or move the files out of the directory.",
	})
)

// Checks are the checks of all sources.
type Checks struct {
	// Release returns the Jobs and supporting objects as a release without any other content. Its images are the images
	// of the Jobs, by themselves.
	Release *payload.Release
	// Findings are about the sources and their manifests.
	Findings []finding.Finding
}

// NewChecks returns no checks.
func NewChecks() Checks {
	return Checks{Release: &payload.Release{Images: map[string]string{}}}
}

// Add adds the manifests of a source with the content files. A source without a check that
// can be read is inconclusive.
func (c *Checks) Add(source Source, files map[string][]byte) {
	read, err := payload.ReadManifests(files)
	if err != nil {
		c.Fail(source, err)
		return
	}
	c.Findings = append(c.Findings, problems(source, read.Problems)...)
	if len(read.Jobs) == 0 {
		c.Fail(source, fmt.Errorf("no manifest has a Job with the annotation %s: \"true\" that can be read", payload.Annotation))
		return
	}
	c.Findings = append(c.Findings, unused(source, files, read)...)
	for _, job := range read.Jobs {
		job.File, job.Component = source.file(job.File), jobplan.SiteComponent
		c.Release.Jobs = append(c.Release.Jobs, job)
		c.addImages(job.Job)
	}
	for _, object := range read.Supporting {
		object.File, object.Component = source.file(object.File), jobplan.SiteComponent
		c.Release.Supporting = append(c.Release.Supporting, object)
	}
	c.Findings = append(c.Findings, finding.Pass(gap.Proven("the manifests of the source"), reasonRead,
		"%s contains %s of the site; its content is %s", source.shown(), words.Count(len(read.Jobs), "check"), source.digest()).
		Named(NameSource).From(finding.SourceJob).Observed(map[string]string{"source": source.Name, "digest": source.digest()}))
}

// Fail adds the finding about a source that cannot be used.
func (c *Checks) Fail(source Source, cause error) {
	c.Findings = append(c.Findings, finding.Unknown(reasonNotRead, "no check of %s runs: %v", source.shown(), cause).
		Named(NameSource).From(finding.SourceJob).Observed(map[string]string{"source": source.Name, "digest": source.digest()}).
		Do(finding.Retry(""), finding.Accept(NameSource)))
}

// addImages lists the images of a Job that are pull specs by digest.
func (c *Checks) addImages(job *batchv1.Job) {
	for _, image := range jobplan.ImagesOf(job) {
		if _, err := name.NewDigest(image, name.StrictValidation); err == nil {
			c.Release.Images[image] = image
		}
	}
}

// problems are the findings about manifests. A manifest of a check that cannot be used is
// inconclusive.
func problems(source Source, found []finding.Finding) []finding.Finding {
	changed := slices.Clone(found)
	for i, f := range changed {
		changed[i].Name = "SiteManifest." + strings.TrimPrefix(f.Name, "Payload.")
		changed[i].Message = source.shown() + ": " + f.Message
		changed[i].Actions = nil
		changed[i] = changed[i].From(finding.SourceJob).Remedy(
			"Fix the manifest, which `oc create --dry-run=server --validate=strict -f FILE` validates.")
		if f.Outcome == preflight.Fail {
			changed[i] = changed[i].Judged(preflight.Unknown).Do(finding.Accept(changed[i].Name))
		}
	}
	return changed
}

// unused warns about manifests without an object of a check.
func unused(source Source, files map[string][]byte, read *payload.Release) []finding.Finding {
	used := map[string]bool{}
	for _, job := range read.Jobs {
		used[job.File] = true
	}
	for _, object := range read.Supporting {
		used[object.File] = true
	}
	for _, f := range read.Problems {
		used[f.Evidence["file"]] = true
	}
	var names []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if isManifest(file) && !used[words.Line(file, maxName)] {
			names = append(names, file)
		}
	}
	if len(names) == 0 {
		return nil
	}
	const most = 10
	return []finding.Finding{finding.Warn(reasonUnused, "%s: no object has the annotation %s in %s", source.shown(), payload.Annotation,
		words.List(names, most)).
		Named(NameSource).From(finding.SourceJob)}
}

// maxName bounds the name of a file in a message, as package payload does.
const maxName = 512

// shown is the name in messages.
func (s Source) shown() string { return words.Line(s.Name, maxName) }

// file names a manifest in messages.
func (s Source) file(name string) string { return path.Join(s.shown(), name) }

// digest identifies the content.
func (s Source) digest() string {
	if _, digest, found := strings.Cut(s.Name, "@"); found && s.IsImage() {
		return digest
	}
	return s.ID()
}

// visit collects the files of an image within the bounds of a source.
func (s Source) visit(files map[string][]byte) func(file string, content []byte) error {
	b := budget{source: s.shown()}
	return func(file string, content []byte) error {
		if !isManifest(file) {
			return nil
		}
		files[file] = content
		return b.take(file, len(content))
	}
}

// ReadImage returns the manifests of an image.
func (s Source) ReadImage(ctx context.Context, from imagefiles.Source) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := imagefiles.Read(ctx, s.Name, from, s.visit(files))
	return files, err
}

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
