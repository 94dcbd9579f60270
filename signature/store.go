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
)

const (
	// requestTimeout bounds one request to a store, redirects and body included.
	requestTimeout = 10 * time.Second
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
	// maxHeaderBytes bounds the header of an answer.
	maxHeaderBytes = 64 << 10
)

var errTooLarge = errors.New("too large")

// Store keeps signatures by digest.
type Store interface {
	// String is how errors call the store, without secrets.
	String() string
	// Signature returns signature n, from 1, of a digest ("sha256:<hex>"). An
	// error that is fs.ErrNotExist says that there are no more; any other one
	// that the store could not be asked. It need not return more than 64 KiB.
	Signature(ctx context.Context, digest string, n int) ([]byte, error)
}

// NewStore makes a Store of an http, https or file URL, or of a directory. In
// it, signature n of a digest is sha256=<hex>/signature-<n>. Requests take the
// proxy of the environment, at most 10 s each, and at most five redirects.
func NewStore(location string) (Store, error) {
	return newStore(location, egress{proxy: http.ProxyFromEnvironment})
}

// newStore is NewStore with another way to web servers.
func newStore(location string, way egress) (Store, error) {
	if location == "" {
		return nil, newError(reasonInvalidStore, "a signature store without location")
	}
	if !strings.Contains(location, "://") {
		return directoryStore(location), nil
	}
	u, err := url.Parse(location)
	if err != nil {
		// The error of Parse would repeat a password.
		return nil, newError(reasonInvalidStore, "the location of a signature store is not a URL")
	}
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost"):
		return directoryStore(u.Path), nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return newHTTPStore(u, way), nil
	}
	return nil, newError(reasonInvalidStore, "signature store %q is not a URL with http://, https:// or file:///, nor a directory", u.Redacted())
}

// file is the name of signature n under the root of a store.
func file(digest string, n int) []string {
	return []string{strings.Replace(digest, ":", "=", 1), "signature-" + strconv.Itoa(n)}
}

// readBounded reads a signature; one that is too large is not read to its end.
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

// Signature reads a file. A directory that is not there at all is an error: it
// was mistyped or not mounted.
func (s directoryStore) Signature(_ context.Context, digest string, n int) (_ []byte, err error) {
	root, err := os.OpenRoot(string(s))
	if err != nil {
		return nil, fmt.Errorf("open the signature store: %w", withoutNotExist(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.Open(filepath.Join(file(digest, n)...))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return readBounded(f)
}

// withoutNotExist keeps the text of err alone.
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

func newHTTPStore(u *url.URL, way egress) *httpStore {
	return &httpStore{url: u, client: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy:                  way.proxy,
			TLSClientConfig:        &tls.Config{RootCAs: way.roots, MinVersion: tls.VersionTLS12},
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

// Signature asks for one file.
func (s *httpStore) Signature(ctx context.Context, digest string, n int) (_ []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.JoinPath(file(digest, n)...).String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
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

// unusableStore stands in for a store of the cluster that cannot be asked: what
// it has, nobody can tell.
type unusableStore struct {
	name  string
	cause *Error
}

func (s unusableStore) String() string { return s.name }

// Signature returns the cause.
func (s unusableStore) Signature(context.Context, string, int) ([]byte, error) { return nil, s.cause }
