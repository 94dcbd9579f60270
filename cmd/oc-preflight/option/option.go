// Package option answers: which properties does a flag have besides its value?
//
// [Declare] declares them once, where a flag is defined. The help, the completion and the commands that are printed
// derive from them by [Of], and so does [Key], which is equal for command lines that ask the same. [Undeclared] lists
// flags without properties, and [Combine] rejects flags that exclude or require each other.
package option

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Option has the properties of a flag.
type Option struct {
	// Group has the flag in the help; empty for a flag of all commands.
	Group Group
	// Effect states what changes with the value.
	Effect Effect
	// Again is when a command that is printed for a request has the flag of the request.
	Again Again
	// Values are completed from the cluster; empty for a flag whose values are not.
	Values Values
}

// Group is a subject of flags, under which the help of a command lists them.
type Group string

// The groups, in the order of the help.
const (
	// Target selects the subject of the command: a release, a run, a file, or the cluster of an archive.
	Target Group = "Target"
	// Clusters are the clusters of a fleet.
	Clusters Group = "Clusters"
	// Judgement changes how findings are evaluated.
	Judgement Group = "Judgement"
	// Trust has the keys of a release, and the key of the verdict.
	Trust Group = "Trust"
	// Jobs are the checks that run, and how.
	Jobs Group = "Jobs"
	// Output changes what is printed and written.
	Output Group = "Output"
	// Hosted selects hosted clusters and their NodePools.
	Hosted Group = "Hosted clusters"
	// Advanced has what few clusters need.
	Advanced Group = "Advanced"
)

// Groups are all groups, in the order of the help.
func Groups() []Group {
	return []Group{Target, Clusters, Judgement, Trust, Jobs, Output, Hosted, Advanced}
}

// Effect states what changes with the value of a flag.
type Effect string

// The effects. A flag without one may change the answer.
const (
	// OnAnswer means that another value may give another answer about a cluster.
	OnAnswer Effect = "answer"
	// OnAnswerByContent is OnAnswer for a flag whose values may be paths: the content of the files counts
	// instead of the paths.
	OnAnswerByContent Effect = "answerByContent"
	// OnClusters means that other clusters are asked, or by another user.
	OnClusters Effect = "clusters"
	// OnDisplay means that the answer is only requested, shown or kept in another way.
	OnDisplay Effect = "display"
)

// Again says which commands that are printed for a request, such as a remedy, repeat a flag of the request.
type Again string

const (
	// Judging means in each command that evaluates again.
	Judging Again = ""
	// Reaching means in each command about the cluster: the flag selects the cluster or its monitoring.
	Reaching Again = "reaching"
	// Targeting means in no other command than those whose target the flag selects; each command has its target.
	Targeting Again = "targeting"
	// Never means in none: the flag only changes how the result is shown, or each use of it has a reason of its own.
	Never Again = "never"
)

// Values is a kind of values that a cluster has.
type Values string

// The kinds of values.
const (
	Updates  Values = "updates"
	Channels Values = "channels"
	Checks   Values = "checks"
	Findings Values = "findings"
	Pools    Values = "pools"
	Nodes    Values = "nodes"
)

// ChangesAnswer reports whether another value may change the answer about a cluster: also where no effect is declared.
func (e Effect) ChangesAnswer() bool { return e != OnDisplay && e != OnClusters }

const annotation = "preflight.openshift.io/option"

// Declare states the properties of flags, which are defined.
func Declare(flags *pflag.FlagSet, known Option, names ...string) {
	for _, name := range names {
		texts := []string{string(known.Group), string(known.Effect), string(known.Again), string(known.Values)}
		if err := flags.SetAnnotation(name, annotation, texts); err != nil {
			panic(err) // a flag that does not exist is an error of the program, which each of its tests shows
		}
	}
}

// Of returns the properties of a flag; the zero value for a flag that was not declared.
func Of(flag *pflag.Flag) Option {
	texts := flag.Annotations[annotation]
	const parts = 4
	if len(texts) != parts {
		return Option{}
	}
	return Option{Group: Group(texts[0]), Effect: Effect(texts[1]), Again: Again(texts[2]), Values: Values(texts[3])}
}

// Undeclared are the names of the flags of a command that have no effect, or, unless all commands have them, no group.
func Undeclared(c *cobra.Command) []string {
	var names []string
	missing := func(flag *pflag.Flag, groups ...Group) {
		known := Of(flag)
		if flag.Name != "help" && flag.Name != "version" && (known.Effect == "" || !slices.Contains(groups, known.Group)) {
			names = append(names, flag.Name)
		}
	}
	c.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) { missing(flag, Groups()...) })
	c.InheritedFlags().VisitAll(func(flag *pflag.Flag) { missing(flag, "") })
	return names
}
