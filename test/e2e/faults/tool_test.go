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

// clockVariable is the environment variable by which a tool with a wrong clock
// is given the seconds that it is ahead.
const clockVariable = "PREFLIGHT_TEST_CLOCK_AHEAD"

// tool is an oc-preflight on another machine, with a clock of its
// own.
type tool struct {
	path  string
	ahead time.Duration
}

// tools are the oc-preflights there are besides the one that is under test.
type tools struct {
	// other calls itself another version, and its clock can be wrong; newer also
	// records in a format that is not known yet.
	other, newer tool
}

// otherVersion is what the others call themselves.
const otherVersion = "v99.0.0"

// change is how a source file differs in another tool. The file is new when
// there is no old text.
type change struct{ file, old, with string }

// buildTools builds the others from this source, as it will have changed by then.
// The clock is that of the standard library: nothing in the product knows of it.
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

// build builds the tool with changes, none of which touches a file.
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
	path, plan := filepath.Join(directory, "oc-preflight"), filepath.Join(directory, "overlay.json")
	if err := os.WriteFile(plan, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", plan, "-o", path, "./cmd/oc-preflight")
	compile.Dir, compile.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("cannot build another tool: %v\n%s", err, output)
	}
	return tool{path: path}
}

// apply is the text of the file as it is changed.
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
		t.Fatalf("%s does not have %q once: the change has to be written anew", c.file, c.old)
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
