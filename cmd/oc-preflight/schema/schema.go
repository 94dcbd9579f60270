// Package schema answers: which form does a JSON document have?
//
// The schemas are generated from the Go types of the documents (JSON Schema 2020-12).
// They state what this version writes; a reader ignores fields that it does not know, so
// no schema forbids them.
package schema

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
)

//go:embed *.json
var files embed.FS

// extension ends the name of a file with a schema.
const extension = ".json"

// Names are the documents that have a schema, sorted.
func Names() ([]string, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), extension))
	}
	return names, nil
}

// UnknownError is the error for a document without a schema.
type UnknownError struct {
	Name  string
	Names []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("no document is called %q: it must be one of %s", e.Name, strings.Join(e.Names, ", "))
}

// Write writes the schema of a document. A name without a schema is an UnknownError.
func Write(w io.Writer, name string) error {
	names, err := Names()
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return &UnknownError{Name: name, Names: names}
	}
	text, err := files.ReadFile(name + extension)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Options are the arguments of "schema".
type Options struct {
	// Document is the document whose schema is printed; empty to list all.
	Document string
}

// NewCommand returns the command "schema", which prints the schema of a document.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [DOCUMENT]",
		Short: "Print the JSON schema of a document",
		Long: `Print the JSON schema (2020-12) of a document that "-o json" writes. Without an argument, list the documents. Fields may be added within a version, so a schema permits fields that it does not name. No cluster is used.

Exit codes: 0 it was printed, 1 the tool failed, 2 wrong usage or an unknown document.`,
		Example: `  # The documents with a schema
  oc preflight schema

  # The schema of what run, status and render write
  oc preflight schema report > report.schema.json`,
		Args:              flagset.Arguments(0, 1, "one document"),
		ValidArgsFunction: completeSchema,
		RunE: func(c *cobra.Command, args []string) error {
			options := Options{Document: flagset.First(args)}
			return flagset.Execute(c, options, func() error { return printSchema(streams, options) })
		},
	}
}

func printSchema(streams genericiooptions.IOStreams, options Options) error {
	if options.Document == "" {
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
	err := Write(streams.Out, options.Document)
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
