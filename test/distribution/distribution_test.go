// Package distribution_test answers: are the programs of a release reproducible and
// within their size limit?
package distribution_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// root is the root of the repository.
const root = "../.."

// maxSize bounds oc-preflight on any platform, in bytes: a little more than it has, so that a dependency by which
// the linker keeps methods of all API types is noticed.
const maxSize = 65 << 20

// build is an entry of .goreleaser.yaml, by which "make release" builds.
type build struct {
	Main    string   `json:"main"`
	Env     []string `json:"env"`
	Flags   []string `json:"flags"`
	Tags    []string `json:"tags"`
	Ldflags []string `json:"ldflags"`
	Targets []string `json:"targets"`
}

// released is the build of oc-preflight.
func released(t *testing.T) build {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Builds []build `json:"builds"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Builds) != 1 {
		t.Fatalf("%d builds in .goreleaser.yaml, want 1", len(config.Builds))
	}
	return config.Builds[0]
}

// The same sources in two directories result in the same program, within its size limit.
func TestProgramIsReproducible(t *testing.T) {
	b := released(t)
	if b.Main != "./cmd/oc-preflight" {
		t.Fatalf("builds %q, want ./cmd/oc-preflight", b.Main)
	}
	first, second := b.program(t, root), b.program(t, copied(t))
	if !bytes.Equal(first, second) {
		t.Error("the program depends on the directory in which it is built")
	}
	if len(first) > maxSize {
		t.Errorf("the program has %d bytes, want at most %d: see which function makes the linker keep methods with -ldflags=-dumpdep "+
			"(ReflectMethod)", len(first), maxSize)
	}
}

// Platforms of administrators, and of the nodes of OpenShift.
func TestPlatforms(t *testing.T) {
	targets := strings.Join(released(t).Targets, " ")
	for _, platform := range []string{
		"linux_amd64", "linux_arm64", "linux_ppc64le", "linux_s390x", "darwin_amd64", "darwin_arm64", "windows_amd64", "windows_arm64",
	} {
		if !strings.Contains(targets, platform) {
			t.Errorf("no program for %s", platform)
		}
	}
}

// program returns the program that is built in a directory, for this platform. The commit
// is left out: a copy has none.
func (b build) program(t *testing.T, dir string) []byte {
	t.Helper()
	output := filepath.Join(t.TempDir(), "program")
	arguments := append([]string{"build", "-o", output, "-tags", strings.Join(b.Tags, ","), "-ldflags", strings.Join(b.Ldflags, " ")},
		b.Flags...)
	command := exec.CommandContext(t.Context(), "go", append(arguments, "-buildvcs=false", b.Main)...)
	command.Dir = dir
	command.Env = append(os.Environ(), append(b.Env, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)...)
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
	program, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// copied returns a directory with the sources.
func copied(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted and not yet committed, or a link to a directory
		}
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
