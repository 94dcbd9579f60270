// Package newcomer_test answers: does every step of the README of preflight-sdk
// work, literally, with Go, an empty directory and a module proxy?
package newcomer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/test/modules"
)

const (
	sdk     = "github.com/openshift/update-preflight/preflight-sdk"
	version = "v0.1.0"
	program = "example.com/widget-preflight"
	// manifest is the file that the README creates.
	manifest = "manifests/0000_50_widget-operator_90_preflight.yaml"
	// inRepository is the section for the repository of an operator, which requires
	// client-go. All other sections start in an empty directory.
	inRepository = "Reading from the cluster"
)

// workspace is a directory in which the steps of the README are executed.
type workspace struct {
	dir         string
	environment []string
}

// newWorkspace returns an empty directory. Its module proxy contains only the SDK of the
// working tree, so that no network is needed.
func newWorkspace(t *testing.T) workspace {
	t.Helper()
	proxy, home := t.TempDir(), t.TempDir()
	publish(t, proxy)
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return workspace{
		dir: t.TempDir(),
		environment: []string{
			"PATH=" + os.Getenv("PATH"),
			"HOME=" + home,
			"GOPROXY=file://" + filepath.ToSlash(proxy),
			"GOSUMDB=off",
			"GOENV=off",
			"GOWORK=off",
			"GOTOOLCHAIN=local",
			"GOMODCACHE=" + filepath.Join(home, "mod"),
			"GOFLAGS=-modcacherw", // So that the test can remove the cache.
			"GOCACHE=" + strings.TrimSpace(string(cache)),
		},
	}
}

// publish adds the SDK of the working tree to the module proxy in a directory.
func publish(t *testing.T, proxy string) {
	t.Helper()
	const root = "../.."
	published, err := modules.Published(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range published {
		if module.Path != sdk {
			continue
		}
		if err := module.Publish(t.Context(), root, proxy, version); err != nil {
			t.Fatal(err)
		}
	}
}

// run executes commands in a shell until one fails. It returns their output and
// whether all of them succeeded.
func (w workspace) run(t *testing.T, commands string) (output string, ok bool) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	shell.Dir, shell.Env = w.dir, w.environment
	text, err := shell.CombinedOutput()
	t.Logf("%s\n%s", commands, text)
	return string(text), err == nil
}

// mustRun fails the test unless all commands succeed.
func (w workspace) mustRun(t *testing.T, commands string) string {
	t.Helper()
	output, ok := w.run(t, commands)
	if !ok {
		t.Fatalf("%s failed:\n%s", commands, output)
	}
	return output
}

func (w workspace) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w workspace) read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeFiles writes the files in the blocks.
func (w workspace) writeFiles(t *testing.T, blocks []block) {
	t.Helper()
	for _, b := range blocks {
		if b.file != "" {
			w.write(t, b.file, b.text)
		}
	}
}

// follow executes the blocks: it writes the files and runs the commands.
func (w workspace) follow(t *testing.T, blocks []block) {
	t.Helper()
	for i, b := range blocks {
		switch {
		case b.file != "":
			w.write(t, b.file, b.text)
		case b.language == "sh":
			w.runDocumented(t, b.text, documentedOutput(blocks[i+1:]))
		}
	}
}

// runDocumented runs commands and fails the test unless their output is as
// documented. They may fail only if the documented output has an exit status.
func (w workspace) runDocumented(t *testing.T, commands, documented string) {
	t.Helper()
	output, ok := w.run(t, commands)
	if want := !strings.Contains(documented, "exit status"); ok != want {
		t.Fatalf("command of the README %q: success is %t, want %t:\n%s", commands, ok, want, output)
	}
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(documented), "…", ".*") + "$"
	if documented != "" && !regexp.MustCompile(pattern).MatchString(output) {
		t.Errorf("output of %q (-README +got):\n%s", commands, cmp.Diff(documented, output))
	}
}

// TestEmptyDirectory is one test because each step depends on the previous ones.
func TestEmptyDirectory(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.follow(t, slices.DeleteFunc(readme(t), block.isInRepository))

	// The SDK has no dependencies.
	if diff := cmp.Diff(program+"\n"+sdk+" "+version+"\n", w.mustRun(t, "go list -m all")); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	var sums []string
	for line := range strings.Lines(w.read(t, "go.sum")) {
		sums = append(sums, regexp.MustCompile(` h1:\S+\n$`).ReplaceAllString(line, ""))
	}
	if diff := cmp.Diff([]string{sdk + " " + version, sdk + " " + version + "/go.mod"}, sums); diff != "" {
		t.Errorf("go.sum (-want +got):\n%s", diff)
	}
	before := w.read(t, "go.sum")
	w.mustRun(t, "go mod tidy")
	if diff := cmp.Diff(before, w.read(t, "go.sum")); diff != "" {
		t.Errorf("go mod tidy changes go.sum (-before +after):\n%s", diff)
	}

	// The manifest is the output of the program.
	for _, part := range []string{"kind: Job\n", "kind: ServiceAccount\n", "image: quay.io/openshift/origin-widget-operator:latest\n"} {
		if !strings.Contains(w.read(t, manifest), part) {
			t.Errorf("the manifest does not contain %q:\n%s", part, w.read(t, manifest))
		}
	}
	w.expectPrintedManifest(t)
	w.write(t, "check.go", strings.Replace(w.read(t, "check.go"), "\t\tRun:", "\t\tRules: "+
		`[]preflight.Rule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},`+"\n\t\tRun:", 1))
	if output, ok := w.run(t, "go test ."); ok || !strings.Contains(output, "UPDATE_GOLDEN=1 go test") {
		t.Errorf("a rule that is not in the manifest: want a failure that states how to update the manifest, got\n%s", output)
	}
}

// expectPrintedManifest fails the test unless the manifest is what the program
// prints.
func (w workspace) expectPrintedManifest(t *testing.T) {
	t.Helper()
	printed := w.mustRun(t, "go run . --print-manifest --name widget-preflight --namespace openshift-widget"+
		" --image quay.io/openshift/origin-widget-operator:latest")
	if diff := cmp.Diff(w.read(t, manifest), printed); diff != "" {
		t.Errorf("the manifest differs from --print-manifest (-manifest +printed):\n%s", diff)
	}
}

// TestExitCodes runs the binary: go run replaces the exit code of a program.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.writeFiles(t, slices.DeleteFunc(readme(t), block.isInRepository))
	w.mustRun(t, "go mod init "+program+" && go get "+sdk+" && go build -o preflight .")
	for arguments, want := range map[string]string{
		"--from 4.20.7 --to 4.21.3": "0",
		"--bad":                     "2",
		"--from 4.20.2 --to 4.21.3": "3",
		"--from latest --to 4.21.3": "4",
	} {
		if got := w.mustRun(t, "./preflight "+arguments+" >output 2>&1 || code=$?; echo ${code:-0}"); got != want+"\n" {
			t.Errorf("preflight %s: exit code %swant %s", arguments, got, want)
		}
	}
}
