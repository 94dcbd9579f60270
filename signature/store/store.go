// Package store answers: which signatures does a signature store have of a digest?
//
// [New] returns the [Store] at a location. Everything that a store sends is bounded, and
// nothing in it is verified.
package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/net/http/httpproxy"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/signature/localfile"
	"github.com/openshift/update-preflight/signature/outbound"
	"github.com/openshift/update-preflight/signature/refusal"
)

// MaxBytes bounds one signature, compressed and decompressed. Signatures of releases are below 1 KiB.
const MaxBytes = 64 << 10

const (
	// requestTimeout bounds one request to a store, redirects and body included.
	requestTimeout = 10 * time.Second
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
	// maxHeaderBytes bounds the header of a response.
	maxHeaderBytes = 64 << 10
)

// ErrTooLarge is the error of a store for a signature of more than [MaxBytes].
var ErrTooLarge = errors.New("too large")

// Store is a signature store: signatures by digest.
type Store interface {
	// String names the store in errors, without secrets.
	String() string
	// Signature returns signature n, from 1, of a digest ("sha256:<hex>"). The
	// error fs.ErrNotExist means that there are no more; any other error that the
	// store could not be read. It need not return more than 64 KiB.
	Signature(ctx context.Context, digest string, n int) ([]byte, error)
}

// New returns the Store at an http, https or file URL, or in a directory.
// Signature n of a digest is at sha256=<hex>/signature-<n>. Requests use the proxy
// of the environment, take at most 10 s each and follow at most five redirects.
func New(location string) (Store, error) {
	return Via(location, Egress{Proxy: http.ProxyFromEnvironment})
}

// Via is [New] with its own egress.
func Via(location string, via Egress) (Store, error) {
	if location == "" {
		return nil, refusal.New(refusal.ReasonInvalidStore, "the signature store has no location")
	}
	if !strings.Contains(location, "://") {
		return directoryStore(location), nil
	}
	u, err := url.Parse(location)
	if err != nil {
		// The error of Parse would disclose a password.
		return nil, refusal.New(refusal.ReasonInvalidStore, "the location of a signature store is not a URL")
	}
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost"):
		return directoryStore(u.Path), nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return OfServer(u, via), nil
	}
	return nil, refusal.New(refusal.ReasonInvalidStore, "the signature store %q is neither an http, https or file URL nor a directory",
		u.Redacted())
}

// file is the path of signature n under the root of a store.
func file(digest string, n int) []string {
	return []string{strings.Replace(digest, ":", "=", 1), "signature-" + strconv.Itoa(n)}
}

// readBounded reads a signature of at most MaxBytes.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		return nil, ErrTooLarge
	}
	return data, err
}

type directoryStore string

func (s directoryStore) String() string { return string(s) }

// Signature reads a file. A missing store directory is an error, not an empty
// store: it was mistyped or is not mounted.
func (s directoryStore) Signature(_ context.Context, digest string, n int) (_ []byte, err error) {
	root, err := os.OpenRoot(string(s))
	if err != nil {
		return nil, fmt.Errorf("open the signature store: %w", withoutNotExist(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := localfile.OpenRegularIn(root, filepath.Join(file(digest, n)...))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return readBounded(f)
}

// withoutNotExist keeps the text of err but not its identity as fs.ErrNotExist.
func withoutNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(err.Error())
	}
	return err
}

type httpStore struct {
	url    *url.URL
	client *http.Client
}

// OfServer returns the store of a web server.
func OfServer(u *url.URL, via Egress) Store {
	return &httpStore{url: u, client: &http.Client{
		Timeout: requestTimeout,
		Transport: new(outbound.Guard).Transport(&http.Transport{
			Proxy:                  via.Proxy,
			TLSClientConfig:        &tls.Config{RootCAs: via.Roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			IdleConnTimeout:        requestTimeout,
		}),
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return nil
		},
	}}
}

func (s *httpStore) String() string { return s.url.Redacted() }

// Signature requests one file.
func (s *httpStore) Signature(ctx context.Context, digest string, n int) (_ []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.JoinPath(file(digest, n)...).String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("create the request: %w", err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, fs.ErrNotExist
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return readBounded(response.Body)
}

// Unusable replaces a store of the cluster that cannot be used; its content is unknown.
type Unusable struct {
	Name string
	// Cause is why it cannot be used.
	Cause *refusal.Error
}

// String returns the name.
func (s Unusable) String() string { return s.Name }

// Signature returns the cause.
func (s Unusable) Signature(context.Context, string, int) ([]byte, error) { return nil, s.Cause }

// Egress is how web servers are reached.
type Egress struct {
	Proxy func(*http.Request) (*url.URL, error)
	// Roots are the trusted certificate authorities; nil means the system's.
	Roots *x509.CertPool
}

// ProxyOf selects the environment's proxy, then the cluster's.
func ProxyOf(status configv1.ProxyStatus) func(*http.Request) (*url.URL, error) {
	config := httpproxy.Config{HTTPProxy: status.HTTPProxy, HTTPSProxy: status.HTTPSProxy, NoProxy: status.NoProxy}
	choose := config.ProxyFunc()
	return func(request *http.Request) (*url.URL, error) {
		if own, err := http.ProxyFromEnvironment(request); own != nil || err != nil {
			return own, err
		}
		return choose(request.URL)
	}
}

// Namespace has the ConfigMaps of cluster-update-keys and library-go pkg/verify: the
// signatures, and the keyrings and stores of the release.
const Namespace = "openshift-config-managed"

// ConfigMaps holds the signatures in ConfigMaps of the cluster, by key ("sha256-<hex>-<n>").
type ConfigMaps struct {
	entries []entry
}

type entry struct {
	key       string
	signature []byte
}

// OfConfigMaps returns the store in these ConfigMaps.
func OfConfigMaps(configMaps []corev1.ConfigMap) *ConfigMaps {
	s := &ConfigMaps{}
	slices.SortFunc(configMaps, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	for i := range configMaps {
		for _, key := range slices.Sorted(maps.Keys(configMaps[i].BinaryData)) {
			s.entries = append(s.entries, entry{key: key, signature: configMaps[i].BinaryData[key]})
		}
	}
	return s
}

// String names the namespace.
func (s *ConfigMaps) String() string {
	return "ConfigMaps in " + Namespace
}

// Signature counts duplicates once: CVO keeps copies of the signatures that it
// used in a ConfigMap with the same label.
func (s *ConfigMaps) Signature(_ context.Context, digest string, n int) ([]byte, error) {
	prefix := strings.Replace(digest, ":", "-", 1)
	var found [][]byte
	for _, e := range s.entries {
		duplicate := slices.ContainsFunc(found, func(other []byte) bool { return bytes.Equal(other, e.signature) })
		if strings.HasPrefix(e.key, prefix) && !duplicate {
			found = append(found, e.signature)
		}
	}
	if n > len(found) {
		return nil, fs.ErrNotExist
	}
	return found[n-1], nil
}
