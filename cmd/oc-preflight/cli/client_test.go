package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
)

// TestWaiting ends a step twice, as a command does that ends it before it prints, and again
// when it returns.
func TestWaiting(t *testing.T) {
	for why, row := range map[string]struct {
		took  time.Duration
		shown bool
	}{
		"a short step is not shown": {time.Second, false},
		"a long one is":             {time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			streams, _, _, shown := genericiooptions.NewTestIOStreams()
			end := cli.New(pflag.NewFlagSet("", pflag.ContinueOnError), streams).Waiting("reading the record")
			time.Sleep(row.took)
			end()
			end()
			if got := strings.Contains(shown.String(), "reading the record"); got != row.shown {
				t.Errorf("%s: got %q", why, shown)
			}
		})
	}
}
