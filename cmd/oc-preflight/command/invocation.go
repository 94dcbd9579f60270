package command

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/words"
)

// invocation is a call of the program.
type invocation struct {
	// name is the command that calls the program, such as "oc preflight".
	name string
	// args are the arguments of the command line, without the name of the program.
	args []string
}

// parseInvocation reads args, args[0] being the path of the program. oc and kubectl call a plugin by its absolute
// path; by another one, it was called directly, and the same path calls it again. They request the completion of a
// plugin from a program of another name, such as kubectl_complete-preflight: a link to this one.
func parseInvocation(args []string) invocation {
	base := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	caller, completes := strings.CutSuffix(base, "_complete-preflight")
	if completes {
		return invocation{name: caller + " preflight", args: append([]string{cobra.ShellCompRequestCmd}, args[1:]...)}
	}
	if caller, isPlugin := strings.CutSuffix(base, "-preflight"); isPlugin && (caller == "oc" || caller == "kubectl") && filepath.IsAbs(args[0]) {
		return invocation{name: caller + " preflight", args: args[1:]}
	}
	return invocation{name: words.ShellWord(strings.TrimSuffix(args[0], ".exe")), args: args[1:]}
}

// setName replaces the names of programs in the help of all verbs.
func setName(c *cobra.Command, name string) {
	for _, verb := range c.Commands() {
		verb.Long = exitcode.WithName(verb.Long, name)
		verb.Example = exitcode.WithName(verb.Example, name)
		verb.Flags().VisitAll(func(flag *pflag.Flag) { flag.Usage = exitcode.WithName(flag.Usage, name) })
		setName(verb, name)
	}
}
