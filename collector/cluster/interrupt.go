package cluster

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"
)

// interruptible makes the HTTP client of a configuration. Its requests end with their
// context: client-go waits for the credential plugin of a kubeconfig whatever the context.
func interruptible(config *rest.Config) (*http.Client, error) {
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client := *made // it can be http.DefaultClient
	if client.Transport == nil {
		client.Transport = http.DefaultTransport //nolint:forbidigo // where client-go chose it, such as for http without options
	}
	client.Transport = interruptibleTransport{next: client.Transport}
	return &client, nil
}

type interruptibleTransport struct{ next http.RoundTripper }

// WrappedRoundTripper implements the interface of k8s.io/apimachinery/pkg/util/net, by which
// client-go finds the transport that has the connections.
func (t interruptibleTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t interruptibleTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	type outcome struct {
		response *http.Response
		err      error
	}
	done := make(chan outcome)
	go func() {
		response, err := t.next.RoundTrip(request)
		select {
		case done <- outcome{response, err}:
		case <-request.Context().Done():
			if err == nil {
				_ = response.Body.Close() // nothing reads it
			}
		}
	}()
	select {
	case ended := <-done:
		return ended.response, ended.err
	case <-request.Context().Done():
		return nil, context.Cause(request.Context())
	}
}
