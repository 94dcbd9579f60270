package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

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

// complete is the completion of values of the cluster: within completionTime, and without
// an error.
func complete(c *client, of values) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, stop := context.WithTimeout(verb.Context(), completionTime)
		defer stop()
		reached, err := c.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := of(ctx, reached, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return matching(found, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// matching are the completions that begin with the prefix, each on one line.
func matching(found []cobra.Completion, prefix string) []cobra.Completion {
	var kept []cobra.Completion
	for _, each := range found {
		value, description, described := strings.Cut(each, "\t")
		if value = words.Line(value, maxLine); !strings.HasPrefix(value, prefix) || strings.ContainsAny(value, " \t") || len(kept) == maxCompletions {
			continue
		}
		if described {
			value = cobra.CompletionWithDesc(value, words.Line(description, maxLine))
		}
		kept = append(kept, value)
	}
	return kept
}

// completeList is complete for a list that is separated by commas.
func completeList(c *client, of values) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before, last := "", prefix
		if at := strings.LastIndex(prefix, ","); at >= 0 {
			before, last = prefix[:at+1], prefix[at+1:]
		}
		found, directive := complete(c, of)(verb, args, last)
		for i := range found {
			found[i] = before + found[i]
		}
		return found, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// completeFirst completes the first arguments, one function for each.
func completeFirst(c *client, each ...values) cobra.CompletionFunc {
	return func(verb *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, each[len(args)])(verb, args, prefix)
	}
}

// fixed are values that need no cluster.
func fixed(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return matching(all, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFormats completes a flag of the command with formats, and an end that a file
// follows. The flag exists.
func completeFormats(c *cobra.Command, flag, end string, formats []string) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if end != "" {
		directive = cobra.ShellCompDirectiveNoSpace
	}
	var all []string
	for _, format := range formats {
		all = append(all, format+end)
	}
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return matching(all, prefix), directive
	})
}
