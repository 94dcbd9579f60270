package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/help"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
)

// addVerbs adds the verbs to root, and the help of all.
func addVerbs(root *cobra.Command, roles *role.List, sections []help.Section) {
	help.AddSections(root, sections...)
	last := sections[len(sections)-1].Title
	root.SetHelpCommandGroupID(last)
	root.SetCompletionCommandGroupID(last)
	for _, verb := range root.Commands() {
		withRemedies(verb, roles)
	}
	root.SetUsageFunc(func(c *cobra.Command) error { return help.Usage(c.OutOrStderr(), c, columns(c.OutOrStderr())) })
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		write := help.Command
		if !c.HasParent() {
			write = help.Overview
		}
		_ = write(c.OutOrStdout(), c, columns(c.OutOrStdout())) // cobra has no use for the error
	})
}

// columns is the width in which help is written: the width of a terminal, at most one that is easy to read, and 80
// elsewhere.
func columns(w io.Writer) int {
	const usual, most = 80, 120
	file, ok := terminal.Of(w)
	if !ok {
		return usual
	}
	width, _ := terminal.Size(file)
	return min(width, most)
}

// newHelp makes "help": the one of cobra exits with 0 for an unknown command.
func newHelp() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command, or list all commands",
		Long:  "Show the help of a command. Without one, list the commands that most users need; with --all, list every command, or all that is said about the flags of one.",
		Example: `  oc preflight help --all
  oc preflight help --all run
  oc preflight help fleet targets`,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			shown, rest, err := root.Find(args)
			switch {
			case err != nil:
				return err
			case len(rest) > 0:
				return flagset.OneVerb(shown, rest)
			case all:
				return help.Whole(c.OutOrStdout(), shown, columns(c.OutOrStdout()))
			}
			return shown.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			shown, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var found []cobra.Completion
			for _, verb := range shown.Commands() {
				if strings.HasPrefix(verb.Name(), prefix) && !verb.Hidden {
					found = append(found, cobra.CompletionWithDesc(verb.Name(), verb.Short))
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&all, "all", false, "List every command, or the flags of one in full.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "all")
	return c
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Example: `  oc preflight options`,
		Short:   "List the flags of all commands",
		Long:    "List the flags that every command has: how the cluster is reached, and how much is logged.",
		Args:    flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), c.Root().PersistentFlags().FlagUsagesWrapped(columns(c.OutOrStdout())))
			return err
		},
	}
}
