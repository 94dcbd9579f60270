package imagepolicy

import (
	"context"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Place is a repository of an image, and how to reach it. Auth and Transport are required.
type Place struct {
	Repository name.Repository
	// Mirror is false for the repository that the pull spec names.
	Mirror    bool
	Auth      authn.Authenticator
	Transport http.RoundTripper
}

// Puller resolves the repositories from which the nodes pull.
type Puller interface {
	// Pull calls visit for one place after the other that the nodes would pull
	// the image from, until visit returns no error. An error of go-containerregistry
	// means that the image is not available there.
	Pull(ctx context.Context, pullSpec string, visit func(context.Context, Place) error) error
}
