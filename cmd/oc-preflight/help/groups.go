package help

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Group is the heading beneath which the help of a command lists a flag.
type Group string

// The groups, in the order of the help.
const (
	// Target is what the command is about: a release, a run, a file, or the cluster of an archive.
	Target Group = "Target"
	// Clusters are the clusters of a fleet.
	Clusters Group = "Clusters"
	// Judgement changes how findings are judged.
	Judgement Group = "Judgement"
	// Trust is what signs a release, and what signs the verdict.
	Trust Group = "Trust"
	// Jobs are the checks that run, and how.
	Jobs Group = "Jobs"
	// Output is what is printed and written.
	Output Group = "Output"
	// Hosted selects hosted clusters and their NodePools.
	Hosted Group = "Hosted clusters"
	// Advanced has what few clusters need.
	Advanced Group = "Advanced"
)

func groups() []Group {
	return []Group{Target, Clusters, Judgement, Trust, Jobs, Output, Hosted, Advanced}
}

// annotation is the annotation of a flag with its group.
const annotation = "preflight.openshift.io/help-group"

// Declare puts flags that are defined into a group. A name that is not defined is a panic.
func Declare(flags *pflag.FlagSet, group Group, names ...string) {
	for _, name := range names {
		if err := flags.SetAnnotation(name, annotation, []string{string(group)}); err != nil {
			panic(err)
		}
	}
}

// groupOf is the group of a flag; empty where none is declared.
func groupOf(flag *pflag.Flag) Group {
	if declared := flag.Annotations[annotation]; len(declared) == 1 {
		return Group(declared[0])
	}
	return ""
}

// Undeclared are the names of the flags of a command that are in no group. Those of all commands, and --help and
// --version, are in none.
func Undeclared(c *cobra.Command) []string {
	var names []string
	own(c).VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(groups(), groupOf(flag)) {
			names = append(names, flag.Name)
		}
	})
	return names
}

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
	byGroup := map[Group]*pflag.FlagSet{}
	listed.VisitAll(func(flag *pflag.Flag) {
		if byGroup[groupOf(flag)] == nil {
			byGroup[groupOf(flag)] = pflag.NewFlagSet(string(groupOf(flag)), pflag.ContinueOnError)
		}
		byGroup[groupOf(flag)].AddFlag(flag)
	})
	var made []heading
	for _, group := range append(groups(), "") {
		if flags := byGroup[group]; flags != nil {
			made = append(made, heading{title(group), flags})
		}
	}
	return made
}

// title is the text of a heading.
func title(group Group) string {
	if group == "" {
		return "Flags"
	}
	return string(group)
}
