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
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

const sdk = "github.com/openshift/update-preflight/preflight-sdk"

// operator runs commands in the repository of an operator that has nothing but
// a new check, and no network.
type operator struct{ directory string }

// newOperator makes the repository. Its SDK is the one of this working tree.
func newOperator(t *testing.T) operator {
	t.Helper()
	tree, err := filepath.Abs("../../../preflight-sdk")
	if err != nil {
		t.Fatal(err)
	}
	o := operator{t.TempDir()}
	if err := scaffolded(t, storageDriver).Write(o.directory); err != nil {
		t.Fatal(err)
	}
	o.run(t, "go", "mod", "init", "github.com/openshift/cluster-foo-operator")
	// As long as the SDK has no version, this stands for "go get". Go 1.23 is
	// the oldest that it supports.
	o.run(t, "go", "mod", "edit", "-go=1.23", "-require="+sdk+"@v0.0.0", "-replace="+sdk+"="+tree)
	return o
}

// run returns what the command printed. It must succeed.
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
	command.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestBuild does what an author does next: nothing has to be changed before.
func TestBuild(t *testing.T) {
	o := newOperator(t)
	o.run(t, "go", "vet", "./...")
	o.run(t, "go", "test", "./...")
	if unformatted := o.run(t, "gofmt", "-l", "."); unformatted != "" {
		t.Errorf("not as gofmt would have it: %s", unformatted)
	}
	if _, err := os.Stat(filepath.Join(o.directory, "go.sum")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the SDK brings no other module, so there is no go.sum: %v", err)
	}

	o.build(t)
	got := o.run(t, "bin/preflight", "--from", "4.20.5", "--to", "4.21.3")
	if !strings.Contains(got, "StorageDriver: Pass: The update does not go back") {
		t.Errorf("an update to the next minor version passes, got:\n%s", got)
	}
	got, err := o.start(t, "bin/preflight", "--from", "4.21.3", "--to", "4.20.5")
	if err == nil || !strings.Contains(got, "StorageDriver: Fail: 4.20.5 would replace the newer 4.21.3") {
		t.Errorf("one that goes back does not (%v), got:\n%s", err, got)
	}
}

// build runs the one RUN instruction of the Dockerfile, and sees that what it
// makes is installed where the Job starts it.
func (o operator) build(t *testing.T) {
	t.Helper()
	dockerfile := read(t, o.directory)["cmd/storage-driver-preflight/Dockerfile"]
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

// TestRelease has a release ship the manifests as they are, and a run plan
// their Job.
func TestRelease(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	image, err := release.BuildImage(t.Context(), host, "operator", release.Image{})
	if err != nil {
		t.Fatal(err)
	}
	for name, parameters := range map[string]scaffold.Parameters{
		"AsUsual":      storageDriver,
		"OwnImage":     {Name: "StorageDriver", Component: "cluster-foo-operator", Namespace: "openshift-foo", References: references("cluster-foo-operator", "registry.example.com/foo:v1")},
		"NotQuiteText": {Name: "null", Component: "123", Namespace: "456"},
		"LongestName":  {Name: strings.Repeat("x", 30), Component: strings.Repeat("c", 63), Namespace: strings.Repeat("n", 63)},
	} {
		t.Run(name, func(t *testing.T) {
			made := scaffolded(t, parameters)
			plan := planned(t, host, release.Component{
				Name: parameters.Component, Image: image, Source: source(parameters), Manifests: manifests(made),
			})
			if len(plan.Refused) > 0 || len(plan.Checks) != 1 {
				t.Fatalf("want one check that is taken, got %+v, refused %v", plan.Checks, plan.Refused)
			}
			check := plan.Checks[0]
			if !check.Framed || check.Component != parameters.Component || check.Job.Namespace != parameters.Namespace {
				t.Errorf("want a framed check of %q in %q, got %+v", parameters.Component, parameters.Namespace, check)
			}
			if suffix := "-preflight-" + plan.Run.Suffix(); !strings.HasSuffix(check.Job.Name, suffix) {
				t.Errorf("the name of the Job is not cut, and ends with %q; got %q", suffix, check.Job.Name)
			}
			var kinds []string
			for _, object := range plan.Supporting {
				kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
			}
			if diff := cmp.Diff([]string{"ServiceAccount"}, kinds); diff != "" {
				t.Errorf("the Job has an identity of its own, which may do nothing as yet (-want +got):\n%s", diff)
			}
			if got := check.Job.Spec.Template.Spec.Containers[0].Image; got != image {
				t.Errorf("the image is the one of the release, %q; got %q", image, got)
			}
		})
	}
}

// source is what the manifests call the image, without a tag.
func source(parameters scaffold.Parameters) string {
	if parameters.References != nil {
		return "registry.example.com/foo"
	}
	return "quay.io/openshift/origin-" + parameters.Component
}

func manifests(made scaffold.Scaffold) map[string]string {
	texts := map[string]string{}
	for _, file := range made.Files {
		if name, ok := strings.CutPrefix(file.Path, "manifests/0000_"); ok {
			texts["0000_"+name] = string(file.Content)
		}
	}
	return texts
}

// planned reads the component back out of a release, and plans a run of it.
func planned(t *testing.T, host string, component release.Component) launch.Plan {
	t.Helper()
	pullSpec, err := release.Push(t.Context(), host, release.Release{Version: "4.21.3", Components: []release.Component{component}})
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
		t.Errorf("want no problems, got %v", got.Problems)
	}
	return launch.Build(launch.Run{ID: "7f3c2a91-52de-4b1c-8d70-1f2e3d4c5b6a", Image: got.Image, Digest: got.Digest}, got)
}
