package command_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

// The help of every command has an example of that command.
func TestEveryCommandHasAnExample(t *testing.T) {
	for _, verb := range verbs() {
		if !strings.Contains(verb.Example, "oc preflight "+verb.Name()) {
			t.Errorf("%s: the help has no example with %q", verb.Name(), "oc preflight "+verb.Name())
		}
	}
}

func verbs() []*cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	return command.New("oc preflight", streams).Commands()
}
