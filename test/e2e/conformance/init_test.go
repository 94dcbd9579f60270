package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/test/release"
	"github.com/openshift/update-preflight/test/zoo"
)

// TestNewCheckConforms builds and tests the unchanged files of "init": they conform, except
// that they do not pass.
func TestNewCheckConforms(t *testing.T) {
	directory := t.TempDir()
	created := testCluster.Call(t, "init", "storage-driver", "--component", "cluster-foo-operator", "--dir", directory)
	if created.Code != 0 {
		t.Fatalf("init: exit code %d\n%s", created.Code, created.Stderr)
	}
	binary := buildNewCheck(t, directory)
	image, err := release.BuildImage(t.Context(), local.Registry, "cluster-foo-operator", release.Image{
		Files:  map[string]release.File{"bin/preflight": {Mode: 0o755, Data: binary}},
		Config: v1.Config{User: "65532:65532", Entrypoint: []string{"/bin/preflight"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	manifest := filepath.Join(directory, "manifests", "0000_50_cluster-foo-operator_11_preflight-job.yaml")
	results := testCluster.Conformance(t, 0, manifest, "--image", image, "--timeout", "5m")
	if got := results["Result"]; got.Outcome != preflight.Warn || !strings.Contains(got.Message, "not written yet") {
		t.Errorf("a check that is not written: %+v, want Warn", got)
	}
	results["Result"] = requirement.Result{Outcome: preflight.Pass}
	zoo.ExpectConforms(t, results)
	testCluster.ExpectNoConformance(t)
}

// buildNewCheck compiles the check as the Dockerfile in directory does, with the SDK of this
// working tree.
func buildNewCheck(t *testing.T, directory string) []byte {
	t.Helper()
	const sdk = "github.com/openshift/update-preflight/preflight-sdk"
	source, err := filepath.Abs(filepath.Join(root, "preflight-sdk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "init", "github.com/openshift/cluster-foo-operator"},
		{"mod", "edit", "-require=" + sdk + "@v0.0.0", "-replace=" + sdk + "=" + source},
		{"build", "-trimpath", "-o", "bin/preflight", "./cmd/storage-driver-preflight"},
	} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = directory
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOPROXY=off", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	binary, err := os.ReadFile(filepath.Join(directory, "bin", "preflight"))
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
