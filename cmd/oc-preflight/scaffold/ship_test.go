package scaffold_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/openshift/update-preflight/cmd/oc-preflight/scaffold"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

const sdk = "github.com/openshift/update-preflight/preflight-sdk"

// operator runs commands without network access in the repository of an operator
// that contains only a new check.
type operator struct{ directory string }

// newOperator creates the repository of an operator.
func newOperator(t *testing.T) operator {
	t.Helper()
	return newRepository(t, newScaffold(t, storageDriver))
}

// newRepository creates a repository that contains only a new check. It uses the SDK of the
// working tree.
func newRepository(t *testing.T, created scaffold.Scaffold) operator {
	t.Helper()
	tree, err := filepath.Abs("../../../preflight-sdk")
	if err != nil {
		t.Fatal(err)
	}
	o := operator{t.TempDir()}
	if err := created.Write(o.directory); err != nil {
		t.Fatal(err)
	}
	o.run(t, "go", "mod", "init", "github.com/openshift/cluster-foo-operator")
	// This replaces "go get" for an SDK without a version. Go 1.23 is the oldest
	// supported version.
	o.run(t, "go", "mod", "edit", "-go=1.23", "-require="+sdk+"@v0.0.0", "-replace="+sdk+"="+tree)
	return o
}

// run returns the output of the command, which must succeed.
func (o operator) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	output, err := o.start(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return output
}

func (o operator) start(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = o.directory
	// The flags of the tests, so that the standard library is compiled once.
	command.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=readonly"), "GOWORK=off")
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestBuild tests and builds the files without changes.
func TestBuild(t *testing.T) {
	o := newOperator(t)
	o.run(t, "go", "test", "-vet=all", "./...")
	if unformatted := o.run(t, "gofmt", "-l", "."); unformatted != "" {
		t.Errorf("not formatted: %s", unformatted)
	}
	if _, err := os.Stat(filepath.Join(o.directory, "go.sum")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("want no go.sum, because the SDK requires no other module: %v", err)
	}

	o.build(t)
	got, err := o.start(t, "bin/preflight", "--from", "4.20.5", "--to", "4.21.3")
	if err == nil || !strings.Contains(got, "StorageDriver: Unknown: the check StorageDriver is not written yet") {
		t.Errorf("an update to the next minor version: a check that is not written must not pass, got %v:\n%s", err, got)
	}
	got, err = o.start(t, "bin/preflight", "--from", "4.21.3", "--to", "4.20.5")
	if err == nil || !strings.Contains(got, "StorageDriver: Fail: 4.20.5 would replace the newer 4.21.3") {
		t.Errorf("an update to an older minor version: want a fail, got %v:\n%s", err, got)
	}
}

// build runs the RUN instruction of the Dockerfile. It fails the test unless the
// Dockerfile copies the program to the path that the Job executes.
func (o operator) build(t *testing.T) {
	t.Helper()
	dockerfile := readAll(t, o.directory)["cmd/storage-driver-preflight/Dockerfile"]
	for line := range strings.Lines(dockerfile) {
		if command, ok := strings.CutPrefix(line, "RUN "); ok {
			o.run(t, "sh", "-c", command)
		}
	}
	for _, want := range []string{
		"WORKDIR /src\n", "COPY --from=build /src/bin/preflight /bin/preflight\n",
		"USER 65532:65532\n", "ENTRYPOINT [\"/bin/preflight\"]\n",
	} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("want %q in the Dockerfile:\n%s", want, dockerfile)
		}
	}
}

// TestRelease tests that a run accepts the manifest in a release.
func TestRelease(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	image, err := release.BuildImage(t.Context(), host, "operator", release.Image{})
	if err != nil {
		t.Fatal(err)
	}
	for name, parameters := range map[string]scaffold.Parameters{
		"NoReferences": storageDriver,
		"OwnImage": {
			Name: "StorageDriver", Component: "cluster-foo-operator", Namespace: "openshift-foo",
			References: references("cluster-foo-operator", "registry.example.com/foo:v1"),
		},
		"YAMLKeywords": {Name: "null", Component: "123", Namespace: "456"},
		"LongestName":  {Name: strings.Repeat("x", 30), Component: strings.Repeat("c", 63), Namespace: strings.Repeat("n", 63)},
	} {
		t.Run(name, func(t *testing.T) {
			created := newScaffold(t, parameters)
			plan := planned(t, host, release.Component{
				Name: parameters.Component, Image: image, Source: source(parameters), Manifests: manifests(created),
			})
			if len(plan.Refused) > 0 || len(plan.Checks) != 1 {
				t.Fatalf("want one accepted check, got %+v, refused %v", plan.Checks, plan.Refused)
			}
			check := plan.Checks[0]
			if !check.Framed || check.Component != parameters.Component || check.Job.Namespace != parameters.Namespace {
				t.Errorf("want a framed check of %q in %q, got %+v", parameters.Component, parameters.Namespace, check)
			}
			if suffix := "-preflight-" + plan.Run.Suffix(); !strings.HasSuffix(check.Job.Name, suffix) {
				t.Errorf("name of the Job %q: want the suffix %q", check.Job.Name, suffix)
			}
			var kinds []string
			for _, object := range plan.Supporting {
				kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
			}
			if diff := cmp.Diff([]string{"ServiceAccount"}, kinds); diff != "" {
				t.Errorf("supporting objects: want a ServiceAccount without permissions (-want +got):\n%s", diff)
			}
			if got := check.Job.Spec.Template.Spec.Containers[0].Image; got != image {
				t.Errorf("image %q: want the image of the release %q", got, image)
			}
		})
	}
}

// source returns the image name in the manifest, without a tag.
func source(parameters scaffold.Parameters) string {
	if parameters.References != nil {
		return "registry.example.com/foo"
	}
	return "quay.io/openshift/origin-" + parameters.Component
}

func manifests(created scaffold.Scaffold) map[string]string {
	texts := map[string]string{}
	for _, file := range created.Files {
		if name, ok := strings.CutPrefix(file.Path, "manifests/0000_"); ok {
			texts["0000_"+name] = string(file.Content)
		}
	}
	return texts
}

// shipped is a plan with the refused checks of its draft.
type shipped struct {
	jobplan.Plan
	Refused []finding.Finding
}

// planned pushes a release with the component, reads it and plans a run.
func planned(t *testing.T, host string, component release.Component) shipped {
	t.Helper()
	pullSpec, err := release.Push(t.Context(), host, release.Release{Version: "4.21.3", Components: []release.Component{component}})
	if err != nil {
		t.Fatal(err)
	}
	forced, err := signature.Force(pullSpec, errors.New("not signed: test release"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := payload.Extract(t.Context(), forced, payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Problems) > 0 {
		t.Errorf("want no problems, got %v", got.Problems)
	}
	draft := jobplan.New("", got)
	return shipped{Plan: draft.Bind(jobplan.Run{ID: "7f3c2a91-52de-4b1c-8d70-1f2e3d4c5b6a", Target: got.Release}), Refused: draft.Refused}
}
