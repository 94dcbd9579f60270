// Package examples_test answers: can a release ship the checks of the examples? The
// tests build a release with their manifests, read it and plan a run.
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

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

// manifests returns the manifests of an example by file name.
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

// extract pushes a release with the components, which share one image, and returns
// what the runner reads from the registry. It fails the test if the runner reports
// problems.
func extract(t *testing.T, components ...release.Component) (got *payload.Release, image string) {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	image, err := release.BuildImage(t.Context(), host, "example", release.Image{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range components {
		components[i].Image = image
	}
	pullSpec, err := release.Push(t.Context(), host, release.Release{Version: "4.21.3", Components: components})
	if err != nil {
		t.Fatal(err)
	}
	forced, err := signature.Force(pullSpec, errors.New("not signed: test release"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err = payload.Extract(t.Context(), forced, payload.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(got.Problems) > 0 {
		t.Errorf("want a release without problems, got %v", got.Problems)
	}
	return got, image
}

// planned is a plan with the findings of refused Jobs.
type planned struct {
	jobplan.Plan
	Refused []finding.Finding
}

// plan returns the plan of a run of the release.
func plan(r *payload.Release) planned {
	draft := jobplan.New("", r)
	return planned{Plan: draft.Bind(jobplan.Run{ID: "7f3c2a91-52de-4b1c-8d70-1f2e3d4c5b6a", Target: r.Release}), Refused: draft.Refused}
}

func TestRelease(t *testing.T) {
	var components []release.Component
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
		components = append(components, release.Component{
			Name: component, Source: "quay.io/openshift/origin-" + component, Manifests: manifests(t, example),
		})
	}
	got, image := extract(t, components...)
	plan := plan(got)
	if len(plan.Refused) > 0 {
		t.Errorf("want no refused objects, got %v", plan.Refused)
	}
	if len(plan.Supporting) != len(got.Supporting) {
		t.Errorf("the plan uses %d of %d supporting objects, want all", len(plan.Supporting), len(got.Supporting))
	}
	framed := map[string]bool{}
	for _, check := range plan.Checks {
		framed[check.Prefix()] = check.Framed
		expectRestricted(t, check.Job)
		for _, variable := range check.Job.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "COMPONENT_IMAGE" && variable.Value != image {
				t.Errorf("COMPONENT_IMAGE is %q, want the image of the release %q", variable.Value, image)
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
		t.Errorf("checks that promise a framed result (-want +got):\n%s", diff)
	}
}
