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
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

const interval = time.Second

// Do makes a request, and repeats it until ctx is done while its error is
// [Temporary]. It returns the last error, but that of the attempt before where the end of ctx
// ended the last one: it says what the attempts waited for.
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

// passing is true for a status of the API server, or a proxy before it, that is
// about the server and not about the request. A 500 without a reason is an error
// of etcd (k8s.io/apiserver pkg/endpoints/handlers/responsewriters,
// ErrorToAPIStatus); one with the reason InternalError may be that of a webhook.
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
