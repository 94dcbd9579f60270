package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// verbGroup is a group of verbs in the help.
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
			root.AddCommand(verb)
		}
	}
	last := groups[len(groups)-1].id
	root.SetHelpCommandGroupID(last)
	root.SetCompletionCommandGroupID(last)
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
}

// usageTemplate is cobra's without the flags that every verb has.
func usageTemplate(template string) string {
	const global = "{{if .HasAvailableInheritedFlags}}\n\nGlobal Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}"
	return strings.NewReplacer(
		global, "\n\nUse \"{{.Root.CommandPath}} options\" for the flags of all commands, such as --kubeconfig.",
		".LocalFlags.FlagUsages", ".LocalNonPersistentFlags.FlagUsages",
	).Replace(template)
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Example: `  oc preflight options`,
		Short:   "List the flags of all commands",
		Long:    "List the flags that every command has: how the cluster is reached, and how much is logged.",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), c.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}
