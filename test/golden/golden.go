// Package golden answers: is this output still the expected one?
//
// The expected outputs are files beside the tests. "go test -update" rewrites them, so
// that the commit of a change shows what it changes for people.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected outputs") //nolint:gochecknoglobals // a flag of the tests

// Update is true if the expected outputs are to be rewritten.
func Update() bool { return *update }

// Compare fails the test if got differs from the content of a file. With -update it
// writes the file.
func Compare[T ~string | ~[]byte](tb testing.TB, file string, got T) {
	tb.Helper()
	if Update() {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // a file of the test
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		tb.Errorf("%s: -want +got (to rewrite it: go test -update):\n%s", file, diff)
	}
}
