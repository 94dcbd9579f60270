// Package retry answers: when is a failed request repeated?
//
// A preflight runs just before maintenance, when API servers and etcd restart,
// load balancers have no backend and laptops change networks. Such an error is
// independent of the request, so the request is repeated until it is answered or
// its context ends. A response that the API server decided on, such as Forbidden
// or AlreadyExists, is final.
//
// A request whose response is lost may have been served. Code that creates must
// therefore adopt what it finds, and code that updates must read again first.
package retry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

const interval = time.Second

// Do makes a request, and repeats it until ctx is done while its error is [Temporary]. It returns the last error.
// If the end of ctx caused that error, it returns the error of the attempt before, which shows what the attempts
// waited for.
func Do(ctx context.Context, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		attempt := request(ctx)
		ended := last != nil && attempt != nil && ctx.Err() != nil
		if !ended {
			last = attempt
		}
		return ended || !Temporary(last), nil
	})
	if last != nil {
		return last
	}
	return err
}

// Get is Do for a request that returns a value.
func Get[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	var answer T
	err := Do(ctx, func(ctx context.Context) (err error) {
		answer, err = request(ctx)
		return err
	})
	return answer, err
}

// Mark marks an error as [Temporary].
func Mark(err error) error { return &againError{err} }

type againError struct{ error }

func (e *againError) Unwrap() error { return e.error }

// Temporary is true for the errors of an API server that restarts, cannot be reached or is overloaded. One that
// refuses connections before it has answered once ([Reads]) is not there.
func Temporary(err error) bool {
	var again *againError
	var status apierrors.APIStatus
	var unreached *unreachedError
	switch {
	case err == nil, errors.As(err, &unreached):
		return false
	case errors.As(err, &again):
		return true
	case errors.As(err, &status):
		return passing(status.Status())
	}
	return broken(err) || Disconnected(err) || utilnet.IsTimeout(err) || unreachable(err)
}

// Disconnected is true for the error of a connection that ended before the whole
// response: the server was ended, or a load balancer removed it. Of HTTP/2 only
// some errors have a type (golang.org/x/net/http2, errors.go and transport.go).
func Disconnected(err error) bool {
	if err == nil {
		return false
	}
	_, goingAway := errors.AsType[http2.GoAwayError](err)
	text := err.Error()
	return goingAway || strings.Contains(text, "http2: client conn") || strings.Contains(text, "http: server closed idle connection") ||
		errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsConnectionReset(err) || errors.Is(err, syscall.EPIPE)
}

// passing is true for a status of the API server, or of a proxy before it, that is about the server and not about
// the request. A 500 without a reason is an error of etcd (k8s.io/apiserver
// pkg/endpoints/handlers/responsewriters, ErrorToAPIStatus); with the reason InternalError, it may come from a
// webhook.
func passing(status metav1.Status) bool {
	switch status.Code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return status.Reason == metav1.StatusReasonUnknown || status.Reason == metav1.StatusReasonServerTimeout
	}
	return false
}

// broken is true for a request that the API server aborted after a minute, such
// as one that deletes thousands of objects (k8s.io/apiserver
// pkg/server/filters/timeout.go).
func broken(err error) bool {
	var stream http2.StreamError
	return errors.As(err, &stream) && stream.Code == http2.ErrCodeInternal
}

// unreachable is true while the server does not listen, or the network or its name service is down.
func unreachable(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op != "remote error" // a TLS alert comes from a server that was reached
}

// spare is used for one body after another: a page of a list has megabytes, and a list many pages. A sync.Pool
// would often have none, since it has one for each processor.
var spare atomic.Pointer[bytes.Buffer] //nolint:gochecknoglobals // a cache that all requests share

// maxSpare bounds the memory that is kept for the next body, in bytes: the size of a page of 500 pods.
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

const (
	// maxReadTime bounds the attempts of one read.
	maxReadTime = 2 * time.Minute
	// maxStatus bounds the part of a response that is read to find out whether it is temporary, in bytes.
	maxStatus = 64 << 10
	// maxBody bounds the part of a body that is read before the response is returned,
	// in bytes: a page of 500 large objects. Client-go reads bodies into memory too.
	maxBody = 16 << 20
)

// Reads makes a transport that repeats reads as [Do] does, for client-go's
// rest.Config.Wrap: no object may be unknown because it was read in the second in
// which an API server restarted. A read is repeated for at most two minutes, and
// only after the server has responded once: before that, its address may be
// wrong. A response that ends within the first 16 MiB of its body is a failed read.
// Watches are not repeated.
func Reads(next http.RoundTripper) http.RoundTripper { return &retryTransport{next: next} }

type retryTransport struct {
	next http.RoundTripper
	// reached is true after the first response.
	reached atomic.Bool
}

func (r *retryTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !isRead(request) {
		return r.send(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), maxReadTime)
	defer cancel()
	for {
		response, err := r.read(request)
		if !r.reached.Load() || !Temporary(err) && !isPassing(response) || !pause(ctx, interval) {
			return response, err
		}
		if response != nil {
			if err := response.Body.Close(); err != nil {
				return nil, err
			}
		}
	}
}

// read sends a request, and reads the body of its response.
func (r *retryTransport) read(request *http.Request) (*http.Response, error) {
	response, err := r.send(request)
	if err != nil {
		return nil, err
	}
	if _, err := Ahead(response, maxBody); Temporary(err) {
		_ = response.Body.Close() // its connection has ended
		return nil, err
	}
	return response, nil
}

func (r *retryTransport) send(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil {
		r.reached.Store(true)
	} else if _, unknown := errors.AsType[*net.DNSError](err); !r.reached.Load() && (unknown || errors.Is(err, syscall.ECONNREFUSED)) {
		err = &unreachedError{err}
	}
	return response, err
}

// unreachedError is the error of a server that has never answered, and of which repeating says no more: nothing
// listens at its address, or its name is unknown.
type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

// isRead is true for a request without effect that ends by itself.
func isRead(request *http.Request) bool {
	query, upgraded := request.URL.Query(), request.Header.Get("Upgrade") != ""
	return request.Method == http.MethodGet && query.Get("watch") == "" && query.Get("follow") == "" && !upgraded
}

// isPassing is true for a response with a temporary status. Client-go itself repeats requests that were throttled.
func isPassing(response *http.Response) bool {
	if response == nil || response.StatusCode < http.StatusInternalServerError {
		return false
	}
	body, err := Ahead(response, maxStatus)
	if err != nil {
		return Temporary(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil { // not a status of an API server
		status.Reason = metav1.StatusReasonInternalError
	}
	status.Code = int32(response.StatusCode) //nolint:gosec // an HTTP status has three digits
	return passing(status)
}

// pause waits before the next attempt. It is false when ctx ends before.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
