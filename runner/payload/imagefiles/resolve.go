package imagefiles

import (
	"context"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// Resolve returns the pull spec by digest to which a pull spec currently
// resolves: at the cluster's mirrors of tags, then at the repository that it
// names. The result depends on all users who may push there and is not trusted:
// verify it. A pull spec by digest is returned unchanged. The error is always an *Error.
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
		return "", unreadable(err, "the image \""+words.External(pullSpec)+"\"")
	}
	// The result names the repository of the pull spec, even if a mirror resolved the tag.
	return reference.Context().Digest(resolved).String(), nil
}
