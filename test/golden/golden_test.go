package golden_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/openshift/update-preflight/test/golden"
)

// recorder records whether a test failed.
type recorder struct {
	testing.TB

	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "expected.txt")
	if err := os.WriteFile(file, []byte("expected"), 0o600); err != nil {
		t.Fatal(err)
	}
	for got, fails := range map[string]bool{"expected": false, "expected\n": true, "": true} {
		r := &recorder{TB: t}
		golden.Compare(r, file, got)
		if r.failed != fails {
			t.Errorf("%q: failed is %t, want %t", got, r.failed, fails)
		}
	}
}
