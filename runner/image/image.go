// Package image answers: can this cluster's nodes get every image of the target?
//
// [Check] requests the manifest of each image from the places that a node would
// pull it from, in the order of a node and only with the cluster's own
// credentials, and verifies its digest; of an index it also requests the images for
// the architectures of the nodes. Layers are not read: their sizes are added up, and
// with [Blobs] their existence is checked. Missing images are one finding for each
// cause and place.
//
// An image that a mirror serves with other content is not requested from another
// place, and neither is an image of an index that the mirror of the index lacks,
// since nodes would not do so either (containers/image docker, newImageSource).
//
// # Limitations
//
// Unless nodes pull, registries are requested only from here: this machine may reach
// registries that nodes do not reach, and vice versa. The size includes images that
// nodes already have.
package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
)

// parallelism bounds the images that are checked concurrently.
const parallelism = 16

// Collect checks the images. If the deadline of ctx passes, it returns the findings
// made by then; if ctx is canceled, an error.
func (c Check) Collect(ctx context.Context) ([]finding.Finding, error) {
	if c.Mode == Off {
		return c.complete(finding.Unknown(reasonNotSelected,
			"images are excluded by the selection; not checked").
			Named(Name).
			Do(finding.Retry(finding.OptionImages), finding.Accept(Name))), nil
	}
	access := c.Access(ctx)
	defer access.Close()
	results := c.checkAll(ctx, access)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fmt.Errorf("not all images of the release were checked: %w", ctx.Err())
	}
	findings := c.findings(results)
	if c.Mode.Pulls() {
		pulled, err := c.Nodes.Pull(ctx, c.ToPull, c.bytesToPull(results))
		return c.complete(append(findings, pulled...)...), err
	}
	return c.complete(findings...), nil
}

// bytesToPull is the compressed size of ToPull, without unknown manifests.
func (c Check) bytesToPull(results []result) int64 {
	wanted := slices.DeleteFunc(slices.Clone(results), func(each result) bool {
		return !slices.ContainsFunc(each.components, func(component string) bool { return c.ToPull[component] != "" })
	})
	size, _ := sizeOf(wanted)
	return size
}

func (c Check) complete(findings ...finding.Finding) []finding.Finding {
	for i := range findings {
		if outcome := findings[i].Outcome; outcome == preflight.Fail || outcome == preflight.Unknown {
			findings[i].Blocks, findings[i].BlockedTargets = true, []string{c.Release.Version}
		}
	}
	return findings
}

func (c Check) checkAll(ctx context.Context, access *registry.Access) []result {
	components := map[string][]string{}
	for _, component := range slices.Sorted(maps.Keys(c.Images)) {
		components[c.Images[component]] = append(components[c.Images[component]], component)
	}
	pullSpecs := slices.Sorted(maps.Keys(components))
	visitor := newVisitor(c.Mode, c.Architectures)
	results := make([]result, len(pullSpecs))
	var group errgroup.Group
	group.SetLimit(parallelism)
	var mutex sync.Mutex
	done := 0
	for i, pullSpec := range pullSpecs {
		group.Go(func() error {
			results[i] = visitor.check(ctx, access, pullSpec)
			results[i].components = components[pullSpec]
			mutex.Lock()
			defer mutex.Unlock()
			done += len(components[pullSpec])
			c.Progress(done, len(c.Images))
			return nil
		})
	}
	_ = group.Wait() // the results have the errors
	return results
}

var (
	reasonImagesPresent = finding.NewReason("ImagesPresent", finding.Explanation{
		Meaning: "Reported when all images are available from where nodes would pull them.",
		Cause:   "The images are available.",
	})
	reasonNotSelected = finding.NewReason("NotSelected", finding.Explanation{
		Meaning: "Reported when the check is excluded by the selection.",
		Cause:   "Images are excluded for this run.",
		Remedy:  "Check the images, or accept the finding.",
	})
	reasonImagesMissing = finding.NewReason("ImagesMissing", finding.Explanation{
		Meaning: "Reported when images are not available from any repository.",
		Cause:   "The release was not mirrored, or only in part.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonBlobsMissing = finding.NewReason("BlobsMissing", finding.Explanation{
		Meaning: "Reported when a manifest names blobs that the registry lacks.",
		Cause:   "The image was mirrored only in part.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "Reported when a registry serves other content than a digest identifies.",
		Cause:   "A defect or compromise of the registry.",
		Remedy:  "Mirror the release again, or report it to the operators of the registry.",
	})
	reasonInvalidManifest = finding.NewReason("InvalidManifest", finding.Explanation{
		Meaning: "Reported when a manifest is not one that nodes accept.",
		Cause:   "The image is malformed.",
		Remedy:  "Do not update to this release.",
	})
	reasonManifestTooLarge = finding.NewReason("ManifestTooLarge", finding.Explanation{
		Meaning: "Reported when a manifest is larger than nodes accept.",
		Cause:   "The image is malformed.",
		Remedy:  "Do not update to this release.",
	})
	reasonArchitectureMissing = finding.NewReason("ArchitectureMissing", finding.Explanation{
		Meaning: "Reported when an image is missing for an architecture of the nodes.",
		Cause:   "The release was not mirrored for all architectures.",
		Remedy:  "Mirror all architectures: oc adm release mirror --keep-manifest-list.",
	})
	reasonMoreImages = finding.NewReason("MoreImages", finding.Explanation{
		Meaning: "Reported when several causes are combined in one finding.",
		Cause:   "Images are unavailable for too many causes.",
		Remedy:  "Fix the other findings first.",
	})
)
