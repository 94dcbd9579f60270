package distribution_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/bundle"
)

// opm is the program by which catalogs are validated and served. Its requirements are those of container engines, so it is
// in no go.mod of the repository.
const (
	opm        = "github.com/operator-framework/operator-registry/cmd/opm"
	opmVersion = "v1.73.0"
	opmTags    = "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper,json1"
)

// opm validates the catalog of a bundle, with and without an image of the bundle, and no catalog whose channel has another
// version.
func TestCatalogIsValid(t *testing.T) {
	validator := buildOPM(t)
	digest := "@sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		reason, bundleImage string
		change              func([]byte) []byte
		want                string // of the output; empty: it is valid
	}{
		"Manifests": {reason: "OLM v0 reads the manifests of the catalog", change: bytes.Clone},
		"Image":     {reason: "OLM v1 reads those of the image", bundleImage: "registry.example.com/bundle" + digest, change: bytes.Clone},
		"Channel": {
			reason: "a channel of another bundle is found", want: "update-preflight.v9.9.9",
			change: func(text []byte) []byte {
				return bytes.Replace(text, []byte(`"name": "update-preflight.v1.2.3"`), []byte(`"name": "update-preflight.v9.9.9"`), 1)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := bundle.Generate(bundle.Options{
				Manifests: filepath.Join(root, "manifests"), Version: "v1.2.3", Image: "registry.example.com/controller" + digest, BundleImage: tc.bundleImage,
			})
			if err != nil {
				t.Fatal(err)
			}
			const catalog = "catalog/update-preflight/catalog.json"
			made.Files[catalog] = tc.change(made.Files[catalog])
			directory := filepath.Join(t.TempDir(), "bundle")
			if err := made.Write(directory); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), validator, "validate", filepath.Join(directory, "catalog")).CombinedOutput()
			if (err == nil) != (tc.want == "") || !strings.Contains(string(out), tc.want) {
				t.Errorf("%s: error %v, want the output %q:\n%s", tc.reason, err, tc.want, out)
			}
		})
	}
}

// buildOPM builds opm in a module of its own, and returns its path.
func buildOPM(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "go.mod"), []byte("module opm\n\ngo 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"get", opm + "@" + opmVersion}, {"build", "-tags=" + opmTags, "-o", "opm", opm}} {
		command := exec.CommandContext(t.Context(), "go", arguments...)
		command.Dir = directory
		command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=mod -trimpath -ldflags=-s")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", arguments[0], err, out)
		}
	}
	return filepath.Join(directory, "opm")
}
