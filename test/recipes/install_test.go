package recipes_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/documents"
)

// pack creates the archive and the checksums of a release in a directory, with the names of
// goreleaser, and a program curl that copies both.
const pack = `
cp "$PROGRAM" oc-preflight
tar -czf oc-preflight_linux_amd64.tar.gz oc-preflight
sha256sum oc-preflight_linux_amd64.tar.gz > SHA256SUMS
mkdir bin
printf '#!/bin/sh\ncp "%s"/oc-preflight_* "%s"/SHA256SUMS .\n' "$PWD" "$PWD" > bin/curl
chmod 755 bin/curl
`

// inShell runs commands in a directory, and returns their output.
func inShell(ctx context.Context, dir, path, commands string) (string, error) {
	command := exec.CommandContext(ctx, "sh", "-e", "-c", commands)
	command.Dir, command.Env = dir, []string{"HOME=" + dir, "PATH=" + path, "PROGRAM=" + os.Getenv("PROGRAM")}
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestInstall runs the documented steps of the installation for a release of this working
// tree, and for one whose archive does not match its checksum.
func TestInstall(t *testing.T) {
	text, err := documents.Read(root, "cmd/oc-preflight/INSTALL.md")
	if err != nil {
		t.Fatal(err)
	}
	var steps, completion string
	for _, each := range documents.Blocks(text) {
		switch each.Section {
		case "Release":
			steps = each.Text
		case "Shell completion":
			completion = each.Text
		}
	}
	t.Setenv("PROGRAM", testCluster.Program(t))
	release, home := t.TempDir(), t.TempDir()
	if output, err := inShell(t.Context(), release, os.Getenv("PATH"), pack); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	path := filepath.Join(release, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH")
	output, err := inShell(t.Context(), home, path, steps+completion)
	if err != nil || !strings.Contains(output, "oc-preflight_linux_amd64.tar.gz: OK") {
		t.Fatalf("the documented steps: %v\n%s", err, output)
	}
	for call, want := range map[string]string{
		"kubectl-preflight run --help":      "kubectl preflight run --to-latest",
		"oc_complete-preflight explai":      "explain\t",
		"kubectl_complete-preflight explai": "explain\t",
	} {
		// By its absolute path, as oc and kubectl call a plugin.
		if output, err := inShell(t.Context(), home, path, `"$PWD"/.local/bin/`+call); err != nil || !strings.Contains(output, want) {
			t.Errorf("%s: %v, want %q in:\n%s", call, err, want, output)
		}
	}
	const tamper = `echo more >> oc-preflight_linux_amd64.tar.gz`
	if output, err := inShell(t.Context(), release, os.Getenv("PATH"), tamper); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	other := t.TempDir()
	if output, err := inShell(t.Context(), other, path, steps); err == nil || !strings.Contains(output, "FAILED") {
		t.Errorf("an archive that does not match its checksum: %v, want FAILED:\n%s", err, output)
	}
}
