package contents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/site"
)

// ReadSite adds the checks of the site, with the findings about their manifests. They are
// inconclusive where the release may not be read, since no check is run then.
func (r Reader) ReadSite(ctx context.Context, c Contents, sources []site.Source) Contents {
	if len(sources) == 0 {
		return c
	}
	checks := site.NewChecks()
	for _, source := range site.Canonical(sources) {
		files, err := r.siteFiles(ctx, c, source)
		if err != nil {
			checks.Fail(source, err)
			continue
		}
		checks.Add(source, files)
	}
	c.site = checks.Release
	c.Sources = append(slices.Clip(c.Sources), collector.Known(site.NameSource, finding.SourceJob, checks.Findings...))
	return c
}

// siteFiles are the manifests of a source.
func (r Reader) siteFiles(ctx context.Context, c Contents, source site.Source) (map[string][]byte, error) {
	if !c.Readable() {
		return nil, errors.New("the release may not be read")
	}
	if !source.IsImage() {
		return source.Files, nil
	}
	scene, registries := r.Verifier.Scene, r.Verifier.Registries
	scene.Step("reading the checks of %s", source.Name)
	defer registries.Close()
	if c.Proof.Policies.Covers(source.Name) {
		image := imagepolicy.Image{PullSpec: source.Name, Architectures: scene.Architectures(ctx)}
		if held := c.Proof.Policies.Check(ctx, image, proof.Puller(registries)); held.Outcome == preflight.Fail || held.Outcome == preflight.Unknown {
			return nil, fmt.Errorf("the image policies of the cluster do not admit it (%s): %s", held.Reason, held.Message)
		}
	}
	return source.ReadImage(ctx, imagefiles.Source{
		Access: registries, Cache: r.Cache, Architecture: scene.ControlPlaneArchitecture(ctx),
	})
}
