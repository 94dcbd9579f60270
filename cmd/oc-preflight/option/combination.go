package option

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// exclusion has flags of which a command line may have one.
type exclusion struct {
	flags []string
	// why is the cause, where the names do not show it.
	why string
}

func exclusions() []exclusion {
	return []exclusion{
		{[]string{"to", "to-latest", "to-minor", "to-image", "hop", "follow"}, ""},
		{[]string{"path", "hop"}, ""},
		{[]string{"path", "to-image"}, "a path leads to a version of the update graph"},
		{[]string{"path", "hosted-cluster"}, `a hosted cluster updates control plane and NodePools apart; "plan --hosted-cluster" has the order`},
		{[]string{"hop", "hosted-cluster"}, `a hosted cluster updates control plane and NodePools apart; "plan --hosted-cluster" has the order`},
		{[]string{"sign", "archive"}, "what is signed is the verdict on the next update of a cluster"},
		{[]string{"sign", "path"}, "what is signed is the verdict on the next update of a cluster"},
		{[]string{"sign", "hop"}, "what is signed is the verdict on the next update of a cluster"},
		{[]string{"from", "hosted-cluster"}, "--from uses no cluster"},
		{[]string{"from", "archive"}, "--from uses no cluster"},
		{[]string{"from", "prometheus"}, "--from uses no cluster"},
		{[]string{"guest-kubeconfig", "archive"}, "the archive has the guest"},
		{[]string{"watch", "archive"}, "an archive does not change"},
		{[]string{"hosted-cluster", "hive"}, "--hosted-cluster is for one cluster, and --hive for many"},
		{[]string{"hosted-cluster", "hosted"}, "--hosted-cluster is for one cluster, and --hosted for many"},
		{[]string{"table", "placement"}, "--placement is about a hub"},
		{[]string{"table", "wave"}, "--wave is about a hub"},
		{[]string{"table", "keys"}, "--keys is about a hub"},
		{[]string{"no-cache", "cache-dir"}, ""},
		{[]string{"no-cache", "offline"}, "--offline uses what was stored"},
		{[]string{"clear", "replace"}, ""},
		{[]string{"no-baseline", "redact-baseline"}, ""},
		{[]string{"site", "component"}, ""},
		{[]string{"all", "limit"}, ""},
	}
}

// requirement lists flags that have no effect without one of the others. It applies to commands that have one of
// the others.
type requirement struct{ flags, others []string }

func requirements() []requirement {
	return []requirement{
		{[]string{"to-minor", "channel", "graph", "arch", "offline"}, []string{"path", "hop"}},
		{[]string{"nodepool", "guest-kubeconfig"}, []string{"hosted-cluster"}},
		{[]string{"signed-verdict"}, []string{"sign"}},
		{[]string{"checks"}, []string{"to", "to-latest", "to-image", "path", "hop"}},
		{[]string{"language", "image"}, []string{"site"}},
		{[]string{"wave"}, []string{"placement"}},
		{[]string{"max-age"}, []string{"results", "table"}},
		{[]string{"interval"}, []string{"watch"}},
		{[]string{"force"}, []string{"force-reason"}},
		{[]string{"force-reason"}, []string{"force"}},
	}
}

// Combine returns an error for flags that exclude each other, and for flags that have no effect without another one:
// wrong usage. It knows the flags by their names, which mean the same in every command, and reads no file.
func Combine(c *cobra.Command) error {
	for _, each := range exclusions() {
		given := named(each.flags, func(name string) bool { return isGiven(c, name) })
		if len(given) < 2 {
			continue
		}
		why := ""
		if each.why != "" {
			why = ": " + each.why
		}
		return fmt.Errorf("mutually exclusive: %s; give one of them%s", strings.Join(given, ", "), why)
	}
	for _, each := range requirements() {
		others := named(each.others, func(name string) bool { return c.Flags().Lookup(name) != nil })
		given := named(each.flags, func(name string) bool { return isGiven(c, name) })
		if len(given) == 0 || len(others) == 0 || slices.ContainsFunc(each.others, func(name string) bool { return isGiven(c, name) }) {
			continue
		}
		verb := "requires"
		if len(given) > 1 {
			verb = "require"
		}
		return fmt.Errorf("%s %s %s; add it, or leave out %s", list(given, " and "), verb, list(others, " or "), list(given, " and "))
	}
	return nil
}

// named are the flags of these names that match, with their dashes.
func named(names []string, matches func(string) bool) []string {
	var found []string
	for _, name := range names {
		if matches(name) {
			found = append(found, "--"+name)
		}
	}
	return found
}

// list joins texts by commas, and the last two by another word.
func list(texts []string, last string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	end := len(texts) - 1
	return strings.Join(texts[:end], ", ") + last + texts[end]
}

// isGiven reports whether a command line has a flag of that name. An empty or false flag, such as the flag of a script
// with an empty variable, is not given.
func isGiven(c *cobra.Command, name string) bool {
	flag := c.Flags().Lookup(name)
	return flag != nil && flag.Changed && !slices.Contains([]string{"", "false", "[]"}, flag.Value.String())
}
