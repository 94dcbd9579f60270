package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
)

type verbGroup struct {
	id, title string
	verbs     []*cobra.Command
}

// addGroups adds the verbs to root, by group and in order. The flags of all verbs are in
// the help of "options" alone.
func addGroups(root *cobra.Command, groups []verbGroup) {
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, verb := range group.verbs {
			verb.GroupID = group.id
			withRemedies(verb)
			root.AddCommand(verb)
		}
	}
	last := groups[len(groups)-1].id
	root.SetHelpCommandGroupID(last)
	root.SetCompletionCommandGroupID(last)
	root.SetUsageFunc(withoutGlobalFlags(root, root.UsageFunc()))
}

// withoutGlobalFlags returns usage without the flags that every command has. They are
// hidden while it is written: a template of our own would make the linker keep the
// methods of every type, a third of the binary.
func withoutGlobalFlags(root *cobra.Command, usage func(*cobra.Command) error) func(*cobra.Command) error {
	return func(c *cobra.Command) error {
		hide := func(hidden bool) {
			root.PersistentFlags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = hidden })
		}
		hide(true)
		defer hide(false)
		if err := usage(c); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.OutOrStderr(), "\nUse \"%s options\" for the flags of all commands, such as --kubeconfig.\n", root.CommandPath())
		return err
	}
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Example: `  oc preflight options`,
		Short:   "List the flags of all commands",
		Long:    "List the flags that every command has: how the cluster is reached, and how much is logged.",
		Args:    flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), c.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}
