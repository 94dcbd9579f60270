// Package transport answers: how does a test see or answer the requests of a client? [Func] is
// an http.RoundTripper that is a function.
package transport

import "net/http"

// Func implements http.RoundTripper.
type Func func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f Func) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
