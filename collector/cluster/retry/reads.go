package retry

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	status.Code = int32(response.StatusCode) //nolint:gosec // three digits
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
