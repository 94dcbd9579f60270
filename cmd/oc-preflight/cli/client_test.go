package cli_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
)

// stream is a stream whose first write is awaited.
type stream struct {
	bytes.Buffer

	once    sync.Once
	written chan struct{}
}

// Write implements io.Writer.
func (s *stream) Write(data []byte) (int, error) {
	defer s.once.Do(func() { close(s.written) })
	return s.Buffer.Write(data)
}

// TestWaiting has a step that ends at once and one that lasts until it is shown. Each ends
// twice, as with a command that ends it before it prints, and again when it returns.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown := &stream{written: make(chan struct{})}
		client := cli.New(pflag.NewFlagSet("", pflag.ContinueOnError), genericiooptions.IOStreams{ErrOut: shown})
		end := client.Waiting("reading the short record")
		end()
		end()
		end = client.Waiting("reading the long record")
		<-shown.written
		end()
		end()
		if got := shown.String(); !strings.Contains(got, "reading the long record") || strings.Contains(got, "short") {
			t.Errorf("want the step that lasts, and not the one that ended at once; got %q", got)
		}
	})
}
