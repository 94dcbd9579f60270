package image_test

import (
	"context"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/registry"
)

const (
	sourceRepository = "/openshift-release-dev/ocp-v4.0-art-dev"
	mirrorRepository = "/ocp/release"
	layerBytes       = 1000
)

// server is a registry that counts its requests. Tests can replace its responses.
type server struct {
	host string

	mutex    sync.Mutex
	requests map[string]int
	// handlers replace the responses of the registry, by method and last element of
	// the path; "*" is for all others.
	handlers map[string]http.HandlerFunc
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{requests: map[string]int{}, handlers: map[string]http.HandlerFunc{}}
	genuine := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := r.Method + " " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		s.mutex.Lock()
		s.requests[request]++
		handler := s.handlers[request]
		if handler == nil {
			handler = s.handlers["*"]
		}
		s.mutex.Unlock()
		if handler == nil {
			handler = genuine.ServeHTTP
		}
		handler(w, r)
	}))
	t.Cleanup(listening.Close)
	s.host = strings.TrimPrefix(listening.URL, "http://")
	return s
}

// handle sets the handler of a request.
func (s *server) handle(request string, handler http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.handlers[request] = handler
}

// counted returns the number of requests since the last call.
func (s *server) counted() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	requests := s.requests
	s.requests = map[string]int{}
	return requests
}

// world is a release whose images may be at two registries.
type world struct {
	source, mirror *server
	built          map[string]v1.Image
	images         map[string]string
}

// components are those of the release, sorted.
func components() []string { return []string{"cli", "etcd", "ingress", "kubelet"} }

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{source: serve(t), mirror: serve(t), built: map[string]v1.Image{}, images: map[string]string{}}
	for _, component := range components() {
		built, err := random.Image(layerBytes, 2)
		if err != nil {
			t.Fatal(err)
		}
		w.built[component] = built
		w.images[component] = w.source.host + sourceRepository + "@" + digestOf(t, built)
	}
	return w
}

type digester interface{ Digest() (v1.Hash, error) }

func digestOf(t *testing.T, of digester) string {
	t.Helper()
	digest, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func (w world) digest(component string) string {
	_, digest, _ := strings.Cut(w.images[component], "@")
	return digest
}

// push pushes images of components to a repository.
func (w world) push(t *testing.T, repository string, components ...string) {
	t.Helper()
	for _, component := range components {
		reference, err := name.NewDigest(repository + "@" + w.digest(component))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(reference, w.built[component], remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func (w world) pushToSource(t *testing.T, components ...string) {
	t.Helper()
	w.push(t, w.source.host+sourceRepository, components...)
}

func (w world) pushToMirror(t *testing.T, components ...string) {
	t.Helper()
	w.push(t, w.mirror.host+mirrorRepository, components...)
}

// mirrored makes nodes pull from the mirror first.
func (w world) mirrored(t *testing.T, policy configv1.MirrorSourcePolicy) {
	t.Helper()
	client := clients().OpenShift.ConfigV1().ImageDigestMirrorSets()
	_, err := client.Create(t.Context(), &configv1.ImageDigestMirrorSet{
		ObjectMeta: metav1.ObjectMeta{Name: "mirror"},
		Spec: configv1.ImageDigestMirrorSetSpec{ImageDigestMirrors: []configv1.ImageDigestMirrors{{
			Source: w.source.host + sourceRepository, Mirrors: []configv1.ImageMirror{configv1.ImageMirror(w.mirror.host + mirrorRepository)},
			MirrorSourcePolicy: policy,
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), "mirror", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func clients() registry.PullConfig {
	withoutWarnings := rest.CopyConfig(config)
	withoutWarnings.WarningHandlerWithContext = rest.NoWarnings{}
	return registry.PullConfig{
		Kubernetes: kubernetes.NewForConfigOrDie(withoutWarnings), OpenShift: configclient.NewForConfigOrDie(withoutWarnings),
		Dynamic: dynamic.NewForConfigOrDie(withoutWarnings),
	}
}

// check checks the images with the access of the cluster.
func (w world) check() image.Check {
	return image.Check{
		Release: update.Release{Version: "4.19.0", Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("a", 64)},
		Images:  maps.Clone(w.images), Mode: image.Manifests, Architectures: []string{"amd64"},
		Access: func(ctx context.Context) *registry.Access {
			return registry.FromCluster(ctx, clients(), registry.Local{})
		},
		Progress: func(int, int) {},
	}
}

func collect(t *testing.T, check image.Check) []finding.Finding {
	t.Helper()
	findings, err := check.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// pushIndex makes the image of a component an index of images for architectures. The
// one for the missing architecture is not in the registry.
func (w world) pushIndex(t *testing.T, component string, missing string, architectures ...string) {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	repository, err := name.NewRepository(w.source.host + sourceRepository)
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range architectures {
		built, err := random.Image(layerBytes, 1)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        built,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
		if architecture == missing {
			w.source.handle("GET "+digestOf(t, built), http.NotFound)
		}
	}
	digest := digestOf(t, index)
	if err := remote.WriteIndex(repository.Digest(digest), index, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.images[component] = repository.Digest(digest).String()
}
