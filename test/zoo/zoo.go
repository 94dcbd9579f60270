package zoo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/release"
)

// Zoo builds releases for one cluster. It is safe for concurrent use.
type Zoo struct {
	// Binaries caches the compiled programs.
	Binaries release.Binaries
	// Monitoring is the URL of the monitoring of the cluster.
	Monitoring string

	cluster *cluster.Cluster
	// withoutContainers is true if nothing runs the programs of images: they have none.
	withoutContainers bool
	program           func() (string, error)
	// signer is the key that signs the releases; a new one takes as long as the start of a
	// program.
	signer func() (*release.Signer, error)

	mutex sync.Mutex
	// images are the pull specs of the images that were built, by name.
	images map[string]string
}

// At returns the zoo of a cluster with a node.
func At(c *cluster.Cluster) *Zoo {
	return &Zoo{
		cluster: c, images: map[string]string{}, signer: sync.OnceValues(newSigner),
		program: sync.OnceValues(func() (string, error) { return build.Compile(context.Background(), "cmd/oc-preflight") }),
	}
}

// WithoutContainers returns the zoo of a control plane, whose animals are all simulated. Its
// registry ends with this process.
func WithoutContainers(c *cluster.Cluster) *Zoo {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	c.Registry = strings.TrimPrefix(server.URL, "http://")
	z := At(c)
	z.withoutContainers = true
	return z
}

// Program returns the path of oc-preflight, which is compiled at the first call.
func (z *Zoo) Program(tb testing.TB) string {
	tb.Helper()
	path, err := z.program()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Image builds an image whose /bin/preflight is the program in a directory of the
// repository, and returns its pull spec.
func (z *Zoo) Image(tb testing.TB, name, directory string) string {
	tb.Helper()
	image, err := z.image(tb.Context(), name, directory)
	if err != nil {
		tb.Fatal(err)
	}
	return image
}

// image builds an image at the first call for its name: its compression takes most of the
// time in which a release is built.
func (z *Zoo) image(ctx context.Context, name, directory string) (pullSpec string, err error) {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	if built, ok := z.images[name]; ok {
		return built, nil
	}
	var binary []byte
	if !z.withoutContainers {
		if binary, err = z.Binaries.Build(ctx, directory); err != nil {
			return "", err
		}
	}
	pullSpec, err = release.BuildImage(ctx, z.cluster.Registry, name, release.Image{
		Files: map[string]release.File{"bin/preflight": {Mode: 0o755, Data: binary}}, Config: v1.Config{User: "65532"},
	})
	if err == nil {
		z.images[name] = pullSpec
	}
	return pullSpec, err
}

// Push builds a release of a version with one Job for each animal, by name, and returns
// its pull spec. Push neither signs the release nor makes the cluster offer it.
func (z *Zoo) Push(ctx context.Context, version string, animals map[string]Animal) (pullSpec string, err error) {
	image, err := z.image(ctx, "zoo", "test/e2e/zoo")
	if err != nil {
		return "", err
	}
	empty, err := release.BuildImage(ctx, z.cluster.Registry, "empty", release.Image{
		Files: map[string]release.File{"etc/os-release": {Data: []byte("ID=none\n")}}, Config: v1.Config{User: "65532"},
	})
	if err != nil {
		return "", err
	}
	components := []release.Component{{Name: "empty", Image: empty, Source: "quay.io/openshift/origin-empty"}}
	manifests := map[string]string{}
	for name, animal := range animals {
		if animal.Image == MissingImage {
			components = append(components, release.Component{
				Name: "ghost", Image: z.cluster.Registry + "/openshift/ghost@sha256:" + strings.Repeat("0", 64),
				Source: "quay.io/openshift/origin-ghost",
			})
		}
		text, err := yaml.Marshal(animal.Job(name))
		if err != nil {
			return "", err
		}
		beside := strings.ReplaceAll(animal.Beside, "CAGE", animal.namespace())
		manifests[fmt.Sprintf("0000_50_zoo_11_%s.yaml", name)] = string(text) + "---\n" + beside
	}
	return release.Push(ctx, z.cluster.Registry, release.Release{
		Version: version, Previous: []string{From},
		Components: append(components, release.Component{Name: "zoo", Image: image, Source: Source, Manifests: manifests}),
	})
}

// Offer signs the releases, which are pull specs by version, makes the cluster offer only
// these, and creates the namespaces.
func (z *Zoo) Offer(tb testing.TB, releases map[string]string, namespaces ...string) *World {
	tb.Helper()
	w := &World{config: z.cluster.Config, State: openshift.State{
		Version: From, Image: "registry.example.com/release@sha256:" + strings.Repeat("1", 64),
		Available: releases, Stores: map[string]string{"store-local": "file://" + tb.TempDir()},
		Gates: map[string]string{}, Acks: map[string]string{}, Namespaces: namespaces,
	}}
	signer, err := z.signer()
	if err != nil {
		tb.Fatal(err)
	}
	w.sign(tb, signer)
	w.Apply(tb)
	return w
}

func newSigner() (*release.Signer, error) { return release.NewSigner("e2e release key") }

// Publish pushes and offers one release.
func (z *Zoo) Publish(tb testing.TB, animals map[string]Animal) *World {
	tb.Helper()
	pullSpec, err := z.Push(tb.Context(), To, animals)
	if err != nil {
		tb.Fatal(err)
	}
	w := z.Offer(tb, map[string]string{To: pullSpec}, Namespace)
	w.PullSpec = pullSpec
	return w
}

// World is the state of a cluster that offers releases.
type World struct {
	// PullSpec is the pull spec of the release that Publish pushed.
	PullSpec string
	// State takes effect with Apply.
	State openshift.State

	config *rest.Config
}

// Sign replaces the trusted keys of the state by a new key, and the signatures by those of
// the available releases with this key.
func (w *World) Sign(tb testing.TB) {
	tb.Helper()
	signer, err := newSigner()
	if err != nil {
		tb.Fatal(err)
	}
	w.sign(tb, signer)
}

// sign is Sign with a key.
func (w *World) sign(tb testing.TB, signer *release.Signer) {
	tb.Helper()
	key, err := signer.PublicKey()
	if err != nil {
		tb.Fatal(err)
	}
	w.State.Keys = map[string][]byte{"verifier-public-key-e2e": key}
	w.State.Signatures = release.Store{}
	for version, pullSpec := range w.State.Available {
		signature, err := signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+version+"-x86_64")
		if err != nil {
			tb.Fatal(err)
		}
		w.State.Signatures.Add(pullSpec, signature)
	}
}

// Apply writes the state to the cluster.
func (w *World) Apply(tb testing.TB) {
	tb.Helper()
	if err := openshift.Apply(tb.Context(), w.config, w.State); err != nil {
		tb.Fatal(err)
	}
}
