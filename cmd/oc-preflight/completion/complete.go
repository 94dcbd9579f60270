// Package completion answers: with which values of the cluster is a word completed?
//
// [Of] makes the completion of an argument or a flag.
package completion

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// completionTime bounds the requests for one completion.
	completionTime = 2 * time.Second
	// maxCompletions bounds the values of one completion.
	maxCompletions = 500
)

// values are the values of an argument or a flag in a cluster. args are the arguments
// before it. An error leaves the completion empty.
type values func(ctx context.Context, reached *cluster.Cluster, args []string) ([]cobra.Completion, error)

// Of is the completion of values of the cluster: within completionTime, and without
// an error.
func Of(c *cli.Client, of values) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, stop := context.WithTimeout(verb.Context(), completionTime)
		defer stop()
		reached, err := c.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := of(ctx, reached, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return Matching(found, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// Matching are the completions that begin with the prefix, each on one line.
func Matching(found []cobra.Completion, prefix string) []cobra.Completion {
	var kept []cobra.Completion
	for _, each := range found {
		value, description, described := strings.Cut(each, "\t")
		if value = words.Line(value, terminal.MaxLine); !strings.HasPrefix(value, prefix) || strings.ContainsAny(value, " \t") ||
			len(kept) == maxCompletions {
			continue
		}
		if described {
			value = cobra.CompletionWithDesc(value, words.Line(description, terminal.MaxLine))
		}
		kept = append(kept, value)
	}
	return kept
}

// ListOf is complete for a list that is separated by commas.
func ListOf(c *cli.Client, of values) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before, last := "", prefix
		if at := strings.LastIndex(prefix, ","); at >= 0 {
			before, last = prefix[:at+1], prefix[at+1:]
		}
		found, directive := Of(c, of)(verb, args, last)
		for i := range found {
			found[i] = before + found[i]
		}
		return found, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// First completes the first arguments, one function for each.
func First(c *cli.Client, each ...values) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return Of(c, each[len(args)])(verb, args, prefix)
	}
}

// Fixed completes a flag of the command, which exists, with values that need no cluster.
func Fixed(c *cobra.Command, flag string, all ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return Matching(all, prefix), cobra.ShellCompDirectiveNoFileComp
	})
}

// Formats completes a flag of the command with formats, and an end that a file follows. After "=", it continues. The
// flag exists.
func Formats(c *cobra.Command, flag, end string, formats []string) {
	var all []string
	for _, format := range formats {
		all = append(all, format+end)
	}
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found := Matching(all, prefix)
		if !slices.ContainsFunc(found, func(format string) bool { return !strings.HasSuffix(format, "=") }) {
			return found, cobra.ShellCompDirectiveNoSpace
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	})
}
