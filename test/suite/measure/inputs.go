//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inputsVariable is the environment variable with the file to which a test adds the files
// that its programs were built from (package build).
const inputsVariable = "PREFLIGHT_TEST_INPUTS"

// suiteVariables begins the names of variables that differ in each run of the suite, and on
// which no result depends.
const suiteVariables = "PREFLIGHT_TEST_"

// inputs are the files for which the Go tool caches the result of a test.
//
// The Go tool gives the binary of a test the argument -test.testlogfile, reads from that file
// which files and variables the test has read, and caches the result for their state. With
// -exec it leaves the argument out, since the program could run elsewhere, but it reads the
// file. Without it results are not cached.
type inputs struct {
	// log is the file that the test writes and the Go tool reads.
	log string
	// declared has the files that the test has declared, one a line, each maybe several times.
	declared string
}

// rewrite replaces the programs in the log by what they were built from, and leaves out the
// variables of the suite. A program is
// touched by each build, so that no result would be used again, and a result of a test that
// only executes a program would be used after a change of the program.
func (i inputs) rewrite() error {
	log, err := os.ReadFile(i.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the test has crashed
	}
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	declared, err := os.ReadFile(i.declared)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(log), "\n"), func(line string) bool {
		operation, name, _ := strings.Cut(line, " ")
		if operation == "getenv" {
			return strings.HasPrefix(name, suiteVariables)
		}
		return (operation == "open" || operation == "stat") && strings.HasPrefix(name, filepath.Dir(self)+string(filepath.Separator))
	})
	sources := strings.Fields(string(declared))
	slices.Sort(sources)
	rewritten := bytes.NewBufferString(strings.Join(lines, ""))
	for _, path := range slices.Compact(sources) {
		rewritten.WriteString("stat " + path + "\n")
	}
	return os.WriteFile(i.log, rewritten.Bytes(), 0o600) //nolint:gosec // the file that the Go tool named
}
