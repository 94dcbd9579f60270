//go:build faults

package faults_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVariable is the environment variable with the seconds by which the clock of a tool
// is ahead.
const clockVariable = "PREFLIGHT_TEST_CLOCK_AHEAD"

// tool is a build of oc-preflight, and the time by which its clock is ahead.
type tool struct {
	path  string
	ahead time.Duration
}

// tools are builds of oc-preflight that differ from the current version.
type tools struct {
	// other has another version and an adjustable clock; newer also writes records in a
	// newer format.
	other, newer tool
}

// otherVersion is the version of all tools.
const otherVersion = "v99.0.0"

// change replaces the text old of a source file. The file is new if old is empty.
type change struct{ file, old, with string }

// buildTools builds the tools from the current source with changes. The adjustable clock is
// a change of the standard library, so the product has no code for it.
func buildTools(t *testing.T) tools {
	t.Helper()
	clock := filepath.Join(goEnv(t, "GOROOT"), "src", "time")
	root := filepath.Dir(goEnv(t, "GOMOD"))
	other := []change{
		{filepath.Join(clock, "time.go"), "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += int64(ahead)\n"},
		{filepath.Join(clock, "ahead.go"), "", fmt.Sprintf(`package time

import "syscall"

var ahead = func() int {
	text, _ := syscall.Getenv(%q)
	seconds, _ := atoi(text)
	return seconds
}()
`, clockVariable)},
		{filepath.Join(root, "cmd/internal/program/program.go"), "return info.Main.Version", fmt.Sprintf("return %q", otherVersion)},
	}
	newer := append(other, change{filepath.Join(root, "runner/record/header.go"), `format     = "1"`, `format     = "2"`})
	return tools{other: build(t, root, other), newer: build(t, root, newer)}
}

// build builds oc-preflight with changes, as an overlay: no source file is modified.
func build(t *testing.T, root string, changes []change) tool {
	t.Helper()
	directory := t.TempDir()
	replace := map[string]string{}
	for i, c := range changes {
		replace[c.file] = filepath.Join(directory, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[c.file], []byte(c.apply(t)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path, overlayPath := filepath.Join(directory, "oc-preflight"), filepath.Join(directory, "overlay.json")
	if err := os.WriteFile(overlayPath, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", overlayPath, "-o", path, "./cmd/oc-preflight")
	compile.Dir, compile.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("cannot build oc-preflight with changes: %v\n%s", err, output)
	}
	return tool{path: path}
}

// apply returns the changed text of the file.
func (c change) apply(t *testing.T) string {
	t.Helper()
	if c.old == "" {
		return c.with
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), c.old) != 1 {
		t.Fatalf("%s must contain %q exactly once: update this change", c.file, c.old)
	}
	return strings.Replace(string(text), c.old, c.with, 1)
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(value))
}
