package runner

import (
	"context"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobplan"
)

// nameSitePolicy names the findings about the image policies that cover images of the
// checks of the site.
const nameSitePolicy = "SiteImagePolicy"

// sitePolicies is the check of the images of the site's checks that an image policy
// covers; none where no image is covered. The nodes do not run an image that it rejects, so
// the check of the site is inconclusive.
func (e execution) sitePolicies() []collector.Source {
	covered := map[string]string{}
	for _, check := range e.planned.Checks {
		if !check.Site {
			continue
		}
		for _, image := range jobplan.ImagesOf(check.Job) {
			if e.policies.Covers(image) {
				covered[image] = image
			}
		}
	}
	if len(covered) == 0 {
		return nil
	}
	return []collector.Source{{
		Name: nameSitePolicy, Kind: finding.SourceJob,
		Collect: func(ctx context.Context) ([]finding.Finding, error) {
			defer e.registries.Close()
			images := imagesToHold{pullSpecs: covered, architectures: e.architectures(ctx), puller: puller{access: e.registries}}
			results := images.hold(ctx, e.policies)
			for i, f := range results {
				if f.Outcome == preflight.Fail {
					results[i].Outcome = preflight.Unknown
				}
				results[i] = results[i].Named(nameSitePolicy)
			}
			return results, nil
		},
	}}
}
