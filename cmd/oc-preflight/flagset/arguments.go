package flagset

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/words"
)

// NoArguments refuses arguments as wrong usage.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exitcode.BadUsage(fmt.Errorf("%q takes no argument, but got %q; see %q", c.CommandPath(), args[0], c.CommandPath()+" --help"))
	}
	return nil
}

// OneArgument requires exactly one argument; the error names it by what.
func OneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return exitcode.BadUsage(fmt.Errorf("%q takes %s, but got %s; see %q", c.CommandPath(), what, words.Count(len(args), "argument"), c.CommandPath()+" --help"))
		}
		return nil
	}
}

// AtMostOneRun rejects more than one argument as bad usage.
func AtMostOneRun(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exitcode.BadUsage(fmt.Errorf("%q takes the ID of one run at most, but got %s; see %q", c.CommandPath(), words.Count(len(args), "argument"), c.CommandPath()+" --help"))
	}
	return nil
}

// AtMostTwoRuns rejects more than two arguments as bad usage.
func AtMostTwoRuns(c *cobra.Command, args []string) error {
	if len(args) > 2 {
		return exitcode.BadUsage(fmt.Errorf("%q takes the IDs of two runs at most, but got %s; see %q", c.CommandPath(), words.Count(len(args), "argument"), c.CommandPath()+" --help"))
	}
	return nil
}

// RunAndCheck requires the name of a check, after the ID of a run or not.
func RunAndCheck(c *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return exitcode.BadUsage(fmt.Errorf("%q takes the name of a check, after the ID of a run if it is not the newest, but got %s; see %q", c.CommandPath(), words.Count(len(args), "argument"), c.CommandPath()+" --help"))
	}
	return nil
}
