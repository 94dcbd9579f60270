package cluster_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
)

// BenchmarkResponse reads a response of 16 MiB: most of the time is for the transport.
func BenchmarkResponse(b *testing.B) {
	one := `{"metadata":{"name":"a","labels":{"app":"b","tier":"c"}},"spec":{"containers":[{"name":"d","image":"quay.io/e@sha256:0123"}]}},`
	text := `{"items":[` + strings.Repeat(one, 48<<20/len(one)/3) + `{}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	b.Cleanup(server.Close)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		reached, err := cluster.Connect(&rest.Config{Host: server.URL}, "test")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := reached.Kubernetes.Discovery().RESTClient().Get().AbsPath("/x").DoRaw(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
