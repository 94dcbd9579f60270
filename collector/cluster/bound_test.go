package cluster_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
)

// zeros are 64 kB of spaces, which JSON ignores.
var zeros = strings.Repeat(" ", 64<<10)

// write writes this many MiB, until the client does not read any more.
func write(w io.Writer, mebibytes int) {
	for range mebibytes * 16 {
		if _, err := io.WriteString(w, zeros); err != nil {
			return
		}
	}
}

// many writes a text with ten million of these elements, until the client does not read any more.
func many(w io.Writer, start, element, end string) {
	fmt.Fprint(w, start)
	for range 1000 {
		if _, err := io.WriteString(w, strings.Repeat(element, 10_000)); err != nil {
			return
		}
	}
	fmt.Fprint(w, end)
}

func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

func TestResponsesAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch request.URL.Path {
		case "/api/v1/nodes": // without end
			write(w, 1<<20)
		case "/api/v1/services": // a gigabyte of which the network sees a megabyte
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			write(packed, 1<<10)
		case "/api/v1/pods": // each would be a pod of a kilobyte
			many(w, `{"kind":"PodList","apiVersion":"v1","items":[`, "{},", `{}]}`)
		case "/api/v1/secrets":
			many(w, `{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"ownerReferences":[`, "null,", `null]}}]}`)
		case "/api/v1/configmaps":
			many(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"data":`, `[`, ``)
		case "/api/v1/endpoints":
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		case "/api/v1/events": // as many as are read, with texts that look like more
			fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","items":[`+strings.Repeat(`{"message":"[{},\"{},"},`, 499)+`{}]}`)
		case "/large":
			write(w, 63)
		default:
			fmt.Fprint(w, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		}
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	connect := func() *cluster.Cluster {
		reached, err := cluster.Connect(&rest.Config{Host: server.URL}, "test")
		if err != nil {
			t.Fatal(err)
		}
		return reached
	}
	tooMuch := func(t *testing.T, err error, sent string) {
		t.Helper()
		known, ok := errors.AsType[*cluster.TooMuchError](err)
		if want := "the API server " + host + " has sent " + sent + ", so its response is not read"; !ok || known.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	t.Run("Endless", func(t *testing.T) {
		_, err := connect().Kubernetes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		tooMuch(t, err, "more than 64 MiB in one response")
	})
	t.Run("Compressed", func(t *testing.T) {
		_, err := connect().Kubernetes.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
		tooMuch(t, err, "more than 64 MiB in one response")
	})
	const tooMany = "a response with more than 1000000 objects and elements, or 1000 levels"
	for name, tc := range map[string]struct{ reason, resource, sent string }{
		"Objects":  {"elements of an array that need three bytes each", "pods", tooMany},
		"Nulls":    {"elements without a brace", "secrets", tooMany},
		"Depth":    {"arrays in arrays", "configmaps", tooMany},
		"Encoding": {"elements of two bytes each, which cannot be counted", "endpoints", "a response of the type application/vnd.kubernetes.protobuf, which was not requested"},
		"Texts":    {"texts have no elements", "events", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := connect().Kubernetes.CoreV1().RESTClient().Get().Resource(tc.resource).Do(t.Context()).Error()
			if tc.sent != "" {
				tooMuch(t, err, tc.sent)
			} else if err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	t.Run("Together", func(t *testing.T) {
		reached := connect()
		var err error
		responses := 0
		for err == nil && responses < 100 {
			_, err = reached.Kubernetes.Discovery().RESTClient().Get().AbsPath("/large").DoRaw(t.Context())
			responses++
		}
		tooMuch(t, err, "more than 1024 MiB in 5m0s")
		if responses != 17 {
			t.Errorf("%d responses of 63 MiB, want 17", responses)
		}
		if _, err := reached.Metadata.Resource(namespaces()).List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("another client of the same cluster reads more")
		}
		if _, err := connect().Kubernetes.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("another cluster: %v", err)
		}
	})
}
