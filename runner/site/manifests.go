package site

import (
	"context"
	"fmt"
	"maps"
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
)

// The names of the findings about the checks of the site, and their reasons.
var (
	NameSource = finding.NewName("SiteChecks", "The findings about a source of checks of the site.")

	reasonRead = finding.NewReason("SiteChecksRead", finding.Explanation{
		Meaning: "Reported when the manifests of a directory or an image were read.",
		Cause:   "The content is that of the digest in the message.",
	})
	reasonNotRead = finding.NewReason("SiteChecksNotRead", finding.Explanation{
		Meaning: "Reported when the checks of the site cannot be read or must not be used, so that none of that source is run.",
		Cause: "The registry does not have the image, the image policies of the cluster reject it, a manifest exceeds a " +
			"limit, there is no check in it, or the release was not read.",
		Remedy: "Fix what the message names. To update without these checks, accept the finding.",
	})
	reasonUnused = finding.NewReason("SiteManifestUnused", finding.Explanation{
		Meaning: "Reported for a manifest of the site without an object of a check.",
		Cause:   "No object in the file has the annotation openshift.io/preflight-check: \"true\".",
		Remedy:  "Annotate the Job and the objects that it needs, or move the files out of the directory.",
	})
)

// Checks are the checks of all sources.
type Checks struct {
	// Release has the Jobs and supporting objects as those of a release without any other
	// content. Its images are the images of the Jobs, by themselves.
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
	c.Findings = append(c.Findings, finding.Pass(gap.Proven("the manifests of the source"), reasonRead, "%s contains %s of the site; its content is %s", source.shown(), words.Count(len(read.Jobs), "check"), source.digest()).
		Named(NameSource).From(finding.SourceJob).Observed(map[string]string{"source": source.Name, "digest": source.digest()}))
}

// Fail adds the finding about a source that cannot be used.
func (c *Checks) Fail(source Source, cause error) {
	c.Findings = append(c.Findings, finding.Unknown(reasonNotRead, "no check of %s is run: %v", source.shown(), cause).
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
		changed[i] = changed[i].From(finding.SourceJob).Remedy("Fix the manifest, which `oc create --dry-run=server --validate=strict -f FILE` validates.")
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
	return []finding.Finding{finding.Warn(reasonUnused, "%s: no object has the annotation %s in %s", source.shown(), payload.Annotation, words.List(names, most)).
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
