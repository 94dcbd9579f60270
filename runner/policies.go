package runner

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/imagepolicy"
	"github.com/openshift/update-preflight/runner/registry"
)

// nameReleasePolicy names the findings about the image policies that cover the
// release image.
const nameReleasePolicy = "ReleaseImagePolicy"

// policyNeeds are the permissions to hold images against the image policies.
// Where the nodes may not be read, all architectures of an image are inspected.
func policyNeeds() access.Needs {
	return access.Needs{
		Required: []access.Request{{Verb: "list", Group: "config.openshift.io", Resource: "clusterimagepolicies"}},
		Optional: []access.Request{{Verb: "list", Resource: "nodes"}},
	}
}

// puller pulls as the nodes do.
type puller struct{ access *registry.Access }

// Pull implements imagepolicy.Puller.
func (p puller) Pull(ctx context.Context, pullSpec string, ask func(context.Context, imagepolicy.Place) error) error {
	_, err := p.access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		return ask(ctx, imagepolicy.Place{
			Repository: visit.Reference.Context(), Mirror: visit.Mirror, Auth: visit.Auth, Transport: visit.Transport,
		})
	})
	return err
}

// imagesToHold are component images, by component.
type imagesToHold struct {
	pullSpecs     map[string]string
	architectures []string
	puller        puller
}

// names are the components in order.
func (i imagesToHold) names() []string { return slices.Sorted(maps.Keys(i.pullSpecs)) }

// hold returns one finding for each of the names.
func (i imagesToHold) hold(ctx context.Context, policies imagepolicy.Policies) []finding.Finding {
	const parallel = 8
	names := i.names()
	results := make([]finding.Finding, len(names))
	var group errgroup.Group
	group.SetLimit(parallel)
	for n, component := range names {
		group.Go(func() error {
			image := imagepolicy.Image{PullSpec: i.pullSpecs[component], Architectures: i.architectures}
			results[n] = policies.Check(ctx, image, i.puller)
			return nil
		})
	}
	_ = group.Wait() // no function has an error
	return results
}
