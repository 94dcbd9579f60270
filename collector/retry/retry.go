// Package retry answers: when is a request worth making again?
//
// A preflight is run just before maintenance, when API servers and etcd
// restart, load balancers have nobody to ask, and laptops change networks. None
// of that says anything about the request, so it is made again until it is
// answered or its time is over. An answer that was considered, such as
// "forbidden" or "already exists", is final.
//
// A request that is lost may have been served: what creates must take what it
// finds for its own work, and what updates must look before it does so again.
package retry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// interval is the time between two tries of a request.
const interval = time.Second

// Do makes a request, again and again until ctx is done, while the API server
// cannot be reached or has no time. It returns the last answer there was.
func Do(ctx context.Context, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		last = request(ctx)
		return !Temporary(last), nil
	})
	if last != nil {
		return last
	}
	return err
}

// Get is Do for requests that are answered with a value.
func Get[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	var answer T
	err := Do(ctx, func(ctx context.Context) (err error) {
		answer, err = request(ctx)
		return err
	})
	return answer, err
}

// Mark marks an error that has Do make the request once more, whatever it is.
func Mark(err error) error { return &againError{err} }

type againError struct{ error }

// Unwrap is what stood in the way.
func (e *againError) Unwrap() error { return e.error }

// Temporary is true for the errors of an API server that restarts, is cut off or is
// overloaded.
func Temporary(err error) bool {
	var again *againError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return false
	case errors.As(err, &again):
		return true
	case errors.As(err, &status):
		return passing(status.Status())
	}
	return broken(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsTimeout(err) || unreachable(err)
}

// passing is true for what an API server, or a proxy before it, says of itself
// and not of the request. A 500 without a reason is one of etcd's errors as they
// come through (k8s.io/apiserver pkg/endpoints/handlers/responsewriters,
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

// broken is true for a request that the API server broke off because it was not
// done after a minute, such as one to delete thousands (k8s.io/apiserver
// pkg/server/filters/timeout.go).
func broken(err error) bool {
	var stream http2.StreamError
	return errors.As(err, &stream) && stream.Code == http2.ErrCodeInternal
}

// unreachable is true while there is no way to the API server: the network or
// its names are gone for now.
func unreachable(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op != "remote error" // a TLS alert says that it was reached
}
