package payload

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Resolve returns the pull spec by digest of what a pull spec means at this
// moment. Whoever may push to the repository decides on that, so it is nothing
// to trust: verify the result. The error is always an *Error.
func Resolve(ctx context.Context, pullSpec string) (string, error) {
	reference, err := name.ParseReference(pullSpec)
	if err != nil {
		failure := refuse("InvalidPullSpec", "%q is not a pull spec", oneLine(pullSpec))
		failure.Remediation, failure.Err = "Name the release image as REPOSITORY@sha256:DIGEST.", err
		return "", failure
	}
	transport := newTransport()
	defer transport.CloseIdleConnections()
	descriptor, err := remote.Head(reference, remote.WithContext(ctx), remote.WithTransport(transport),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("oc-preflight"))
	if err != nil {
		return "", unreadable(err, "the image \""+oneLine(pullSpec)+"\"")
	}
	return reference.Context().Digest(descriptor.Digest.String()).String(), nil
}
