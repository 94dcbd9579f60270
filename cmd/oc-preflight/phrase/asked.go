package phrase

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
)

// askFor is what the user has to give with a request that is made again with an option changed; empty where the
// value is known here. A command would have a placeholder.
func askFor(option string) string {
	switch option {
	case finding.OptionMonitoring:
		return "Give the address of Prometheus with --prometheus URL."
	case finding.OptionTrust:
		return "Give the public keys of the release with --keyring FILE, and the place of its signatures with --signature-store URL."
	case finding.OptionRepository:
		return "Name the repository that has the release with --repository REPOSITORY."
	case finding.OptionFixTime:
		return "State since when they are fixed with --since TIME."
	case finding.OptionGraph:
		return "Name a channel that has the update with --channel CHANNEL, or a graph that has it with --graph FILE."
	}
	return ""
}

// withAsked is a remedy with what the user has to give for its actions.
func withAsked(remedy string, actions []finding.Action) string {
	for _, action := range actions {
		if action.Type != finding.ActionRetry {
			continue
		}
		if ask := askFor(action.Value); ask != "" && !strings.Contains(remedy, ask) {
			remedy = strings.TrimSpace(remedy + " " + ask)
		}
	}
	return remedy
}

// newest is the first of the targets, which are sorted, among these versions; the first version where none is.
func newest(sorted []report.Candidate, versions []string) string {
	for _, each := range sorted {
		if slices.Contains(versions, each.Version) {
			return each.Version
		}
	}
	return strings.Join(versions[:min(1, len(versions))], "")
}

// ofTarget is a finding about several targets whose commands are about one of them.
func ofTarget(f finding.Finding, version string) finding.Finding {
	f.Message, f.Remediation = anyTarget(f.Message), anyTarget(f.Remediation)
	f.Actions = slices.Clone(f.Actions)
	for i, each := range f.Actions {
		f.Actions[i] = each.Mapped(func(word string) string { return strings.ReplaceAll(word, report.AnyTarget, version) })
	}
	return f
}

// anyTarget is a text about several targets in words.
func anyTarget(text string) string {
	if rest, starts := strings.CutPrefix(text, report.AnyTarget+" "); starts {
		text = "The target " + rest
	}
	text = strings.ReplaceAll(text, ". "+report.AnyTarget+" ", ". The target ")
	return strings.ReplaceAll(text, report.AnyTarget, "the target")
}

// askedOf are the words that were typed, without the flags that change only how the result is shown.
func askedOf(c *cobra.Command) []string {
	var given Flags
	c.Flags().Visit(func(flag *pflag.Flag) {
		if option.Of(flag).Again != option.Never {
			given = append(given, givenFlag{Name: flag.Name, Values: ValuesOf(flag)})
		}
	})
	return append(strings.Fields(c.CommandPath()), given.words()...)
}

// sameWords compares a request with a command, in any order.
func sameWords(asked []string, calls [][]string) bool {
	if len(calls) != 1 {
		return false
	}
	set := func(words []string) []string { return slices.Compact(slices.Sorted(slices.Values(words))) }
	return slices.Equal(set(asked), set(calls[0]))
}
