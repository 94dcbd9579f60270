// Package examples_test answers: can a release ship the checks of the examples
// as they are? It builds one with them, reads it back, and plans a run.
package examples_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

func manifests(t *testing.T, example string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(example, "manifests", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests of %s: %v", example, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(content)
	}
	return texts
}

func TestRelease(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	image, err := release.BuildImage(t.Context(), host, "example", release.Image{})
	if err != nil {
		t.Fatal(err)
	}
	made := release.Release{Version: "4.21.3"}
	for component, example := range map[string]string{
		"cloud-credential-operator":                "cloud-credential",
		"cluster-config-operator":                  "image-sources",
		"cluster-csi-snapshot-controller-operator": "snapshot",
		"cluster-etcd-operator":                    "etcd",
		"cluster-ingress-operator":                 "ingress",
		"cluster-kube-apiserver-operator":          "kube-apiserver",
		"cluster-network-operator":                 "network",
		"cluster-storage-operator":                 "storage",
		"machine-config-operator":                  "machine-config",
	} {
		made.Components = append(made.Components, release.Component{
			Name: component, Image: image, Source: "quay.io/openshift/origin-" + component, Manifests: manifests(t, example),
		})
	}
	pullSpec, err := release.Push(t.Context(), host, made)
	if err != nil {
		t.Fatal(err)
	}
	forced, err := signature.Force(pullSpec, errors.New("not signed: it is made for this test"))
	if err != nil {
		t.Fatal(err)
	}

	got, err := payload.Extract(t.Context(), forced, payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Problems) > 0 {
		t.Errorf("a release with the examples has no problems, got %v", got.Problems)
	}
	plan := launch.Build(launch.Run{ID: "7f3c2a91-52de-4b1c-8d70-1f2e3d4c5b6a", Image: got.Image, Digest: got.Digest}, got)
	if len(plan.Refused) > 0 {
		t.Errorf("the examples keep to the rules, got %v", plan.Refused)
	}
	if len(plan.Supporting) != len(got.Supporting) {
		t.Errorf("the checks need %d of %d supporting objects, want all", len(plan.Supporting), len(got.Supporting))
	}
	framed := map[string]bool{}
	for _, check := range plan.Checks {
		framed[check.Prefix()] = check.Framed
		for _, variable := range check.Job.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "COMPONENT_IMAGE" && variable.Value != image {
				t.Errorf("an image in the environment becomes that of the release, like any other: got %q", variable.Value)
			}
		}
	}
	want := map[string]bool{
		"CloudCredentialOperator":              true,
		"ClusterConfigOperator":                true,
		"ClusterCsiSnapshotControllerOperator": true,
		"ClusterEtcdOperator":                  true,
		"ClusterIngressOperator":               true,
		"ClusterKubeApiserverOperator":         true,
		"ClusterNetworkOperator":               true,
		"ClusterStorageOperator":               true,
		"MachineConfigOperator":                true,
	}
	if diff := cmp.Diff(want, framed); diff != "" {
		t.Errorf("all of them run and promise a result in the SDK's form (-want +got):\n%s", diff)
	}
}
