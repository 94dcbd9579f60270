package schema

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
)

// NewCommand makes "schema", which prints the schema of a document.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [DOCUMENT]",
		Short: "Print the JSON schema of a document",
		Long: `Print the JSON schema (2020-12) of a document that "-o json" writes. Without an argument, list the documents. Fields are added within a version, so a schema permits those that it does not name. No cluster is used.

Exit codes: 0 it was printed, 1 the tool failed, 2 wrong usage or an unknown document.`,
		Example: `  # The documents with a schema
  oc preflight schema

  # The schema of what run, status and render write
  oc preflight schema report > report.schema.json`,
		Args:              flagset.Arguments(0, 1, "one document"),
		ValidArgsFunction: completeSchema,
		RunE:              func(_ *cobra.Command, args []string) error { return printSchema(streams, args) },
	}
}

func printSchema(streams genericiooptions.IOStreams, args []string) error {
	if len(args) == 0 {
		names, err := Names()
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := fmt.Fprintln(streams.Out, name); err != nil {
				return err
			}
		}
		return nil
	}
	err := Write(streams.Out, args[0])
	if _, ok := errors.AsType[*UnknownError](err); ok {
		return exitcode.BadUsage(err)
	}
	return err
}

func completeSchema(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, err := Names()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completion.Matching(names, prefix), cobra.ShellCompDirectiveNoFileComp
}
