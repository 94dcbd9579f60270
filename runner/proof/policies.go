package proof

import (
	"context"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/runner/registry"
)

// NameReleasePolicy names the findings about the image policies of the release image.
var NameReleasePolicy = finding.NewName("ReleaseImagePolicy",
	"The findings about the image policies that cover the release image.")

// PolicyNeeds are the permissions to hold images against the image policies.
// Where the nodes may not be read, all architectures of an image are inspected.
func PolicyNeeds() access.Needs {
	return access.Needs{
		Required: []access.Request{{Verb: "list", Group: "config.openshift.io", Resource: "clusterimagepolicies"}},
		Optional: []access.Request{{Verb: "list", Resource: "nodes"}},
	}
}

// Puller pulls as the nodes do.
func Puller(access *registry.Access) imagepolicy.Puller { return puller{access} }

type puller struct{ access *registry.Access }

func (p puller) Pull(ctx context.Context, pullSpec string, ask func(context.Context, imagepolicy.Place) error) error {
	_, err := p.access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		return ask(ctx, imagepolicy.Place{
			Repository: visit.Reference.Context(), Mirror: visit.Mirror, Auth: visit.Auth, Transport: visit.Transport,
		})
	})
	return err
}
