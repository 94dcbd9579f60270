package retry

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// patience bounds how long one read is insisted on.
	patience = 2 * time.Minute
	// statusBytes bounds what is read of an answer to find out what it means.
	statusBytes = 64 << 10
)

// Reads makes a transport insist on reads, as On does with everything: for
// client-go's rest.Config.Wrap. Nothing that is read may be unknown because it
// was asked for in the second in which an API server restarted. A read is made
// again for two minutes, unless its context ends before. Watches are left to
// those who watch, and so is an API server that has not answered yet at all: its
// address may be wrong.
func Reads(next http.RoundTripper) http.RoundTripper { return &reads{next: next} }

type reads struct {
	next http.RoundTripper
	// reached is true once there was an answer.
	reached atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (r *reads) RoundTrip(request *http.Request) (*http.Response, error) {
	if !isRead(request) {
		return r.try(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), patience)
	defer cancel()
	for {
		answer, err := r.try(request)
		if !r.reached.Load() || !Temporary(err) && !isPassing(answer) || !pause(ctx) {
			return answer, err
		}
		if answer != nil {
			if err := answer.Body.Close(); err != nil {
				return nil, err
			}
		}
	}
}

func (r *reads) try(request *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(request)
	if err == nil {
		r.reached.Store(true)
	}
	return answer, err
}

// isRead is true for what can be asked twice.
func isRead(request *http.Request) bool {
	query := request.URL.Query()
	return request.Method == http.MethodGet && query.Get("watch") == "" && query.Get("follow") == ""
}

// isPassing reads the status out of an answer, and leaves the answer as it was.
// That there is too much to do, client-go itself waits for.
func isPassing(answer *http.Response) bool {
	if answer == nil || answer.StatusCode < http.StatusInternalServerError {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, statusBytes))
	rest := answer.Body
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if err != nil {
		return Temporary(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil { // it is not an API server that says so
		status.Reason = metav1.StatusReasonInternalError
	}
	status.Code = int32(answer.StatusCode) //nolint:gosec // three digits
	return passing(status)
}

// pause waits before the next try. False means that there is no time for it.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
