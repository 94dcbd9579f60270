package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/imagefiles"
	"github.com/openshift/update-preflight/runner/imagepolicy"
	"github.com/openshift/update-preflight/runner/site"
)

// withSite reads the checks of the site, and adds the findings about their manifests. They
// are inconclusive where the release may not be read, since no check is run then.
func withSite(ctx context.Context, m manifests) manifests {
	if len(m.options.Site) == 0 {
		return m
	}
	checks := site.NewChecks()
	for _, source := range site.Canonical(m.options.Site) {
		files, err := m.siteFiles(ctx, source)
		if err != nil {
			checks.Fail(source, err)
			continue
		}
		checks.Add(source, files)
	}
	m.site = checks.Release
	m.sources = append(slices.Clip(m.sources), collector.Known(site.NameSource, finding.SourceJob, checks.Findings...))
	return m
}

// siteFiles are the manifests of a source.
func (m manifests) siteFiles(ctx context.Context, source site.Source) (map[string][]byte, error) {
	if !m.contents.readable() {
		return nil, errors.New("the release may not be read")
	}
	if !source.IsImage() {
		return source.Files, nil
	}
	m.progress.step("reading the checks of %s", source.Name)
	defer m.registries.Close()
	if m.policies.Covers(source.Name) {
		image := imagepolicy.Image{PullSpec: source.Name, Architectures: m.architectures(ctx)}
		if held := m.policies.Check(ctx, image, puller{access: m.registries}); held.Outcome == preflight.Fail || held.Outcome == preflight.Unknown {
			return nil, fmt.Errorf("the image policies of the cluster do not admit it (%s): %s", held.Reason, held.Message)
		}
	}
	return source.ReadImage(ctx, imagefiles.Source{
		Access: m.registries, Cache: m.options.Cache, Architecture: m.controlPlaneArchitecture(ctx),
	})
}
