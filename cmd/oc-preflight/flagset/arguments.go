package flagset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/words"
)

// OneVerb rejects a verb that a command does not have. The error names the most similar ones, or the command of that
// name for one cluster.
func OneVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	const mostDifferent = 2
	c.SuggestionsMinimumDistance = mostDifferent
	var meant []string
	for _, name := range c.SuggestionsFor(args[0]) {
		meant = append(meant, fmt.Sprintf("%q", c.CommandPath()+" "+name))
	}
	if elsewhere, rest, err := c.Root().Find(args[:1]); err == nil && len(rest) == 0 && len(meant) == 0 {
		meant = []string{fmt.Sprintf("%q", elsewhere.CommandPath())}
	}
	remedy := fmt.Sprintf("; see %q", c.CommandPath()+" --help")
	if len(meant) > 0 {
		remedy = "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return exitcode.BadUsage(fmt.Errorf("unknown command %q for %q%s", words.Line(args[0], longestVerb), c.CommandPath(), remedy))
}

// longestVerb bounds what an error shows of an unknown verb, in bytes.
const longestVerb = 64

// NoArguments refuses arguments as wrong usage.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exitcode.BadUsage(fmt.Errorf("%q takes no argument, but got %q; see %q", c.CommandPath(), args[0], c.CommandPath()+" --help"))
	}
	return nil
}

// Arguments requires least to most arguments; the error names them by what.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return exitcode.BadUsage(fmt.Errorf("%q takes %s, but got %s; see %q", c.CommandPath(), what, words.Count(len(args), "argument"), c.CommandPath()+" --help"))
		}
		return nil
	}
}

// UpdateValue is the value of a flag that takes the version of an update, or the name of an
// update as "-o name" writes it.
func UpdateValue(version *string) pflag.Value { return updateName{version} }

type updateName struct{ version *string }

func (n updateName) String() string { return *n.version }

func (n updateName) Set(text string) error {
	*n.version = format.BareName(format.UpdateName, text)
	return nil
}

func (updateName) Type() string { return "string" }

// DryRun is --dry-run: the value of DryRun in the options of requests, empty where they write.
type DryRun []string

// Add adds --dry-run, as kubectl has it, to the command; usage is its effect.
func (f *DryRun) Add(c *cobra.Command, usage string) {
	c.Flags().Var(f, "dry-run", usage+" client and server are the same.")
	c.Flags().Lookup("dry-run").NoOptDefVal = "server"
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "dry-run")
	completion.Fixed(c, "dry-run", "none", "server", "client")
}

func (f *DryRun) String() string {
	if len(*f) == 0 {
		return "none"
	}
	return "server"
}

// Set reads the value of the flag.
func (f *DryRun) Set(text string) error {
	switch text {
	case "none", "false":
		*f = nil
	case "client", "server", "true":
		*f = DryRun{metav1.DryRunAll}
	default:
		return errors.New("it must be none, server or client")
	}
	return nil
}

// Type is what the help calls a value.
func (*DryRun) Type() string { return "string" }

// NamespacedName reads NAMESPACE/NAME, the value of a flag.
func NamespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%s=%s: it must be NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
