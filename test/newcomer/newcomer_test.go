// Package newcomer_test answers: does the README of preflight-sdk work, word
// for word, for somebody who has Go, an empty directory and a module proxy?
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
	// inRepository is the section that is for an operator's repository, which
	// has client-go. All others are for an empty directory.
	inRepository = "Asking the cluster"
)

// newcomer is somebody with an empty directory.
type newcomer struct {
	dir         string
	environment []string
}

// newNewcomer gives a directory, and a module proxy that has the SDK as it is
// in the working tree, and nothing else: no network is needed or used.
func newNewcomer(t *testing.T) newcomer {
	t.Helper()
	proxy, home := t.TempDir(), t.TempDir()
	publish(t, proxy)
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return newcomer{
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
			"GOFLAGS=-modcacherw", // for the test to remove it
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

// run runs commands as a shell does where each has to succeed, and gives what
// was printed, and whether all succeeded.
func (n newcomer) run(t *testing.T, commands string) (output string, ok bool) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	shell.Dir, shell.Env = n.dir, n.environment
	text, err := shell.CombinedOutput()
	t.Logf("%s\n%s", commands, text)
	return string(text), err == nil
}

// try is run for commands that have to succeed.
func (n newcomer) try(t *testing.T, commands string) string {
	t.Helper()
	output, ok := n.run(t, commands)
	if !ok {
		t.Fatalf("%s failed:\n%s", commands, output)
	}
	return output
}

func (n newcomer) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (n newcomer) read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// follow does what the README says, block by block.
func (n newcomer) follow(t *testing.T, blocks []block) {
	t.Helper()
	for i, b := range blocks {
		switch {
		case b.section == inRepository:
		case b.file != "":
			n.write(t, b.file, b.text)
		case b.language == "sh":
			n.obey(t, b.text, promised(blocks[i+1:]))
		}
	}
}

// obey runs commands, and fails the test where what they print is not what is
// promised. They may fail only where the exit code is promised.
func (n newcomer) obey(t *testing.T, commands, promise string) {
	t.Helper()
	output, ok := n.run(t, commands)
	if want := !strings.Contains(promise, "exit status"); ok != want {
		t.Fatalf("the README says %q: success is %t, want %t:\n%s", commands, ok, want, output)
	}
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(promise), "…", ".*") + "$"
	if promise != "" && !regexp.MustCompile(pattern).MatchString(output) {
		t.Errorf("the README says that %q prints (-README +got):\n%s", commands, cmp.Diff(promise, output))
	}
}

// One test, because each step rests on those before it, as for a newcomer.
func TestFromNothingToACheck(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.follow(t, readme(t))

	// The SDK adds no module but itself.
	if diff := cmp.Diff(program+"\n"+sdk+" "+version+"\n", n.try(t, "go list -m all")); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	var sums []string
	for line := range strings.Lines(n.read(t, "go.sum")) {
		sums = append(sums, regexp.MustCompile(` h1:\S+\n$`).ReplaceAllString(line, ""))
	}
	if diff := cmp.Diff([]string{sdk + " " + version, sdk + " " + version + "/go.mod"}, sums); diff != "" {
		t.Errorf("go.sum (-want +got):\n%s", diff)
	}
	before := n.read(t, "go.sum")
	n.try(t, "go mod tidy")
	if diff := cmp.Diff(before, n.read(t, "go.sum")); diff != "" {
		t.Errorf("go mod tidy changes go.sum (-before +after):\n%s", diff)
	}

	// The manifest does not drift from the code.
	const manifest = "manifests/0000_50_widget-operator_90_preflight.yaml"
	for _, part := range []string{"kind: Job\n", "kind: ServiceAccount\n", "image: quay.io/openshift/origin-widget-operator:latest\n"} {
		if !strings.Contains(n.read(t, manifest), part) {
			t.Errorf("the manifest has no %q:\n%s", part, n.read(t, manifest))
		}
	}
	printed := n.try(t, "go run . --print-manifest --name widget-preflight --namespace openshift-widget"+
		" --image quay.io/openshift/origin-widget-operator:latest")
	if diff := cmp.Diff(n.read(t, manifest), printed); diff != "" {
		t.Errorf("--print-manifest is not what the test wrote (-test +flag):\n%s", diff)
	}
	n.write(t, "check.go", strings.Replace(n.read(t, "check.go"), "\t\tRun:", "\t\tRules: "+
		`[]preflight.Rule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},`+"\n\t\tRun:", 1))
	if output, ok := n.run(t, "go test ."); ok || !strings.Contains(output, "UPDATE_GOLDEN=1 go test") {
		t.Errorf("a rule that is not in the manifest: want a failure that says how to write it, got\n%s", output)
	}
}

// The exit codes are those of the program: go run has only one for failures.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	for _, b := range readme(t) {
		if slices.Contains([]string{"main.go", "check.go"}, b.file) {
			n.write(t, b.file, b.text)
		}
	}
	n.try(t, "go mod init "+program+" && go get "+sdk+" && go build -o preflight .")
	for arguments, want := range map[string]string{
		"--from 4.20.7 --to 4.21.3": "0",
		"--bad":                     "2",
		"--from 4.20.2 --to 4.21.3": "3",
		"--from latest --to 4.21.3": "4",
	} {
		if got := n.try(t, "./preflight "+arguments+" >output 2>&1 || code=$?; echo ${code:-0}"); got != want+"\n" {
			t.Errorf("preflight %s: exit code %swant %s", arguments, got, want)
		}
	}
}
