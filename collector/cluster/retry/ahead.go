package retry

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// spare is used for one body after another: a page of a list has megabytes, and a list many pages. A sync.Pool
// would often have none, since it has one for each processor.
var spare atomic.Pointer[bytes.Buffer] //nolint:gochecknoglobals // a cache

// maxSpare bounds the memory that is kept for the next body, in bytes: that of a page of 500 pods.
const maxSpare = 8 << 20

// Ahead reads the first bytes of the body of a response, at most limit, and restores it. They are valid until
// the body is closed.
func Ahead(response *http.Response, limit int64) ([]byte, error) {
	if of, ok := response.Body.(*ahead); ok && of.ended {
		return of.unread.Bytes(), nil // nothing has read or closed it
	}
	into := spare.Swap(nil)
	if into == nil {
		into = &bytes.Buffer{}
	}
	into.Reset()
	_, err := into.ReadFrom(io.LimitReader(response.Body, limit))
	response.Body = &ahead{unread: into, rest: response.Body, ended: err == nil && int64(into.Len()) < limit}
	return into.Bytes(), err
}

type ahead struct {
	rest io.ReadCloser
	// ended is true where the beginning is all.
	ended bool

	mutex sync.Mutex // since a body may be closed while it is read
	// unread is the part of the beginning that was not read yet; nil for a closed body.
	unread *bytes.Buffer
}

func (a *ahead) Read(into []byte) (int, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case a.unread == nil:
		return 0, http.ErrBodyReadAfterClose
	case a.unread.Len() > 0:
		return a.unread.Read(into)
	case a.ended:
		return 0, io.EOF
	}
	return a.rest.Read(into)
}

// Close implements io.Closer. The buffer is given back once.
func (a *ahead) Close() error {
	err := a.rest.Close() // which ends a Read that waits
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.unread != nil && a.unread.Cap() <= maxSpare {
		spare.Store(a.unread)
	}
	a.unread = nil
	return err
}

const (
	// maxTries and maxWait bound the number of requests to a busy server, and each wait between them.
	maxTries  = 4
	firstWait = 500 * time.Millisecond
	maxWait   = 30 * time.Second
	// maxDrain bounds the part of an unused response that is read in order to reuse its connection, in bytes.
	maxDrain = 64 << 10
)

// Busy makes a transport that repeats a safe request, at most three times, when a server
// other than the API server, such as a registry, is busy or drops the connection. It waits
// for the time in Retry-After, unless that is more than 30 seconds.
func Busy(next http.RoundTripper) http.RoundTripper { return &busyTransport{next: next} }

type busyTransport struct{ next http.RoundTripper }

func (b *busyTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	wait := firstWait
	for try := 1; ; try++ {
		response, err := b.next.RoundTrip(request)
		if try == maxTries || !isRepeatable(request) || !isBusy(response, err) {
			return response, err
		}
		after, ok := waitAfter(response, wait)
		if !ok {
			return response, err
		}
		discard(response)
		if !pause(request.Context(), after) {
			return nil, request.Context().Err()
		}
		wait *= 2
	}
}

func isRepeatable(request *http.Request) bool {
	return (request.Method == http.MethodGet || request.Method == http.MethodHead) && (request.Body == nil || request.Body == http.NoBody)
}

func isBusy(response *http.Response, err error) bool {
	if err != nil {
		return Disconnected(err)
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// waitAfter is how long to wait before a retry, at least the Retry-After of the
// response (RFC 9110, 10.2.3). It is false when that exceeds maxWait.
func waitAfter(response *http.Response, wait time.Duration) (time.Duration, bool) {
	if response == nil {
		return wait, true
	}
	after := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(after, 10, 31); err == nil {
		wait = max(wait, time.Duration(seconds)*time.Second)
	} else if date, err := http.ParseTime(after); err == nil {
		wait = max(wait, time.Until(date))
	}
	return wait, wait <= maxWait
}

func discard(response *http.Response) {
	if response == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxDrain) // an unused response
	_ = response.Body.Close()
}
