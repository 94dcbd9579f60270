package explain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
)

// NewCommand makes "explain", which explains reasons and names of findings without a cluster.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	output := "text"
	c := &cobra.Command{
		Use:   "explain [REASON | FINDING]",
		Short: "Explain a reason or the name of a finding",
		Long: `Print what a reason or the name of a finding means, what causes it and what to do. Without an argument, list all reasons and names by what they are about. A finding of a check that a release ships is documented by its operator, at the URL of the finding. No cluster is used.

Exit codes: 0 it was explained, 1 the tool failed, 2 wrong usage or an unknown word.`,
		Example: `  # A finding of a report
  oc preflight explain AdminAck-ack-4.18-kube-1.32-api-removals-in-4.19

  # The reason of a finding, in parentheses behind its name
  oc preflight explain AdminAckRequired`,
		Args:              flagset.Arguments(0, 1, "one reason or name"),
		ValidArgsFunction: completeExplain,
		RunE:              func(c *cobra.Command, args []string) error { return explainWord(c, streams, args, output) },
	}
	flagset.OutputFlag(c, &output, Page{})
	return c
}

func explainWord(c *cobra.Command, streams genericiooptions.IOStreams, args []string, output string) error {
	if err := expression.Check(output, Page{}); err != nil {
		return exitcode.BadUsage(err)
	}
	entries := Named(Entries(), c.Root().CommandPath())
	if len(args) == 0 {
		return expression.Write(streams.Out, output, All(entries), terminal.Style(streams.Out))
	}
	page, err := Find(entries, args[0])
	if _, ok := errors.AsType[*UnknownError](err); ok {
		return exitcode.BadUsage(fmt.Errorf("%w; list all with: %s", err, c.CommandPath()))
	}
	if err != nil {
		return err
	}
	return expression.Write(streams.Out, output, page, terminal.Style(streams.Out))
}

func completeExplain(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, entry := range Entries() {
		names = append(names, cobra.CompletionWithDesc(entry.Name, entry.Kind))
	}
	return completion.Matching(slices.Compact(names), prefix), cobra.ShellCompDirectiveNoFileComp
}
