package checktest

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateOutput = flag.Bool("update", false, "rewrite the outputs in testdata") //nolint:gochecknoglobals // the flag of the tests

// timestamp is a time in an output, which differs from run to run.
var timestamp = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`)

// ExpectOutput fails the test unless the program, run as by Run, writes the text in
// testdata/output.txt, which is part of the gallery of checks. A time there is always the
// same one.
func (e *Environment) ExpectOutput(t *testing.T, environment ...string) {
	t.Helper()
	output, _, _ := e.execute(t, "text", append(environment, "KUBECONFIG="+e.serviceAccount))
	output = timestamp.ReplaceAll(output, []byte("2026-12-01T12:00:00Z"))
	file := filepath.Join("testdata", "output.txt")
	if *updateOutput {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, output, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // a constant path
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(output)); diff != "" {
		t.Errorf("%s is another output; rewrite it with: go test . -update: -want +got:\n%s", file, diff)
	}
}
