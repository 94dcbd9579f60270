package payload

import (
	"context"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/repository"
)

// Resolve returns the pull spec by digest of what a pull spec means at this
// moment: to the cluster's mirrors of tags, then to the repository that it
// names. Whoever may push there decides on that, so it is nothing to trust:
// verify the result. One by digest means itself. The error is always an *Error.
func Resolve(ctx context.Context, pullSpec string, access *registry.Access) (string, error) {
	reference, err := name.ParseReference(pullSpec)
	if digest, ok := reference.(name.Digest); ok && err == nil {
		return digest.String(), nil
	}
	var resolved string
	_, err = access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		place, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
		if err == nil {
			resolved, err = place.Resolve(ctx, visit.Reference.Identifier())
		}
		return err
	})
	if err != nil {
		return "", unreadable(err, "the image \""+oneLine(pullSpec)+"\"")
	}
	// The digest is of the image that the pull spec names, whichever mirror said
	// so.
	return reference.Context().Digest(resolved).String(), nil
}
