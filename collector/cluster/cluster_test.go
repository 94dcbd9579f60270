package cluster_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/test/transport"
)

// TestConfig has what other clients of the cluster get: no limit of requests by time, of which client-go has five a
// second by default, and none of the given configuration is changed.
func TestConfig(t *testing.T) {
	given := &rest.Config{Host: "https://127.0.0.1:1"}
	reached, err := cluster.Connect(given, "test")
	if err != nil {
		t.Fatal(err)
	}
	if got := reached.Config(); got.QPS >= 0 || got.UserAgent != "test" || given.QPS != 0 || given.UserAgent != "" {
		t.Errorf("got QPS %v and agent %q; the given one has %v and %q", got.QPS, got.UserAgent, given.QPS, given.UserAgent)
	}
}

// TestRequestEndsWithItsContext has a credential plugin that hangs.
func TestRequestEndsWithItsContext(t *testing.T) {
	directory := t.TempDir()
	started, end := filepath.Join(directory, "started"), filepath.Join(directory, "end")
	if err := errors.Join(syscall.Mkfifo(started, 0o600), syscall.Mkfifo(end, 0o600)); err != nil {
		t.Fatal(err)
	}
	reached, err := cluster.Connect(&rest.Config{Host: "https://127.0.0.1:1", ExecProvider: &api.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode,
		Command: "sh", Args: []string{"-c", "echo > " + started + "; cat " + end},
	}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := reached.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		answered <- err
	}()
	if _, err := os.ReadFile(started); err != nil { // until the plugin has written
		t.Fatal(err)
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("List returned %v, want %v", err, context.Canceled)
	}
	plugin, err := os.OpenFile(end, os.O_WRONLY, 0) // when the plugin reads
	if err != nil {
		t.Fatal(err)
	}
	if err := plugin.Close(); err != nil {
		t.Error(err)
	}
}

// TestNotice has a server that does not answer.
func TestNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := transport.Func(func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		})
		reached, err := cluster.Connect(&rest.Config{Host: "https://api.example.com:6443", Transport: silent}, "test")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var notices []string
		ctx = cluster.WithNotice(ctx, func(text string) { notices = append(notices, text) })
		if _, err := reached.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("the request has an answer")
		}
		want := "waiting for the API server api.example.com:6443, which has not answered GET /api/v1/nodes"
		if len(notices) != 1 || notices[0] != want {
			t.Errorf("got %q, want %q", notices, want)
		}
	})
}

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

// field is a message with one field, which has a message or a text.
func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// object is one as Kubernetes writes it: as the raw content of a runtime.Unknown.
func object(apiVersion, kind string, content []byte) []byte {
	return slices.Concat([]byte("k8s\x00"), field(1, slices.Concat(field(1, []byte(apiVersion)), field(2, []byte(kind)))), field(2, content))
}

// large is a page of pods with 20 containers of 20 variables each.
func large() *corev1.PodList {
	container := corev1.Container{Name: "container", Image: "quay.io/example/image@sha256:0123456789", Args: []string{"--a", "--b"}}
	for i := range 20 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value of the variable"})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "volume", MountPath: "/path"})
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "namespace", Labels: map[string]string{"app": "a"}}}
	for range 20 {
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return &corev1.PodList{Items: slices.Repeat([]corev1.Pod{pod}, 500)}
}

func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

func TestAttacksByResponses(t *testing.T) {
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
			if request.URL.Query().Get("limit") == "500" { // which it ignores: 1.4 MB
				fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[`+strings.Repeat("{},", 480_000)+`{}]}`)
				return
			}
			many(w, `{"kind":"PodList","apiVersion":"v1","items":[`, "{},", `{}]}`)
		case "/api/v1/secrets":
			many(w, `{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"ownerReferences":[`, "null,", `null]}}]}`)
		case "/api/v1/configmaps":
			many(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"data":`, `[`, ``)
		case "/api/v1/limitranges": // as an upgrade has it, without end
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n")
				write(connection, 1<<20)
			}
		case "/api/v1/resourcequotas": // the error of a watch
			w.WriteHeader(http.StatusInternalServerError)
			write(w, 1<<20)
		case "/api/v1/podtemplates": // the event of a watch
			many(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","spec":{"containers":[`, "{},", `{}]}}}`)
		case "/api/v1/bindings":
			w.Header().Set("Content-Type", "application/json;stream=watch")
			fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`)
		case "/api/v1/componentstatuses": // the event of a watch, with messages of two bytes
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
			event := object("v1", "WatchEvent", field(2, field(1, object("v1", "Pod", field(2, bytes.Repeat([]byte{2<<3 | 2, 0}, 1_000_000))))))
			_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...))
		case "/api/v1/endpoints":
			w.Header().Set("Content-Type", "application/yaml")
		case "/api/v1/persistentvolumes": // messages of two bytes
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			_, _ = w.Write(object("v1", "PersistentVolumeList", bytes.Repeat([]byte{2<<3 | 2, 0}, 480_000)))
		case "/api/v1/persistentvolumeclaims": // of six bytes, each within the one before
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			nested := []byte{}
			for range 2000 {
				nested = field(2, nested)
			}
			_, _ = w.Write(object("", "", nested))
		case "/api/v1/replicationcontrollers": // a page of objects that are large
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			page, err := large().Marshal()
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(object("v1", "PodList", page))
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
	const tooMany = "a response that would expand to more than 512 MiB"
	for name, tc := range map[string]struct{ reason, resource, sent string }{
		"Objects":  {"elements of an array that need three bytes each", "pods", tooMany},
		"Nulls":    {"elements without a brace", "secrets", tooMany},
		"Depth":    {"arrays in arrays", "configmaps", tooMany},
		"Encoding": {"aliases expand without bound", "endpoints", "a response of the type application/yaml, which was not requested"},
		"Messages": {"messages without content", "persistentvolumes", tooMany},
		"Nested":   {"messages in messages", "persistentvolumeclaims", tooMany},
		"Upgrade":  {"an upgrade, which was not requested", "limitranges", "101 Switching Protocols, which was not requested"},
		"Large":    {"a page of large objects of a real cluster", "replicationcontrollers", ""},
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
	t.Run("Limit", func(t *testing.T) {
		_, err := connect().Kubernetes.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 500})
		tooMuch(t, err, tooMany)
	})
	for name, tc := range map[string]struct{ reason, resource, sent string }{
		"Error":    {"client-go reads the error of a watch", "resourcequotas", "more than 64 MiB in one response"},
		"Event":    {"elements in an event", "podtemplates", tooMany},
		"Messages": {"messages in an event", "componentstatuses", tooMany},
		"Watched":  {"an event of a real cluster", "bindings", ""},
	} {
		t.Run("Watch"+name, func(t *testing.T) {
			reached := connect()
			watched, err := reached.Kubernetes.CoreV1().RESTClient().Get().Resource(tc.resource).VersionedParams(&metav1.ListOptions{Watch: true},
				scheme.ParameterCodec).Watch(t.Context())
			if err == nil {
				event := <-watched.ResultChan()
				watched.Stop()
				if _, ok := event.Object.(*corev1.Pod); ok != (tc.sent == "") {
					t.Errorf("%s: got %+v", tc.reason, event)
				}
			}
			if tc.sent != "" {
				tooMuch(t, reached.Exceeded(), tc.sent)
			}
		})
	}
	t.Run("Together", func(t *testing.T) {
		reached := connect()
		reading, done := cluster.Reading(t.Context())
		var err error
		responses := 0
		for err == nil && responses < 100 {
			_, err = reached.Kubernetes.Discovery().RESTClient().Get().AbsPath("/large").DoRaw(reading)
			done()
			responses++
		}
		tooMuch(t, err, "more than 2048 MiB in 5m0s")
		if responses != 33 {
			t.Errorf("%d responses of 63 MiB, want 33", responses)
		}
		if !errors.Is(reached.Exceeded(), err) {
			t.Errorf("exceeded by %v, want %v", reached.Exceeded(), err)
		}
		if _, err := reached.Metadata.Resource(namespaces()).List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("another client of the same cluster reads more")
		}
		if _, err := connect().Kubernetes.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("another cluster: %v", err)
		}
	})
}
