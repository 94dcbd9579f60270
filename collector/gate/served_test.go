package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/internal/checktest"
)

// infrastructure is what makes a cluster OpenShift.
func infrastructure(topology configv1.TopologyMode) *configv1.Infrastructure {
	return &configv1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology: topology, InfrastructureTopology: configv1.HighlyAvailableTopologyMode, CPUPartitioning: configv1.CPUPartitioningNone,
		},
	}
}

// desiring is the ClusterVersion of a cluster that is at a version, or on its
// way to it.
func desiring(version string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
		Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: version, Image: "quay.io/x"}, VersionHash: "0", AvailableUpdates: []configv1.Release{},
		},
	}
}

// answer is what an API server says to a request.
type answer func(*http.Request) (code int, body []byte)

// notServed is the answer of one that does not have the API.
func notServed(*http.Request) (code int, body []byte) {
	return http.StatusNotFound, []byte("404 page not found\n")
}

// says is the answer of one that always says the same.
func says(body string) answer {
	return func(*http.Request) (int, []byte) { return http.StatusOK, []byte(body) }
}

// pages is the answer of one that has these objects.
func pages[T any](t *testing.T, apiVersion, kind string, objects []T) answer {
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

// answering is the server, but for what it says on these paths.
func answering(paths map[string]answer) checktest.Server {
	changed := rest.CopyConfig(config)
	changed.Wrap(func(next http.RoundTripper) http.RoundTripper { return detour{paths: paths, next: next} })
	return checktest.On(changed)
}

type detour struct {
	paths map[string]answer
	next  http.RoundTripper
}

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

// serveOLM has the server serve ClusterServiceVersions, from the first call on.
func serveOLM(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "clusterserviceversions.crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	definitions := clientset.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	_, err = definitions.Create(t.Context(), crd, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	operators := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{
		Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural,
	})
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := operators.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the server does not serve ClusterServiceVersions: %v", err)
	}
}
