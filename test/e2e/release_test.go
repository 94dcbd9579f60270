package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/release"
)

const (
	from = "5.0.3"
	to   = "5.1.0"
	// zooNamespace is where the checks run, zooImage what manifests call their
	// image.
	zooNamespace = "openshift-zoo"
	zooImage     = "quay.io/openshift/origin-zoo"
	// ghostImage is in a release only if a check runs it: no registry has it.
	ghostImage = "quay.io/openshift/origin-ghost:latest"
)

// binaries compiles each program once for all tests.
var binaries release.Binaries

// animal is one preflight Job of a test.
type animal struct {
	// ending is the argument of the zoo program.
	ending string
	// plain Jobs do not promise a framed result.
	plain bool
	// namespace and image are those of the zoo unless given.
	namespace, image string
	change           func(*batchv1.Job)
	// beside are more documents of its manifest, where CAGE stands for its
	// namespace.
	beside string
}

// job is the manifest of an animal, as an operator's author would write it.
func (a animal) job(name string) *batchv1.Job {
	annotations := map[string]string{"openshift.io/preflight-check": "true"}
	if !a.plain {
		annotations["preflight.openshift.io/result"] = "framed"
	}
	namespace, image := a.namespace, a.image
	if namespace == "" {
		namespace = zooNamespace
	}
	if image == "" {
		image = zooImage + ":latest"
	}
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: annotations},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "preflight", Image: image, Command: []string{"/bin/preflight", a.ending},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
				}},
			}},
		},
	}
	if a.change != nil {
		a.change(job)
	}
	return job
}

// world is a release to ask about, and what the cluster says of itself.
type world struct {
	pullSpec string
	state    openshift.State
}

// publish builds and signs a release with one Job for each animal, and makes
// the cluster offer it.
func publish(tb testing.TB, animals map[string]animal) world {
	tb.Helper()
	ctx := tb.Context()
	zoo := buildImage(ctx, tb, "zoo", "test/e2e/zoo")
	empty, err := release.BuildImage(ctx, local.Registry, "empty", release.Image{
		Files: map[string]release.File{"etc/os-release": {Data: []byte("ID=none\n")}}, Config: v1.Config{User: "65532"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	components := []release.Component{{Name: "empty", Image: empty, Source: "quay.io/openshift/origin-empty"}}
	manifests := map[string]string{}
	for name, animal := range animals {
		if animal.image == ghostImage {
			components = append(components, release.Component{Name: "ghost", Image: local.Registry + "/openshift/ghost@sha256:" + strings.Repeat("0", 64), Source: "quay.io/openshift/origin-ghost"})
		}
		text, err := yaml.Marshal(animal.job(name))
		if err != nil {
			tb.Fatal(err)
		}
		beside := strings.ReplaceAll(animal.beside, "CAGE", zooNamespace)
		manifests[fmt.Sprintf("0000_50_zoo_11_%s.yaml", name)] = string(text) + "---\n" + beside
	}
	pullSpec, err := release.Push(ctx, local.Registry, release.Release{
		Version: to, Previous: []string{from},
		Components: append(components, release.Component{Name: "zoo", Image: zoo, Source: zooImage, Manifests: manifests}),
	})
	if err != nil {
		tb.Fatal(err)
	}
	w := world{pullSpec: pullSpec, state: openshift.State{
		Version: from, Image: "registry.example.com/release@sha256:" + strings.Repeat("1", 64),
		Available: map[string]string{to: pullSpec}, Stores: map[string]string{"store-local": "file://" + tb.TempDir()},
		Gates: map[string]string{}, Acks: map[string]string{},
		Namespaces: []string{zooNamespace, "openshift-quota", "openshift-restricted"},
	}}
	w.sign(tb)
	w.apply(tb)
	return w
}

func buildImage(ctx context.Context, tb testing.TB, name, directory string) string {
	tb.Helper()
	binary, err := binaries.Build(ctx, directory)
	if err != nil {
		tb.Fatal(err)
	}
	image, err := release.BuildImage(ctx, local.Registry, name, release.Image{
		Files: map[string]release.File{"bin/preflight": {Mode: 0o755, Data: binary}}, Config: v1.Config{User: "65532"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return image
}

// sign has the cluster trust a new key, and keep its signature of the release.
func (w *world) sign(tb testing.TB) {
	tb.Helper()
	signer, err := release.NewSigner("e2e release key")
	if err != nil {
		tb.Fatal(err)
	}
	signature, err := signer.Sign(w.pullSpec, "quay.io/openshift-release-dev/ocp-release:"+to+"-x86_64")
	if err != nil {
		tb.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		tb.Fatal(err)
	}
	w.state.Keys = map[string][]byte{"verifier-public-key-e2e": key}
	w.state.Signatures = release.Store{}
	w.state.Signatures.Add(w.pullSpec, signature)
}

func (w *world) apply(tb testing.TB) {
	tb.Helper()
	if err := openshift.Apply(tb.Context(), local.Config, w.state); err != nil {
		tb.Fatal(err)
	}
}
