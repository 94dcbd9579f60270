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

// The environment variables of the changed oc-preflight: the seconds by which its clock is
// ahead, and the format of the records that it writes.
const (
	clockVariable  = "PREFLIGHT_TEST_CLOCK_AHEAD"
	formatVariable = "PREFLIGHT_TEST_FORMAT"
)

// tool is a build of oc-preflight, the time by which its clock is ahead, and the format of
// its records; only the changed build has the latter two.
type tool struct {
	path   string
	ahead  time.Duration
	format string
}

// otherVersion is the version of the changed oc-preflight.
const otherVersion = "v99.0.0"

// change replaces the text old of a source file. The file is new if old is empty.
type change struct{ file, old, with string }

// buildTool builds oc-preflight from the current source with changes: another version, an
// adjustable clock and an adjustable format. The clock is a change of the standard library.
// So the product has no code for them.
func buildTool(t *testing.T) tool {
	t.Helper()
	clock := filepath.Join(goEnv(t, "GOROOT"), "src", "time")
	root := filepath.Dir(goEnv(t, "GOMOD"))
	return build(t, root, []change{
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
		{filepath.Join(root, "runner/record/recordformat/header.go"), `format     = "1"`, `currentFormat = "1"`},
		{filepath.Join(root, "runner/record/recordformat/otherformat.go"), "", fmt.Sprintf(`package recordformat

import (
	"cmp"
	"os"
)

var format = cmp.Or(os.Getenv(%q), currentFormat)
`, formatVariable)},
	})
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
