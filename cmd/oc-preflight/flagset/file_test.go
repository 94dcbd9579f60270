package flagset_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
)

// TestReplaceAfterAFailedWrite has a write that fails in the middle, as on a full disk, before one that does not.
func TestReplaceAfterAFailedWrite(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "report.json")
	file, err := flagset.CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	write := func(text string, failure error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, failure)
		}
	}
	for _, tc := range []struct {
		reason, text string
		failure      error
		want         string
	}{
		{reason: "the first document", text: `{"one":1}`, want: `{"one":1}`},
		{reason: "a failed write leaves the file as it was", text: `{"half":`, failure: full, want: `{"one":1}`},
		{reason: "the next document has nothing of the failed one", text: `{"two":2}`, want: `{"two":2}`},
	} {
		if err := file.Replace(write(tc.text, tc.failure)); !errors.Is(err, tc.failure) {
			t.Errorf("%s: error %v, want %v", tc.reason, err, tc.failure)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != tc.want {
			t.Errorf("%s: %q, error %v; want %q", tc.reason, got, err, tc.want)
		}
	}
	file.Discard()
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, error %v; want the report alone", entries, err)
	}
}
