package command_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

// Every command teaches by an example, which is a command line of that command.
func TestEveryCommandHasAnExample(t *testing.T) {
	for _, verb := range verbs() {
		if !strings.Contains(verb.Example, "oc preflight "+verb.Name()) {
			t.Errorf("%s: the help has no example with %q", verb.Name(), "oc preflight "+verb.Name())
		}
	}
}

// An example names only flags that exist.
func TestExamplesHaveKnownFlags(t *testing.T) {
	for _, verb := range verbs() {
		for line := range strings.Lines(verb.Example) {
			line, isOne := strings.CutPrefix(strings.TrimSpace(line), "oc preflight "+verb.Name())
			if !isOne {
				continue
			}
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " > ")
			for word := range strings.FieldsSeq(line) {
				name, isFlag := strings.CutPrefix(word, "--")
				name, _, _ = strings.Cut(name, "=")
				if isFlag && verb.Flags().Lookup(name) == nil && verb.InheritedFlags().Lookup(name) == nil {
					t.Errorf("%s: an example has the unknown flag --%s", verb.Name(), name)
				}
			}
		}
	}
}

func verbs() []*cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	return command.New("oc preflight", streams).Commands()
}
