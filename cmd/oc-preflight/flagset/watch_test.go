package flagset_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
)

// failing is a stream whose writes fail while it has an error.
type failing struct {
	bytes.Buffer

	err error
}

// Write implements io.Writer.
func (f *failing) Write(data []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Buffer.Write(data)
}

// TestWatchedAfterAFailedWrite writes a document that does not change: one that could not be written is written
// the next time, and one that was is not repeated.
func TestWatchedAfterAFailedWrite(t *testing.T) {
	document := map[string]string{"decision": "Ready"}
	stdout := &failing{err: errors.New("no space left on device")}
	var flags flagset.Output
	var watching flagset.Watching
	verb := &cobra.Command{}
	flags.Add(verb, document)
	watching.Add(verb, 0, "the end")
	report := filepath.Join(t.TempDir(), "report.json")
	if err := verb.ParseFlags([]string{"-o", "json", "--watch", "--report", "json=" + report}); err != nil {
		t.Fatal(err)
	}
	out, err := flags.Open(stdout, document)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	shown := watching.Watched(out, cli.New(pflag.NewFlagSet("", pflag.ContinueOnError), genericiooptions.IOStreams{ErrOut: io.Discard}))
	if err := shown.Write(document, document); !errors.Is(err, stdout.err) {
		t.Fatalf("the first write: %v, want %v", err, stdout.err)
	}
	filed, err := os.ReadFile(report)
	if err != nil || len(filed) == 0 {
		t.Fatalf("the file: %q, error %v; want the document, although standard output failed", filed, err)
	}
	stdout.err = nil
	for range 2 {
		if err := shown.Write(document, document); err != nil {
			t.Fatal(err)
		}
	}
	if got := stdout.String(); got != string(filed) {
		t.Errorf("standard output has %q, want the document once: %q", got, filed)
	}
}
