package help

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
)

// own are the flags of a command that its help lists.
func own(c *cobra.Command) *pflag.FlagSet {
	listed := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" && flag.Name != "version" && !flag.Hidden {
			listed.AddFlag(flag)
		}
	})
	return listed
}

// fewFlags are listed without groups.
const fewFlags = 8

// heading is a heading of flags, and the flags.
type heading struct {
	title string
	flags *pflag.FlagSet
}

// headings are the flags of a command by group; few flags have one heading.
func headings(c *cobra.Command) []heading {
	listed, count := own(c), 0
	listed.VisitAll(func(*pflag.Flag) { count++ })
	switch {
	case count == 0:
		return nil
	case count <= fewFlags:
		return []heading{{"Flags", listed}}
	}
	byGroup := map[option.Group]*pflag.FlagSet{}
	listed.VisitAll(func(flag *pflag.Flag) {
		group := option.Of(flag).Group
		if byGroup[group] == nil {
			byGroup[group] = pflag.NewFlagSet(string(group), pflag.ContinueOnError)
		}
		byGroup[group].AddFlag(flag)
	})
	var made []heading
	for _, group := range option.Groups() {
		if flags := byGroup[group]; flags != nil {
			made = append(made, heading{string(group), flags})
		}
	}
	if flags := byGroup[""]; flags != nil {
		made = append(made, heading{"Flags", flags})
	}
	return made
}
