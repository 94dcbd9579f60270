package checktest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Answer is what an API server says to a request.
type Answer func(*http.Request) (code int, body []byte)

// NotServed is the answer of one that does not have the API.
func NotServed(*http.Request) (code int, body []byte) {
	return http.StatusNotFound, []byte("404 page not found\n")
}

// Says is the answer of one that always says the same.
func Says(body string) Answer {
	return func(*http.Request) (int, []byte) { return http.StatusOK, []byte(body) }
}

// Pages is the answer of one that has these objects: more of them than a test
// can create, or what a real one would not take or let stand. It has to be
// asked for them in pages.
func Pages[T any](t *testing.T, apiVersion, kind string, objects []T) Answer {
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

// Answering is the server, but for what it says on these paths.
func (s Server) Answering(paths map[string]Answer) Server {
	config := rest.CopyConfig(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return detour{paths: paths, next: next} })
	return Server{config: config}
}

type detour struct {
	paths map[string]Answer
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d detour) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, ok := d.paths[request.URL.Path]
	if !ok {
		return d.next.RoundTrip(request)
	}
	code, body := answer(request)
	kind := "text/plain"
	if bytes.HasPrefix(body, []byte("{")) {
		kind = "application/json"
	}
	return &http.Response{
		StatusCode: code, Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// Serve has the server serve the resource that a file defines, until all tests
// have ended.
func (s Server) Serve(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // of the test's own
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	_, err = clientset.NewForConfigOrDie(s.config).ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	objects := dynamic.NewForConfigOrDie(s.config).Resource(schema.GroupVersionResource{
		Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural,
	})
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := objects.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the server does not serve %s: %v", crd.Name, err)
	}
}
