package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError is a usage error; it names the flag that an unknown one is most similar to.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if meant := similarFlag(c.Flags(), unknown.GetSpecifiedName()); meant != "" {
			return usageError(fmt.Errorf("%w; write --%s", err, meant))
		}
	}
	return usageError(fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
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
		if differs := distance(bare(flag.Name), name); differs < least && !flag.Hidden {
			best, least = flag.Name, differs
		}
	})
	return best
}

// bare is the name of a flag without dashes, underscores and case.
func bare(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// distance is the number of bytes to insert, delete or replace to make one name the other
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
