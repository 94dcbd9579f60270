package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/cluster/retry"
)

func statusError(code int32, reason metav1.StatusReason) error {
	return fmt.Errorf("could not: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}})
}

func dialed(err error) error {
	return &url.Error{Op: "Get", URL: "https://api:6443", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
}

func TestTemporary(t *testing.T) {
	jobs := schema.GroupResource{Resource: "jobs"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Nothing":          {reason: "no error", err: nil},
		"TooManyRequests":  {reason: "the API server is overloaded", err: apierrors.NewTooManyRequests("wait", 1), want: true},
		"Unavailable":      {reason: "an API server that starts", err: apierrors.NewServiceUnavailable("starting"), want: true},
		"Timeout":          {reason: "an API server that waits for etcd", err: apierrors.NewTimeoutError("slow", 1), want: true},
		"ServerTimeout":    {reason: "an API server that waits for etcd", err: apierrors.NewServerTimeout(jobs, "get", 1), want: true},
		"BadGateway":       {reason: "a load balancer without a backend", err: statusError(http.StatusBadGateway, metav1.StatusReasonInternalError), want: true},
		"Etcd":             {reason: "errors of etcd have no reason", err: statusError(http.StatusInternalServerError, metav1.StatusReasonUnknown), want: true},
		"Webhook":          {reason: "a webhook may fail permanently", err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"Forbidden":        {reason: "the request was rejected", err: apierrors.NewForbidden(jobs, "a", errors.New("no"))},
		"Conflict":         {reason: "the same request would be rejected again", err: apierrors.NewConflict(jobs, "a", errors.New("no"))},
		"Refused":          {reason: "the server does not listen yet", err: dialed(syscall.ECONNREFUSED), want: true},
		"Reset":            {reason: "the server has just ended", err: dialed(syscall.ECONNRESET), want: true},
		"NoRoute":          {reason: "the network is unavailable", err: dialed(syscall.EHOSTUNREACH), want: true},
		"NoName":           {reason: "DNS is unavailable", err: dialed(&net.DNSError{Err: "no such host", Name: "api"}), want: true},
		"NotTrusted":       {reason: "the server rejects the connection", err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}},
		"EOF":              {reason: "the server ends without a response", err: &url.Error{Op: "Get", URL: "x", Err: io.EOF}, want: true},
		"CutResponse":      {reason: "the server ends within the response (client-go rest/request.go)", err: fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", io.ErrUnexpectedEOF), want: true},
		"Marked":           {reason: "the caller has marked it", err: fmt.Errorf("could not: %w", retry.Mark(errors.New("gone"))), want: true},
		"SomethingElse":    {reason: "the error is unknown", err: errors.New("x509: certificate signed by unknown authority")},
		"DeadlineExceeded": {reason: "a single attempt may have its own timeout", err: context.DeadlineExceeded, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retry.Temporary(tc.err); got != tc.want {
				t.Errorf("%s: %v for %v", tc.reason, got, tc.err)
			}
		})
	}
}

func TestGetRetriesUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		got, err := retry.Get(t.Context(), func(context.Context) (int, error) {
			if attempts++; attempts < 4 {
				return 0, apierrors.NewServiceUnavailable("starting")
			}
			return attempts, nil
		})
		if got != 4 || err != nil {
			t.Errorf("got %d, %v, want the result of the fourth attempt", got, err)
		}
	})
}

func TestPermanentErrorIsNotRetried(t *testing.T) {
	no, attempts := errors.New("no"), 0
	err := retry.Do(t.Context(), func(context.Context) error { attempts++; return no })
	if !errors.Is(err, no) || attempts != 1 {
		t.Errorf("got %v after %d attempts, want the first error", err, attempts)
	}
}

func TestDoRetriesUntilContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the server has just ended")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		attempts := 0
		err := retry.Do(ctx, func(context.Context) error { attempts++; return retry.Mark(gone) })
		if !errors.Is(err, gone) || attempts < 2 {
			t.Errorf("got %v after %d attempts, want the last error", err, attempts)
		}
	})
}

// The end of the context during an attempt does not hide why the attempts before failed.
func TestDoReturnsTheCauseOfItsRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		attempts := 0
		err := retry.Do(ctx, func(ctx context.Context) error {
			if attempts++; attempts == 1 {
				return retry.Mark(errors.New("connection refused"))
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil || err.Error() != "connection refused" || attempts != 2 {
			t.Errorf("got %v after %d attempts", err, attempts)
		}
	})
}

func TestDoWithDoneContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := retry.Do(ctx, func(ctx context.Context) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
