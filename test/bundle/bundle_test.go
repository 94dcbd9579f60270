package bundle_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/bundle"
)

const (
	root  = "../.."
	image = "registry.example.com/preflight/controller@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	csv   = "manifests/update-preflight.clusterserviceversion.yaml"
)

func options() bundle.Options {
	return bundle.Options{Manifests: filepath.Join(root, "manifests"), Version: "v1.2.3", Image: image}
}

// generate generates a bundle.
func generate(tb testing.TB, options bundle.Options) bundle.Bundle {
	tb.Helper()
	made, err := bundle.Generate(options)
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// written writes a bundle, and returns its directory.
func written(tb testing.TB) string {
	tb.Helper()
	directory := filepath.Join(tb.TempDir(), "bundle")
	if err := generate(tb, options()).Write(directory); err != nil {
		tb.Fatal(err)
	}
	return directory
}

// decode decodes YAML, and fails for an unknown field.
func decode[T any](tb testing.TB, text []byte) T {
	tb.Helper()
	var value T
	if err := yaml.UnmarshalStrict(text, &value); err != nil {
		tb.Fatal(err)
	}
	return value
}

// guessed matches a warning about the rules of roles alone: the validator takes a resource such as cronjobs for the version
// of its API that was removed, and a rule has no version.
var guessed = regexp.MustCompile(`removed in v1\.\d+.*for (\w+: \(\["ClusterServiceVersion\.Spec\.InstallStrategy\.[^)]*\]\),?)+$`)

// The validators of the operator framework have no error, and no other warning. Left out are those of multiple
// architectures, which starts a container engine, and of the community catalogs, which are deprecated.
func TestValid(t *testing.T) {
	read, err := manifests.GetBundleFromDir(written(t))
	if err != nil {
		t.Fatal(err)
	}
	validators := append(slices.Clone(validation.DefaultBundleValidators), validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator, validation.ObjectValidator, validation.AlphaDeprecatedAPIsValidator,
		validation.GoodPracticesValidator)
	inputs := append(read.ObjectsToValidate(), map[string]string{"k8s-version": read.CSV.Spec.MinKubeVersion})
	var found []errors.Error
	for _, result := range validators.Validate(inputs...) {
		found = append(append(found, result.Errors...), result.Warnings...)
	}
	for _, each := range found {
		if each.Level != errors.LevelWarn || !guessed.MatchString(each.Detail) {
			t.Errorf("%s", each.Error())
		}
	}
	if read.CSV.Name != "update-preflight.v1.2.3" || len(read.V1CRDs) != 1 || len(read.Objects) != 9 {
		t.Errorf("the bundle that the library reads is %s with %d definitions and %d objects", read.CSV.Name, len(read.V1CRDs), len(read.Objects))
	}
}

// Equal sources have equal bytes, in any directory and from any directory.
func TestReproducible(t *testing.T) {
	first := generate(t, options())
	again := options()
	again.Manifests = copied(t, nil)
	second := generate(t, again)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("(-first, +second):\n%s", diff)
	}
	absolute, err := filepath.Abs(filepath.Join(root, "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	again.Manifests = absolute
	if diff := cmp.Diff(first, generate(t, again)); diff != "" {
		t.Errorf("in another working directory (-first, +second):\n%s", diff)
	}
}

// The install strategy has the Deployment of the manifests, with the image.
func TestDeployment(t *testing.T) {
	made := decode[operatorsv1alpha1.ClusterServiceVersion](t, generate(t, options()).Files[csv])
	deployments := made.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	if len(deployments) != 1 {
		t.Fatalf("%d deployments", len(deployments))
	}
	var want appsv1.Deployment
	infos, err := resource.NewLocalBuilder().Unstructured().Local().
		FilenameParam(false, &resource.FilenameOptions{Kustomize: filepath.Join(root, "manifests")}).Flatten().Do().Infos()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if object, ok := info.Object.(*unstructured.Unstructured); ok && object.GetKind() == "Deployment" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &want); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(want.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("the Deployment of the manifests is %+v", want)
	}
	want.Spec.Template.Spec.Containers[0].Image = image
	if diff := cmp.Diff(want.Spec, deployments[0].Spec); diff != "" {
		t.Errorf("specification (-manifests, +bundle):\n%s", diff)
	}
	if deployments[0].Name != want.Name || !maps.Equal(deployments[0].Label, want.Labels) {
		t.Errorf("name %s, labels %v; want %s, %v", deployments[0].Name, deployments[0].Label, want.Name, want.Labels)
	}
	if got := made.Spec.RelatedImages; len(got) != 1 || got[0].Image != image || made.Annotations["containerImage"] != image {
		t.Errorf("related images %v, containerImage %s", got, made.Annotations["containerImage"])
	}
}

// Every field of spec and status has a descriptor.
func TestDescriptors(t *testing.T) {
	files := generate(t, options()).Files
	owned := decode[operatorsv1alpha1.ClusterServiceVersion](t, files[csv]).Spec.CustomResourceDefinitions.Owned
	crd := decode[apiextensionsv1.CustomResourceDefinition](t,
		files["manifests/updatepreflights.preflight.openshift.io_customresourcedefinition.yaml"])
	if len(owned) != 1 || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%d owned APIs, %d versions", len(owned), len(crd.Spec.Versions))
	}
	properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	var spec, status []string
	for _, each := range owned[0].SpecDescriptors {
		spec = append(spec, each.Path)
	}
	for _, each := range owned[0].StatusDescriptors {
		status = append(status, each.Path)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(properties["spec"].Properties)), spec); diff != "" {
		t.Errorf("spec (-schema, +descriptors):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(properties["status"].Properties)), status); diff != "" {
		t.Errorf("status (-schema, +descriptors):\n%s", diff)
	}
}

// The page names each permission that the bundle grants in all namespaces and the manifests do not, and no other.
func TestWidenedIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "manifests", "OPERATORHUB.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, each := range generate(t, options()).Widened {
		want = append(want, "| `"+each.Namespace+"` | "+each.Permission+" |")
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows of the page (-bundle, +page):\n%s", diff)
	}
}

// The namespace of the console and of install.yaml is that of the manifests, with its labels.
func TestNamespace(t *testing.T) {
	files := generate(t, options()).Files
	annotations := decode[operatorsv1alpha1.ClusterServiceVersion](t, files[csv]).Annotations
	var template corev1.Namespace
	if err := json.Unmarshal([]byte(annotations["operatorframework.io/suggested-namespace-template"]), &template); err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(files["install.yaml"], []byte("\n---\n"))
	if diff := cmp.Diff(template, decode[corev1.Namespace](t, first)); diff != "" {
		t.Errorf("(-template, +install.yaml):\n%s", diff)
	}
	if template.Name != annotations["operatorframework.io/suggested-namespace"] ||
		template.Labels["pod-security.kubernetes.io/enforce"] != "restricted" ||
		annotations["operatorframework.io/cluster-monitoring"] != template.Labels["openshift.io/cluster-monitoring"] {
		t.Errorf("annotations %v, template %+v", annotations, template)
	}
}

// The catalog is a package whose default channel has the one bundle, with exactly its manifests. "opm validate" builds for
// minutes: run it after a change of the form of the catalog (CONTRIBUTING.md).
func TestCatalog(t *testing.T) {
	type property struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	type entry struct {
		Name      string `json:"name"`
		SkipRange string `json:"skipRange"`
	}
	type document struct {
		Schema         string     `json:"schema"`
		Package        string     `json:"package"`
		Name           string     `json:"name"`
		DefaultChannel string     `json:"defaultChannel"`
		Entries        []entry    `json:"entries"`
		Properties     []property `json:"properties"`
	}
	made := generate(t, options())
	decoder := json.NewDecoder(bytes.NewReader(made.Files["catalog/update-preflight/catalog.json"]))
	catalog := map[string]document{}
	for decoder.More() {
		var next document
		if err := decoder.Decode(&next); err != nil {
			t.Fatal(err)
		}
		catalog[next.Schema] = next
	}
	channel, bundled := catalog["olm.channel"], catalog["olm.bundle"]
	if catalog["olm.package"].DefaultChannel != channel.Name || channel.Package != bundled.Package || len(catalog) != 3 {
		t.Errorf("the catalog has other parts: %+v", catalog)
	}
	if len(channel.Entries) != 1 || channel.Entries[0].Name != bundled.Name || channel.Entries[0].SkipRange != ">=0.0.0 <1.2.3" {
		t.Errorf("the channel has %+v, want the one bundle %s, to which every earlier version is updated", channel.Entries, bundled.Name)
	}
	var objects, files []any
	for _, each := range bundled.Properties {
		if each.Type != "olm.bundle.object" {
			continue
		}
		object := decode[struct{ Data []byte }](t, each.Value)
		objects = append(objects, decode[any](t, object.Data))
	}
	for _, name := range slices.Sorted(maps.Keys(made.Files)) {
		if strings.HasPrefix(name, "manifests/") {
			files = append(files, decode[any](t, made.Files[name]))
		}
	}
	named := func(objects []any) map[string]any {
		all := map[string]any{}
		for _, each := range objects {
			content, _ := each.(map[string]any)
			object := unstructured.Unstructured{Object: content}
			all[object.GetKind()+" "+object.GetName()] = content
		}
		return all
	}
	if diff := cmp.Diff(named(files), named(objects)); diff != "" {
		t.Errorf("objects of the catalog (-manifests, +catalog):\n%s", diff)
	}
}
