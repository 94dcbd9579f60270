package payload

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Resolve returns the pull spec by digest of what a pull spec means at this
// moment. Whoever may push to the repository decides on that, so it is nothing
// to trust: verify the result.
func Resolve(ctx context.Context, pullSpec string, opts ...Option) (string, error) {
	reference, err := name.ParseReference(pullSpec)
	if err != nil {
		return "", refuse("InvalidPullSpec", "%q is not a pull spec: %v", oneLine(pullSpec), err)
	}
	settings := options{keychain: authn.DefaultKeychain}
	for _, option := range opts {
		option(&settings)
	}
	transport := settings.transport
	if transport == nil {
		own := newTransport()
		defer own.CloseIdleConnections()
		transport = own
	}
	descriptor, err := remote.Head(reference, remote.WithContext(ctx),
		remote.WithAuthFromKeychain(settings.keychain), remote.WithTransport(transport), remote.WithUserAgent("oc-preflight"))
	if err != nil {
		return "", unreadable(err, fmt.Sprintf("the image %q", pullSpec))
	}
	return reference.Context().Digest(descriptor.Digest.String()).String(), nil
}
