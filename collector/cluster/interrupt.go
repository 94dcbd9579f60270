package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

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
	slow := time.NewTimer(slowAnswer)
	defer slow.Stop()
	for {
		select {
		case ended := <-done:
			return ended.response, ended.err
		case <-slow.C:
			if notify, ok := request.Context().Value(noticeKey{}).(func(string)); ok {
				notify(fmt.Sprintf("waiting for the API server %s, which has not answered %s %s", request.URL.Host, request.Method, request.URL.Path))
			}
		case <-request.Context().Done():
			return nil, context.Cause(request.Context())
		}
	}
}

// slowAnswer is the time after which a request is said to wait.
const slowAnswer = 10 * time.Second

type noticeKey struct{}

// WithNotice is a context whose requests call notify, with a sentence about what they wait for, after ten seconds
// without an answer.
func WithNotice(ctx context.Context, notify func(string)) context.Context {
	return context.WithValue(ctx, noticeKey{}, notify)
}
