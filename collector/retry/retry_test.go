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

	"github.com/openshift/update-preflight/collector/retry"
)

func answered(code int32, reason metav1.StatusReason) error {
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
		"Nothing":          {reason: "it was answered", err: nil},
		"TooManyRequests":  {reason: "there is no time for it now", err: apierrors.NewTooManyRequests("wait", 1), want: true},
		"Unavailable":      {reason: "an API server that starts", err: apierrors.NewServiceUnavailable("starting"), want: true},
		"Timeout":          {reason: "an API server that waits for etcd", err: apierrors.NewTimeoutError("slow", 1), want: true},
		"ServerTimeout":    {reason: "an API server that waits for etcd", err: apierrors.NewServerTimeout(jobs, "get", 1), want: true},
		"BadGateway":       {reason: "a load balancer without a backend", err: answered(http.StatusBadGateway, metav1.StatusReasonInternalError), want: true},
		"Etcd":             {reason: "errors of etcd come through without a reason", err: answered(http.StatusInternalServerError, metav1.StatusReasonUnknown), want: true},
		"Webhook":          {reason: "a webhook may fail for good", err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"Forbidden":        {reason: "it was considered", err: apierrors.NewForbidden(jobs, "a", errors.New("no"))},
		"Conflict":         {reason: "the same request would be answered alike", err: apierrors.NewConflict(jobs, "a", errors.New("no"))},
		"Refused":          {reason: "the server does not listen yet", err: dialed(syscall.ECONNREFUSED), want: true},
		"Reset":            {reason: "it has just ended", err: dialed(syscall.ECONNRESET), want: true},
		"NoRoute":          {reason: "the network is gone for now", err: dialed(syscall.EHOSTUNREACH), want: true},
		"NoName":           {reason: "so are its names", err: dialed(&net.DNSError{Err: "no such host", Name: "api"}), want: true},
		"NotTrusted":       {reason: "it was reached, and refuses", err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}},
		"EOF":              {reason: "it ends without an answer", err: &url.Error{Op: "Get", URL: "x", Err: io.EOF}, want: true},
		"CutResponse":      {reason: "it ends in the middle of the response (client-go rest/request.go)", err: fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", io.ErrUnexpectedEOF), want: true},
		"Marked":           {reason: "the caller has marked it", err: fmt.Errorf("could not: %w", retry.Mark(errors.New("gone"))), want: true},
		"SomethingElse":    {reason: "nothing is known of it", err: errors.New("x509: certificate signed by unknown authority")},
		"DeadlineExceeded": {reason: "one try may have a time of its own", err: context.DeadlineExceeded, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retry.Temporary(tc.err); got != tc.want {
				t.Errorf("%s: %v for %v", tc.reason, got, tc.err)
			}
		})
	}
}

func TestUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		got, err := retry.Get(t.Context(), func(context.Context) (int, error) {
			if tries++; tries < 4 {
				return 0, apierrors.NewServiceUnavailable("starting")
			}
			return tries, nil
		})
		if got != 4 || err != nil {
			t.Errorf("got %d, %v, want the fourth answer", got, err)
		}
	})
}

func TestAnAnswerIsFinal(t *testing.T) {
	no, tries := errors.New("no"), 0
	err := retry.Do(t.Context(), func(context.Context) error { tries++; return no })
	if !errors.Is(err, no) || tries != 1 {
		t.Errorf("got %v after %d tries, want the first answer", err, tries)
	}
}

func TestUntilTheContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("there was one, which has just gone")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tries := 0
		err := retry.Do(ctx, func(context.Context) error { tries++; return retry.Mark(gone) })
		if !errors.Is(err, gone) || tries < 2 {
			t.Errorf("got %v after %d tries, want what stood in the way to the last", err, tries)
		}
	})
}

func TestNotOnceWhenTheContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := retry.Do(ctx, func(ctx context.Context) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
}
