// Package registry answers: from which repositories, and with which credentials,
// would this cluster pull an image?
//
// It reads the configuration of the nodes: the mirrors of ImageDigestMirrorSets,
// ImageTagMirrorSets and ImageContentSourcePolicies, the blocked, allowed and
// insecure registries and the additional CAs of image.config.openshift.io, the
// global pull secret, the proxy and its CA. It combines them as the machine-config
// operator writes them for the nodes (openshift/runtime-utils pkg/registries) and
// as CRI-O reads them (containers/image pkg/sysregistriesv2, pkg/docker/config).
// The user's own credentials follow those of the cluster.
//
// # Differences from a node
//
// A proxy named by this machine's environment replaces the cluster's. When two
// ImageDigestMirrorSets have contradictory policies for a source, the machine-config
// operator writes neither; here the stricter applies, with a warning. Blocked
// registries apply to the repository that an image is pulled from, not also to its
// name (policy.json). Credentials are sent over plain HTTP only to a local registry
// or one listed as insecure.
package registry

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry/credential"
)

// Places are the repositories of an image in the order in which the cluster would
// pull, including closed ones. The error is an *Error.
func (a *Access) Places(pullSpec string) ([]Place, error) {
	reference, err := parse(pullSpec)
	if err != nil {
		return nil, err
	}
	return a.rules.places(reference)
}

// Visit is one attempt to pull from a place with one credential.
type Visit struct {
	Place
	// Reference is the image in the repository of the place.
	Reference name.Reference
	// Credential describes the origin of the credential, never its content.
	Credential string
	// Auth and Transport are for this place only. The transport retries, within
	// the context and as the registry requests.
	Auth      authn.Authenticator
	Transport http.RoundTripper
}

// Try calls pull for each place in order until it succeeds, and returns that
// visit. At each place it tries the cluster's credential, then the user's, and
// anonymous access when there is neither. After an HTTP error or a failed request
// it continues with the next place; any other error of pull is final and returned
// unchanged. When no place succeeds, the error is an *Error with all responses.
func (a *Access) Try(ctx context.Context, pullSpec string, pull func(context.Context, Visit) error) (Visit, error) {
	reference, err := parse(pullSpec)
	if err != nil {
		return Visit{}, err
	}
	places, err := a.rules.places(reference)
	if err != nil {
		return Visit{}, err
	}
	var attempts []attempt
	for _, place := range places {
		visit, tried, err := a.tryPlace(ctx, place, reference.Identifier(), pull)
		if err != nil || visit.Reference != nil {
			return visit, err
		}
		attempts = append(attempts, tried...)
	}
	return Visit{}, failures{rules: a.rules, warnings: a.warnings}.of(reference, attempts)
}

// tryPlace returns the visit that succeeded, or else the attempts.
func (a *Access) tryPlace(ctx context.Context, place Place, identifier string, pull func(context.Context, Visit) error) (Visit, []attempt, error) {
	if place.Closed != "" {
		return Visit{}, []attempt{{place: place}}, nil
	}
	reference, err := place.reference(identifier)
	if err != nil {
		return Visit{}, nil, err
	}
	var attempts []attempt
	for _, credential := range a.credentialsFor(place.Repository) {
		visit := Visit{Place: place, Reference: reference, Credential: credential.String()}
		visit.Transport = a.transport(reference.Context().RegistryStr(), place.insecure)
		visit.Auth, err = credential.Authenticator(ctx)
		if err == nil {
			err = pull(ctx, visit)
		}
		if err == nil {
			return visit, nil, nil
		}
		if ctx.Err() != nil {
			return Visit{}, nil, interrupted(ctx, err)
		}
		if !elsewhere(err) {
			return Visit{}, nil, err
		}
		attempts = append(attempts, attempt{place: place, credential: credential, err: err})
		if !unauthorized(err) {
			break // another credential would not change the response
		}
	}
	return Visit{}, attempts, nil
}

// Place is a repository that an image may be pulled from.
type Place struct {
	// Repository is its name, for example "mirror.example.com:5000/ocp/release".
	Repository string
	// Mirror is false for the repository named by the pull spec.
	Mirror bool
	// Closed is why the cluster does not contact the place; empty when it does.
	Closed string

	insecure bool
}

// String names the place in messages.
func (p Place) String() string {
	if p.Mirror {
		return fmt.Sprintf("mirror %q", p.Repository)
	}
	return fmt.Sprintf("source %q", p.Repository)
}

func (p Place) reference(identifier string) (name.Reference, error) {
	separator := ":"
	if strings.Contains(identifier, ":") {
		separator = "@"
	}
	var options []name.Option
	if p.insecure {
		options = append(options, name.Insecure)
	}
	return name.ParseReference(p.Repository+separator+identifier, options...)
}

func parse(pullSpec string) (name.Reference, error) {
	reference, err := name.ParseReference(pullSpec)
	if err != nil {
		return nil, &Error{
			Reason: reasonInvalidPullSpec, Message: fmt.Sprintf("%q is not a pull spec", words.Line(pullSpec, maxText)), Err: err,
			Remediation: "Name the image as REPOSITORY@sha256:DIGEST.",
		}
	}
	return reference, nil
}

// repositoryOf is the name of the repository in configuration, where Docker Hub is called docker.io.
func repositoryOf(reference name.Reference) string {
	repository := reference.Context().Name()
	if rest, ok := strings.CutPrefix(repository, name.DefaultRegistry+"/"); ok {
		return credential.DockerHub + "/" + rest
	}
	return repository
}

// byTag reports whether the mirrors of tags apply to an image, not those of digests.
func byTag(reference name.Reference) bool {
	_, digest := reference.(name.Digest)
	return !digest
}
