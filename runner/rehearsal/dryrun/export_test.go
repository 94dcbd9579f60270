package dryrun

import (
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
)

// The limits.
const (
	MaxRequests = maxRequests
	MaxAtOnce   = maxAtOnce
)

// Guard is the innermost transport before next, with limits of its own.
func Guard(next http.RoundTripper, server *url.URL, as Identity) http.RoundTripper {
	return newGuard(next, server, as, &limits{slots: make(chan struct{}, maxAtOnce)})
}

// HTTP is the HTTP client of a Client, with all of its transports.
func (c *Client) HTTP() *http.Client {
	client, ok := c.rest.(*rest.RESTClient)
	if !ok {
		return nil
	}
	return client.Client
}
