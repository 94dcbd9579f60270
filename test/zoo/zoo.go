package zoo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/release"
)

// Zoo makes releases for one cluster. It may be used by several tests at a time.
type Zoo struct {
	// Binaries are the programs that were compiled so far.
	Binaries release.Binaries

	cluster *cluster.Cluster
	program sync.Once
	path    string
}

// At is the zoo of a cluster.
func At(c *cluster.Cluster) *Zoo { return &Zoo{cluster: c} }

// Program is the path of oc-preflight, built once, as a user would build it.
func (z *Zoo) Program(tb testing.TB) string {
	tb.Helper()
	binary, err := z.Binaries.Build(tb.Context(), "cmd/oc-preflight")
	if err != nil {
		tb.Fatal(err)
	}
	z.program.Do(func() {
		z.path = filepath.Join(z.cluster.Dir, "bin", "oc-preflight")
		if err = os.MkdirAll(filepath.Dir(z.path), 0o750); err == nil {
			err = os.WriteFile(z.path, binary, 0o700) //nolint:gosec // it is run
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	return z.path
}

// Image is the pull spec of an image whose /bin/preflight is the program in that
// directory of the repository.
func (z *Zoo) Image(tb testing.TB, name, directory string) string {
	tb.Helper()
	image, err := z.image(tb.Context(), name, directory)
	if err != nil {
		tb.Fatal(err)
	}
	return image
}

func (z *Zoo) image(ctx context.Context, name, directory string) (string, error) {
	binary, err := z.Binaries.Build(ctx, directory)
	if err != nil {
		return "", err
	}
	return release.BuildImage(ctx, z.cluster.Registry, name, release.Image{
		Files: map[string]release.File{"bin/preflight": {Mode: 0o755, Data: binary}}, Config: v1.Config{User: "65532"},
	})
}

// Push builds a release of that version with one Job for each animal, by name,
// and returns its pull spec. It is not signed, and the cluster does not know
// of it.
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
		if animal.Image == Ghost {
			components = append(components, release.Component{
				Name: "ghost", Image: z.cluster.Registry + "/openshift/ghost@sha256:" + strings.Repeat("0", 64), Source: "quay.io/openshift/origin-ghost",
			})
		}
		text, err := yaml.Marshal(animal.Job(name))
		if err != nil {
			return "", err
		}
		beside := strings.ReplaceAll(animal.Beside, "CAGE", animal.cage())
		manifests[fmt.Sprintf("0000_50_zoo_11_%s.yaml", name)] = string(text) + "---\n" + beside
	}
	return release.Push(ctx, z.cluster.Registry, release.Release{
		Version: version, Previous: []string{From},
		Components: append(components, release.Component{Name: "zoo", Image: image, Source: Source, Manifests: manifests}),
	})
}

// Offer signs releases, by version, and makes the cluster offer them and nothing
// else. Namespaces exist then.
func (z *Zoo) Offer(tb testing.TB, releases map[string]string, namespaces ...string) *World {
	tb.Helper()
	w := &World{config: z.cluster.Config, State: openshift.State{
		Version: From, Image: "registry.example.com/release@sha256:" + strings.Repeat("1", 64),
		Available: releases, Stores: map[string]string{"store-local": "file://" + tb.TempDir()},
		Gates: map[string]string{}, Acks: map[string]string{}, Namespaces: namespaces,
	}}
	w.Sign(tb)
	w.Apply(tb)
	return w
}

// Publish is Push and Offer of one release.
func (z *Zoo) Publish(tb testing.TB, animals map[string]Animal) *World {
	tb.Helper()
	pullSpec, err := z.Push(tb.Context(), To, animals)
	if err != nil {
		tb.Fatal(err)
	}
	w := z.Offer(tb, map[string]string{To: pullSpec}, Namespace, "openshift-quota", "openshift-restricted")
	w.PullSpec = pullSpec
	return w
}

// World is a release to ask about, and what the cluster says of itself.
type World struct {
	// PullSpec is that of the release which was published.
	PullSpec string
	// State may be changed, and applied.
	State openshift.State

	config *rest.Config
}

// Sign has the cluster trust a new key, and keep its signatures of the releases.
func (w *World) Sign(tb testing.TB) {
	tb.Helper()
	signer, err := release.NewSigner("e2e release key")
	if err != nil {
		tb.Fatal(err)
	}
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

// Apply makes the cluster say what State says.
func (w *World) Apply(tb testing.TB) {
	tb.Helper()
	if err := openshift.Apply(tb.Context(), w.config, w.State); err != nil {
		tb.Fatal(err)
	}
}
