// Package registry answers: from where, and as whom, would this cluster pull an
// image?
//
// It reads what decides that on the nodes: the mirrors of ImageDigestMirrorSets,
// ImageTagMirrorSets and ImageContentSourcePolicies, the blocked, allowed and
// insecure registries and the additional CAs of image.config.openshift.io, the
// global pull secret, the proxy and its CA. It puts them together as the
// machine-config operator writes them for the nodes (openshift/runtime-utils
// pkg/registries) and as CRI-O reads them (containers/image
// pkg/sysregistriesv2, pkg/docker/config). The user's own credentials come
// after those of the cluster.
//
// # Differences from a node
//
// Where this machine's environment names a proxy, that one is used and not the
// cluster's: it knows how to get out from here. Of two ImageDigestMirrorSets
// that contradict each other about a source, for which the machine-config
// operator writes nothing at all, the one that forbids more counts, and there is
// a warning. Blocked registries count by where an image is pulled from, not also
// by what it is called (policy.json). Credentials never go over plain HTTP
// unless the registry is local or listed as insecure.
package registry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/openshift/update-preflight/collector/finding"
)

// Local is what this machine brings.
type Local struct {
	// AuthFiles are paths of the user's own credentials, in the format of
	// containers-auth.json(5) or of Docker's config.json. The first with an
	// entry comes first; a file that does not exist is none.
	AuthFiles []string
	// Transport, where set, is how registries are reached, in place of the
	// network with its proxies and CAs.
	Transport http.RoundTripper
}

// Access is how images are pulled. Its methods may be called concurrently.
type Access struct {
	rules       rules
	credentials []store
	network     network
	warnings    []finding.Finding

	mutex sync.Mutex
	bases map[base]*http.Transport
}

// Own is the access of this machine, of which no cluster knows: without
// mirrors, and with the user's own credentials alone.
func Own(local Local) *Access {
	a := &Access{network: network{override: local.Transport}, bases: map[base]*http.Transport{}}
	a.addLocal(local)
	return a
}

// addLocal puts the user's credentials after those that are there.
func (a *Access) addLocal(local Local) {
	for _, path := range local.AuthFiles {
		own, err := readAuthFile(path)
		if err != nil {
			a.warn("AuthFileUnreadable", err.Error(), "Correct the file, or log in again: podman login")
			continue
		}
		a.credentials = append(a.credentials, own)
	}
}

// Warnings are about what could not be read or contradicts itself, so that
// nodes may pull in another way than is known here. They do not block.
func (a *Access) Warnings() []finding.Finding { return slices.Clone(a.warnings) }

func (a *Access) warn(reason finding.Reason, message, remediation string) {
	a.warnings = append(a.warnings, warning(finding.Warn(reason, "%s", message).Remedy("%s", remediation)))
}

// Close ends the connections that are kept open.
func (a *Access) Close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, transport := range a.bases {
		transport.CloseIdleConnections()
	}
}

// Place is a repository that an image may be pulled from.
type Place struct {
	// Repository is the place, e.g. "mirror.example.com:5000/ocp/release".
	Repository string
	// Mirror is false for the repository that the pull spec names.
	Mirror bool
	// Closed says why the cluster does not contact the place; empty when it does.
	Closed string

	insecure bool
}

// String is how messages call the place.
func (p Place) String() string {
	if p.Mirror {
		return fmt.Sprintf("mirror %q", p.Repository)
	}
	return fmt.Sprintf("source %q", p.Repository)
}

// Places are the repositories that the cluster would pull the image from, in
// its order, also those that it does not contact. The error is an *Error.
func (a *Access) Places(pullSpec string) ([]Place, error) {
	reference, err := parse(pullSpec)
	if err != nil {
		return nil, err
	}
	return a.rules.places(reference)
}

// Visit is one attempt at a place, as somebody.
type Visit struct {
	Place
	// Reference is the image in the repository of the place.
	Reference name.Reference
	// Credential says where the credential was found, never what it is.
	Credential string
	// Auth is the credential, Transport the way to the registry. Both are for
	// this place alone. Retries are the transport's business: it minds the
	// context and what the registry asks for.
	Auth      authn.Authenticator
	Transport http.RoundTripper
}

// Try calls ask for one place after the other until it has no error, and says
// which one that was. At each place it tries the cluster's own credential, then
// the user's, and none where there is neither. An answer that says that the
// image cannot be had there leads on to the next; any other error of ask ends
// the search and is returned as it is. When there is no place left, the error is
// an *Error that says what each one answered.
func (a *Access) Try(ctx context.Context, pullSpec string, ask func(context.Context, Visit) error) (Visit, error) {
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
		visit, tried, err := a.tryPlace(ctx, place, reference.Identifier(), ask)
		if err != nil || visit.Reference != nil {
			return visit, err
		}
		attempts = append(attempts, tried...)
	}
	return Visit{}, a.failure(pullSpec, attempts)
}

// tryPlace returns the visit that had the answer, or else what was tried.
func (a *Access) tryPlace(ctx context.Context, place Place, identifier string, ask func(context.Context, Visit) error) (Visit, []attempt, error) {
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
		visit.Auth, err = credential.authenticator(ctx)
		if err == nil {
			err = ask(ctx, visit)
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
			break // another account would get the same answer
		}
	}
	return Visit{}, attempts, nil
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
			Reason: "InvalidPullSpec", Message: fmt.Sprintf("%q is not a pull spec", oneLine(pullSpec)), Err: err,
			Remediation: "Name the image as REPOSITORY@sha256:DIGEST.",
		}
	}
	return reference, nil
}

// repositoryOf is what configuration calls the repository: Docker Hub has
// another name there than it has as a server.
func repositoryOf(reference name.Reference) string {
	repository := reference.Context().Name()
	if rest, ok := strings.CutPrefix(repository, name.DefaultRegistry+"/"); ok {
		return dockerHub + "/" + rest
	}
	return repository
}

const dockerHub = "docker.io"
