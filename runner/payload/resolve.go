package payload

import (
	"context"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/openshift/update-preflight/runner/registry"
)

// Resolve returns the pull spec by digest of what a pull spec means at this
// moment: to the cluster's mirrors of tags, then to the repository that it
// names. Whoever may push there decides on that, so it is nothing to trust:
// verify the result. The error is always an *Error.
func Resolve(ctx context.Context, pullSpec string, access *registry.Access) (string, error) {
	var resolved string
	_, err := access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		descriptor, err := remote.Head(visit.Reference, visit.Options(ctx)...)
		if err != nil {
			return err
		}
		resolved = descriptor.Digest.String()
		return nil
	})
	if err != nil {
		return "", unreadable(err, "the image \""+oneLine(pullSpec)+"\"")
	}
	// The digest is of the image that the pull spec names, whichever mirror said
	// so.
	reference, err := name.ParseReference(pullSpec)
	if err != nil {
		return "", unreadable(err, "the image \""+oneLine(pullSpec)+"\"")
	}
	return reference.Context().Digest(resolved).String(), nil
}
