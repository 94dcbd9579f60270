// Package registry answers: from which repositories, and with which credentials, would this cluster pull an image?
//
// It reads the configuration of the nodes: the mirrors of ImageDigestMirrorSets, ImageTagMirrorSets and
// ImageContentSourcePolicies, the blocked, allowed and insecure registries and the additional CAs of
// image.config.openshift.io, the global pull secret, the proxy and its CA. It combines them as the machine-config
// operator writes them for the nodes (openshift/runtime-utils pkg/registries) and as CRI-O reads them (containers/image
// pkg/sysregistriesv2, pkg/docker/config). The user's own credentials follow the cluster's.
//
// # Differences from a node
//
// A proxy named by this machine's environment replaces the cluster's. When two ImageDigestMirrorSets have contradictory
// policies for a source, the machine-config operator writes neither; here the stricter applies, with a warning. Blocked
// registries apply to the repository that an image is pulled from, not also to its name (policy.json). Credentials are
// sent over plain HTTP only to a local registry or one listed as insecure.
package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry/credential"
	"github.com/openshift/update-preflight/signature/outbound"
)

// Places returns the repositories of an image in the order in which the cluster would pull, including closed ones. The
// error is an *Error.
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
func (a *Access) tryPlace(ctx context.Context, place Place, identifier string, pull func(context.Context, Visit) error) (Visit, []attempt,
	error,
) {
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
			Remediation: "Specify the image as REPOSITORY@sha256:DIGEST.",
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

// byTag reports whether tag mirrors, instead of digest mirrors, apply to an image.
func byTag(reference name.Reference) bool {
	_, digest := reference.(name.Digest)
	return !digest
}

// Local is the configuration of this machine.
type Local struct {
	// AuthFiles are paths of credentials files of the user, in the format of
	// containers-auth.json(5) or of Docker's config.json, in order of precedence.
	// Missing files are ignored.
	AuthFiles []string
	// Transport sends all requests to registries; nil means the network, with its proxies and CAs.
	Transport http.RoundTripper
}

// Access resolves pull specs to repositories, credentials and transports. Its methods may be called concurrently.
type Access struct {
	rules       rules
	credentials []credential.Store
	network     network
	warnings    []finding.Finding
	// ofCluster is how many of the credentials and warnings come from the cluster; the others are of this machine.
	ofCluster struct{ credentials, warnings int }

	mutex sync.Mutex
	bases map[base]http.RoundTripper
	// guard knows the addresses of the registries that were named.
	guard outbound.Guard
}

// Own is the access without a cluster: no mirrors, and only the user's credentials.
func Own(ctx context.Context, local Local) *Access {
	a := &Access{network: network{override: local.Transport}, bases: map[base]http.RoundTripper{}}
	a.addLocal(ctx, local)
	return a
}

// OfNodes is the same access without the credentials of this machine, which the nodes of the cluster do not have.
func (a *Access) OfNodes() *Access {
	return &Access{
		rules: a.rules, network: a.network, bases: map[base]http.RoundTripper{}, ofCluster: a.ofCluster,
		credentials: slices.Clip(a.credentials[:a.ofCluster.credentials]), warnings: slices.Clone(a.warnings[:a.ofCluster.warnings]),
	}
}

func (a *Access) addLocal(ctx context.Context, local Local) {
	for _, path := range local.AuthFiles {
		own, err := credential.ReadAuthFile(ctx, path)
		if err != nil {
			a.warn(reasonAuthFileUnreadable, err.Error(), "Correct the file, or log in again with `podman login`.")
			continue
		}
		a.credentials = append(a.credentials, own)
	}
}

// Warnings report configuration that could not be read or that nodes ignore, so that they may pull images differently.
// They do not block.
func (a *Access) Warnings() []finding.Finding { return slices.Clone(a.warnings) }

func (a *Access) warn(reason finding.Reason, message, remediation string, actions ...finding.Action) {
	a.warnings = append(a.warnings, warning(finding.Warn(reason, "%s", message).Remedy("%s", remediation).Do(actions...)))
}

// Close closes idle connections.
func (a *Access) Close() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, transport := range a.bases {
		(&http.Client{Transport: transport}).CloseIdleConnections()
	}
}

func (a *Access) credentialsFor(repository string) []credential.Credential {
	var found []credential.Credential
	for _, each := range a.credentials {
		if best, ok := each.Find(repository); ok {
			found = append(found, best)
		}
	}
	if len(found) == 0 {
		return []credential.Credential{{}}
	}
	return found
}

// transport sends requests to a registry. A redirect and the token server follow
// the rules of their own host. go-containerregistry retries too, but ignores the context
// and Retry-After.
func (a *Access) transport(host string, unsafe bool) http.RoundTripper {
	return retry.Busy(&hostTransport{access: a, host: host, unsafe: unsafe})
}

type hostTransport struct {
	access *Access
	host   string
	unsafe bool
}

// RoundTrip rejects plain HTTP to hosts that are neither local nor insecure, where
// a credential could be intercepted.
func (c *hostTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	host := request.URL.Host
	unsafe := c.unsafe && host == c.host
	if request.URL.Scheme != "https" && !unsafe && !local(request.URL.Hostname()) {
		if host == c.host || request.Header.Get("Authorization") != "" || request.Body != nil && request.Body != http.NoBody {
			return nil, fmt.Errorf("%q uses plain HTTP but is not among the cluster's insecure registries", host)
		}
	}
	request = request.WithContext(outbound.From(request.Context(), c.host))
	if override := c.access.network.override; override != nil {
		if _, err := c.access.guard.Check(request); err != nil {
			return nil, err
		}
		return override.RoundTrip(request)
	}
	return c.access.base(base{host: host, unsafe: unsafe}).RoundTrip(request)
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// base returns the transport for a kind of connection. Every step up to the
// response header has a timeout; the context bounds the body.
func (a *Access) base(kind base) http.RoundTripper {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.bases[kind] == nil {
		a.bases[kind] = a.guard.Transport(&http.Transport{
			Proxy: a.network.proxyFor,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS12, RootCAs: a.network.roots(kind.host),
				//nolint:gosec // The cluster's administrators listed the registry as insecure; content is verified by digest.
				InsecureSkipVerify: kind.unsafe,
			},
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    16,
			MaxResponseHeaderBytes: 1 << 20,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  30 * time.Second,
			IdleConnTimeout:        30 * time.Second,
		})
	}
	return a.bases[kind]
}

type network struct {
	// override sends all requests instead, if set.
	override http.RoundTripper
	// proxy is the cluster's, nil when it has none.
	proxy func(*url.URL) (*url.URL, error)
	// bundle is the cluster's bundle of CAs, in PEM, and certificates are those for one host:port each.
	bundle       []byte
	certificates map[string][]byte
}

// base identifies connections: to a host, with or without verification of its certificate.
type base struct {
	host   string
	unsafe bool
}

// proxyFor selects the environment's proxy, then the cluster's.
func (n network) proxyFor(request *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(request)
	if proxy != nil || err != nil || n.proxy == nil {
		return proxy, err
	}
	return n.proxy(request.URL)
}

// roots are the CAs of this machine, of the cluster and of the host; nil if only this machine's CAs apply.
func (n network) roots(host string) *x509.CertPool {
	own := n.certificates[host]
	if len(n.bundle) == 0 && len(own) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the system has none
	}
	pool.AppendCertsFromPEM(n.bundle)
	pool.AppendCertsFromPEM(own)
	return pool
}
