package retry

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

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
