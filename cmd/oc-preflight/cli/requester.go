package cli

import (
	"context"

	"github.com/openshift/update-preflight/collector/access"
)

// Requester is who makes the requests of a command, and where.
type Requester struct {
	// User is the name that the API server gives; empty where it is unknown.
	User string
	// Server is the URL of the API server; empty where it is unknown.
	Server string
}

// RequesterOf asks the API server which user the flags of a client select. Nothing is known of an archive.
func RequesterOf(ctx context.Context, c *Client) Requester {
	if c.Archived() {
		return Requester{}
	}
	reached, err := c.Connect()
	if err != nil {
		return Requester{}
	}
	return Requester{User: access.User(ctx, reached.Kubernetes), Server: reached.Config().Host}
}
