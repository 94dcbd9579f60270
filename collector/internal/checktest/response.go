package checktest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
)

// Response is the response of an API server to a request.
type Response func(*http.Request) (code int, body []byte)

// NotServed is the response of a server that does not have the API.
func NotServed(*http.Request) (code int, body []byte) {
	return http.StatusNotFound, []byte("404 page not found\n")
}

// Body is the response 200 with this body.
func Body(body string) Response {
	return func(*http.Request) (int, []byte) { return http.StatusOK, []byte(body) }
}

// Pages is the response of a server with these objects: more of them than a test
// can create, or some that a real server would reject or change. It fails the test
// for a list that is not read in pages.
func Pages[T any](t *testing.T, apiVersion, kind string, objects []T) Response {
	t.Helper()
	return func(request *http.Request) (int, []byte) {
		from, _ := strconv.Atoi(request.URL.Query().Get("continue"))
		limit, err := strconv.Atoi(request.URL.Query().Get("limit"))
		if err != nil || limit > 500 {
			t.Errorf("%s is not read in pages", request.URL)
			limit = len(objects)
		}
		to, next := min(from+limit, len(objects)), ""
		if to < len(objects) {
			next = strconv.Itoa(to)
		}
		body, err := json.Marshal(map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]string{"continue": next}, "items": objects[from:to],
		})
		if err != nil {
			t.Error(err)
		}
		return http.StatusOK, body
	}
}

// Responding is the server with other responses on these paths.
func (s Server) Responding(paths map[string]Response) Server {
	config := rest.CopyConfig(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return override{paths: paths, next: next} })
	return Server{config: config, madeUp: true}
}

type override struct {
	paths map[string]Response
	next  http.RoundTripper
}

func (o override) RoundTrip(request *http.Request) (*http.Response, error) {
	respond, ok := o.paths[request.URL.Path]
	if !ok {
		return o.next.RoundTrip(request)
	}
	code, body := respond(request)
	contentType := "text/plain"
	if bytes.HasPrefix(body, []byte("{")) {
		contentType = "application/json"
	}
	return &http.Response{
		StatusCode: code, Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}
