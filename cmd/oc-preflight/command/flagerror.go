package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
)

// flagError is a usage error; it names the flag that an unknown one is most similar to. A mistyped verb before the flag is
// the first error: the flag may be one of the verb that is meant.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return flagset.OneVerb(c, args)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if meant := similarFlag(c.Flags(), unknown.GetSpecifiedName()); meant != "" {
			return exitcode.BadUsage(fmt.Errorf("%w; write --%s", err, meant))
		}
	}
	return exitcode.BadUsage(fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
}

// similarFlag is the flag with the fewest differences from a name, beside case, dashes and
// underscores; empty if more than a third of the name differs.
func similarFlag(flags *pflag.FlagSet, name string) string {
	const share, longest = 3, 64
	if len(name) > longest {
		return ""
	}
	name = bare(name)
	best, least := "", 1+len(name)/share
	flags.VisitAll(func(flag *pflag.Flag) {
		if differs := levenshtein.ComputeDistance(bare(flag.Name), name); differs < least && !flag.Hidden {
			best, least = flag.Name, differs
		}
	})
	return best
}

// bare is the name of a flag without dashes, underscores and case.
func bare(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}
