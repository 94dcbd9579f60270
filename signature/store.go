package signature

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/update-preflight/signature/localfile"
)

const (
	// requestTimeout bounds one request to a store, redirects and body included.
	requestTimeout = 10 * time.Second
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
	// maxHeaderBytes bounds the header of a response.
	maxHeaderBytes = 64 << 10
)

var errTooLarge = errors.New("too large")

// Store is a signature store: signatures by digest.
type Store interface {
	// String names the store in errors, without secrets.
	String() string
	// Signature returns signature n, from 1, of a digest ("sha256:<hex>"). The
	// error fs.ErrNotExist means that there are no more; any other error that the
	// store could not be read. It need not return more than 64 KiB.
	Signature(ctx context.Context, digest string, n int) ([]byte, error)
}

// NewStore returns the Store at an http, https or file URL, or in a directory.
// Signature n of a digest is at sha256=<hex>/signature-<n>. Requests use the proxy
// of the environment, take at most 10 s each and follow at most five redirects.
func NewStore(location string) (Store, error) {
	return newStore(location, egress{proxy: http.ProxyFromEnvironment})
}

// newStore is NewStore with its own egress.
func newStore(location string, via egress) (Store, error) {
	if location == "" {
		return nil, newError(ReasonInvalidStore, "the signature store has no location")
	}
	if !strings.Contains(location, "://") {
		return directoryStore(location), nil
	}
	u, err := url.Parse(location)
	if err != nil {
		// The error of Parse would disclose a password.
		return nil, newError(ReasonInvalidStore, "the location of a signature store is not a URL")
	}
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost"):
		return directoryStore(u.Path), nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return newHTTPStore(u, via), nil
	}
	return nil, newError(ReasonInvalidStore, "the signature store %q is neither an http, https or file URL nor a directory", u.Redacted())
}

// file is the path of signature n under the root of a store.
func file(digest string, n int) []string {
	return []string{strings.Replace(digest, ":", "=", 1), "signature-" + strconv.Itoa(n)}
}

// readBounded reads a signature of at most maxSignatureBytes.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSignatureBytes+1))
	if err == nil && len(data) > maxSignatureBytes {
		return nil, errTooLarge
	}
	return data, err
}

// directoryStore is the path of a directory.
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

// httpStore is a web server.
type httpStore struct {
	url    *url.URL
	client *http.Client
}

func newHTTPStore(u *url.URL, via egress) *httpStore {
	return &httpStore{url: u, client: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy:                  via.proxy,
			TLSClientConfig:        &tls.Config{RootCAs: via.roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			IdleConnTimeout:        requestTimeout,
		},
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

// unusableStore replaces a store of the cluster that cannot be used; its content
// is unknown.
type unusableStore struct {
	name  string
	cause *Error
}

func (s unusableStore) String() string { return s.name }

// Signature returns the cause.
func (s unusableStore) Signature(context.Context, string, int) ([]byte, error) { return nil, s.cause }
