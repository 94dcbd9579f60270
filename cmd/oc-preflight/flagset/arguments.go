package flagset

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/words"
)

// OneVerb rejects a verb that a command does not have. The error names the most similar ones, or the command of that
// name for one cluster.
func OneVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	const mostDifferent = 2
	c.SuggestionsMinimumDistance = mostDifferent
	var meant []string
	for _, name := range c.SuggestionsFor(args[0]) {
		meant = append(meant, fmt.Sprintf("%q", c.CommandPath()+" "+name))
	}
	if elsewhere, rest, err := c.Root().Find(args[:1]); err == nil && len(rest) == 0 && len(meant) == 0 {
		meant = []string{fmt.Sprintf("%q", elsewhere.CommandPath())}
	}
	remedy := fmt.Sprintf("; see %q", c.CommandPath()+" --help")
	if len(meant) > 0 {
		remedy = "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return exitcode.BadUsage(fmt.Errorf("unknown command %q for %q%s", words.Line(args[0], longestVerb), c.CommandPath(), remedy))
}

// longestVerb bounds what an error shows of an unknown verb, in bytes.
const longestVerb = 64

// NoArguments refuses arguments as wrong usage.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exitcode.BadUsage(fmt.Errorf("%q takes no argument, but got %q; see %q", c.CommandPath(), args[0], c.CommandPath()+" --help"))
	}
	return nil
}

// Arguments requires least to most arguments; the error names them by what.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return exitcode.BadUsage(fmt.Errorf("%q takes %s, but got %s; see %q", c.CommandPath(), what, words.Count(len(args), "argument"), c.CommandPath()+" --help"))
		}
		return nil
	}
}
