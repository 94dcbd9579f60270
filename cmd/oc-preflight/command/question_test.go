package command_test

import (
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/cmd/oc-preflight/question"
)

// Results that are kept are for one question: each flag of a command that keeps them states whether it
// changes the answer.
func TestFlagsOfCommandsThatKeepResultsHaveAnEffect(t *testing.T) {
	keeping := 0
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Flags().Lookup("results") != nil {
			keeping++
			for _, name := range question.Undeclared(c) {
				t.Errorf("%s: --%s has no effect: declare it with question.Declare where the flag is defined", c.CommandPath(), name)
			}
		}
		for _, each := range c.Commands() {
			visit(each)
		}
	}
	visit(command.New("oc preflight", genericiooptions.NewTestIOStreamsDiscard()))
	if keeping != 2 {
		t.Errorf("%d commands keep results, want those of \"fleet run\" and \"fleet targets\"", keeping)
	}
}
