// Package bundle answers: which OLM bundle, and which file-based catalog, install the controller of manifests/?
//
// Generate renders the kustomization of OpenShift and returns the files; Write puts them into a directory. There is no
// second copy of a manifest: what a bundle cannot carry is an error, and what it can only carry with more permissions is
// in Widened.
package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	// ImageName is the name of the controller's image in the manifests.
	ImageName = "quay.io/openshift/origin-update-preflight"
	// Package is the name of the package in catalogs.
	Package = "update-preflight"
	// Channel is the only channel of the package.
	Channel = "stable"
	// dockerfile is the file by which Write recognizes a directory that it wrote before.
	dockerfile = "bundle.Dockerfile"
)

// Options say what to generate.
type Options struct {
	// Manifests is the directory of the kustomization, and of olm/icon.svg.
	Manifests string
	// Version is that of the tag: vX.Y.Z, or vX.Y.Z-PRERELEASE.
	Version string
	// Image is the pull spec of the controller, by digest.
	Image string
	// BundleImage is the pull spec of the bundle, by digest. Without it, the catalog contains the manifests only, which
	// suffices for OLM v0; OLM v1 needs the image.
	BundleImage string
}

// Bundle is a bundle with its catalog.
type Bundle struct {
	// Files are the contents by path, with slashes.
	Files map[string][]byte
	// Widened are the permissions that the bundle grants in all namespaces, and the manifests in one.
	Widened []Widened
}

// generator is a bundle that is being made.
type generator struct {
	Options

	version   semver.Version
	namespace *unstructured.Unstructured
	parts     parts
	rights    rights
}

// Generate renders the manifests and returns the bundle. Equal options and manifests have equal bytes.
func Generate(options Options) (Bundle, error) {
	version, err := parseVersion(options.Version)
	if err != nil {
		return Bundle{}, err
	}
	if err := checkImages(options); err != nil {
		return Bundle{}, err
	}
	rendered, err := render(options.Manifests)
	if err != nil {
		return Bundle{}, err
	}
	sorted, err := sortParts(rendered)
	if err != nil {
		return Bundle{}, err
	}
	rights, err := assign(sorted)
	if err != nil {
		return Bundle{}, err
	}
	g := generator{Options: options, version: version, namespace: sorted.namespace, parts: sorted, rights: rights}
	files, err := g.files()
	return Bundle{Files: files, Widened: rights.widened}, err
}

// parseVersion reads the version of a tag.
func parseVersion(text string) (semver.Version, error) {
	const want = "give the version as in the tag, for example VERSION=v1.2.3"
	if text == "" {
		return semver.Version{}, errors.New("there is no version: " + want)
	}
	if text[0] != 'v' {
		return semver.Version{}, fmt.Errorf("the version %q does not begin with v: %s", text, want)
	}
	version, err := semver.Parse(text[1:])
	if err != nil {
		return semver.Version{}, fmt.Errorf("the version %q is not semantic (%w): %s", text, err, want)
	}
	if len(version.Build) > 0 {
		return semver.Version{}, fmt.Errorf("the version %q has build metadata, which the name of a ClusterServiceVersion cannot have: %s", text,
			want)
	}
	return version, nil
}

// checkImages returns an error for an image without a digest.
func checkImages(options Options) error {
	if err := checkImage("IMAGE", "controller", options.Image); err != nil {
		return err
	}
	if options.BundleImage == "" {
		return nil
	}
	return checkImage("BUNDLE", "bundle", options.BundleImage)
}

// checkImage returns an error for a pull spec that is not by digest alone.
func checkImage(variable, of, image string) error {
	if image == "" {
		return fmt.Errorf("there is no image of the %s: give %s=REGISTRY/REPOSITORY@sha256:DIGEST", of, variable)
	}
	digest, err := name.NewDigest(image)
	if err != nil || digest.Name() != image {
		return fmt.Errorf("the image %q of the %s is not REGISTRY/REPOSITORY@sha256:DIGEST: a tag can be moved and is not mirrored to "+
			"disconnected clusters; "+
			"take the digest that the push printed, or that of \"oc image info\", for %s", image, of, variable)
	}
	return nil
}

// files returns the files of the bundle and of the catalog.
func (g generator) files() (map[string][]byte, error) {
	csv, err := g.csv()
	if err != nil {
		return nil, err
	}
	objects := append([]*unstructured.Unstructured{csv}, g.parts.crds...)
	for _, object := range slices.Concat(g.parts.others, g.rights.objects) {
		object = object.DeepCopy()
		object.SetNamespace("") // OLM sets that of the operator
		objects = append(objects, object)
	}
	files := map[string][]byte{}
	for _, object := range objects {
		file := path.Join("manifests", fileName(object))
		if _, exists := files[file]; exists {
			return nil, fmt.Errorf("two objects have the file %s", file)
		}
		if files[file], err = yaml.Marshal(object.Object); err != nil {
			return nil, err
		}
	}
	if files["metadata/annotations.yaml"], err = yaml.Marshal(map[string]any{"annotations": g.annotations()}); err != nil {
		return nil, err
	}
	files[dockerfile] = g.dockerfile()
	files["catalog.Dockerfile"] = []byte(catalogDockerfile)
	if files[path.Join("catalog", Package, "catalog.json")], err = g.catalog(objects); err != nil {
		return nil, err
	}
	files["install.yaml"], err = g.install()
	return files, err
}

// fileName is the name of the file of an object.
func fileName(object *unstructured.Unstructured) string {
	if object.GetKind() == csvKind {
		return Package + ".clusterserviceversion.yaml"
	}
	return fmt.Sprintf("%s_%s.yaml", object.GetName(), lower(object.GetKind()))
}

// annotations are those of the bundle, which are also the labels of its image.
func (g generator) annotations() map[string]string {
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": Package, prefix + "channels.v1": Channel, prefix + "channel.default.v1": Channel,
		"com.redhat.openshift.versions": "v" + g.parts.oldest.line(),
	}
}

// dockerfile is that of the image of the bundle.
func (g generator) dockerfile() []byte {
	var text bytes.Buffer
	text.WriteString("FROM scratch\n")
	labels := g.annotations()
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&text, "LABEL %s=%s\n", label, labels[label])
	}
	text.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return text.Bytes()
}

// Write writes the files to a directory in place of those of an earlier bundle, and creates it. A directory with anything
// else is an error, and stays as it is.
func (b Bundle) Write(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	own := map[string]bool{}
	for file := range b.Files {
		first, _, _ := strings.Cut(file, "/")
		own[first] = true
	}
	_, notWritten := os.Stat(filepath.Join(directory, dockerfile))
	for _, entry := range entries {
		if notWritten != nil || !own[entry.Name()] {
			return fmt.Errorf("the directory %s has %s, which is not of an earlier bundle: name another one", directory, entry.Name())
		}
	}
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(b.Files)) {
		target := filepath.Join(directory, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // for the image, whose user is any
			return err
		}
		if err := os.WriteFile(target, b.Files[file], 0o644); err != nil { //nolint:gosec // for the image, whose user is any
			return err
		}
	}
	return nil
}
