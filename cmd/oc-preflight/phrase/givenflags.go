package phrase

import (
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
)

// Flags are the flags of a request that a repeated one has again.
type Flags []givenFlag

// givenFlag is a flag with its values, in the order of the command line.
type givenFlag struct {
	Name   string
	Values []string
	// optional is true for a flag that may be given without a value.
	optional bool
	// global is true for a flag of all commands, such as --kubeconfig.
	global bool
	// verbs are the commands that have it, unless all have.
	verbs []string
	again option.Again
}

// hostedCluster is the flag that selects a hosted cluster, and tokenFlag has a credential, which no command has again.
const hostedCluster, tokenFlag = "hosted-cluster", "token"

// givenTo are the flags that the user gave to a command, as far as "run" beside it has them too, and those that
// select the cluster.
func givenTo(c *cobra.Command) Flags {
	beside := "run"
	if c.HasParent() && c.Parent().HasParent() {
		beside = c.Parent().Name() + " run"
	}
	var given Flags
	c.Flags().Visit(func(flag *pflag.Flag) {
		each := givenFlag{
			Name: flag.Name, Values: ValuesOf(flag), optional: flag.NoOptDefVal != "", again: option.Of(flag).Again,
			global: c.Root().PersistentFlags().Lookup(flag.Name) != nil, verbs: verbsWith(c.Root(), flag.Name),
		}
		isOfRun := each.global || slices.Contains(each.verbs, beside)
		if each.again == option.Reaching || each.again == option.Judging && isOfRun {
			given = append(given, each)
		}
	})
	return given
}

// verbsWith are the commands below root that have a flag, or all for no flag: by their names without the name of root.
func verbsWith(root *cobra.Command, flag string) []string {
	var names []string
	for _, verb := range root.Commands() {
		for _, each := range append([]*cobra.Command{verb}, verb.Commands()...) {
			if flag == "" || each.Flags().Lookup(flag) != nil {
				names = append(names, strings.TrimPrefix(each.CommandPath(), root.CommandPath()+" "))
			}
		}
	}
	return names
}

// ValuesOf are the values of a flag; none for a switch that is on, and for a flag with the value that it has without one. Reports are stored and
// passed on, so they have no credentials.
func ValuesOf(flag *pflag.Flag) []string {
	list, ok := flag.Value.(pflag.SliceValue)
	switch {
	case flag.Name == tokenFlag:
		return []string{"TOKEN"} // a command that has it is shown as a sentence
	case ok:
		values := slices.Clone(list.GetSlice())
		for i, value := range values {
			values[i] = withoutPassword(value)
		}
		if flag.Value.Type() == "stringSlice" { // separated by commas
			return []string{strings.Join(values, ",")}
		}
		return values
	case flag.NoOptDefVal != "" && flag.Value.String() == flag.NoOptDefVal:
		return nil
	}
	return []string{withoutPassword(flag.Value.String())}
}

// withoutPassword replaces the password in a URL.
func withoutPassword(value string) string {
	if address, err := url.Parse(value); err == nil && address.User != nil {
		return address.Redacted()
	}
	return value
}

// with replaces a flag, or adds it.
func (g Flags) with(name string, values ...string) Flags {
	return append(g.without(name), givenFlag{Name: name, Values: values})
}

// accepting accepts findings by name as well, separated by commas.
func (g Flags) accepting(names string) Flags {
	if at := slices.IndexFunc(g, func(flag givenFlag) bool { return flag.Name == "accept" }); at >= 0 {
		all := strings.Split(g[at].Values[0]+","+names, ",")
		slices.Sort(all)
		names = strings.Join(slices.Compact(all), ",")
	}
	return g.with("accept", names)
}

func (g Flags) without(name string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return flag.Name == name })
}

func (g Flags) only(name string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return flag.Name != name })
}

func (g Flags) has(name string) bool {
	return slices.ContainsFunc(g, func(flag givenFlag) bool { return flag.Name == name })
}

// of are the flags that a verb has, too.
func (g Flags) of(verb string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return !flag.global && !slices.Contains(flag.verbs, verb) })
}

// Global are the flags of all commands among them.
func (g Flags) Global() Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return !flag.global })
}

// cluster returns the flags by which a request reaches the cluster.
func (g Flags) cluster() Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return !flag.global && flag.again != option.Reaching })
}

// words are the flags as words of a command.
func (g Flags) words() []string {
	var typed []string
	for _, flag := range g {
		if len(flag.Values) == 0 {
			typed = append(typed, "--"+flag.Name)
		}
		for _, value := range flag.Values {
			if value == "false" || flag.optional { // a word behind it would be an argument
				typed = append(typed, "--"+flag.Name+"="+value)
				continue
			}
			typed = append(typed, "--"+flag.Name, value)
		}
	}
	return typed
}

// about are the flags of a verb about the cluster of the request; "attach" has all again that the record of a run does
// not have.
func (g Flags) about(verb string) Flags {
	if verb == "attach" {
		return g.of(verb)
	}
	return g.cluster().of(verb)
}

// missing are the flags that a command does not have.
func (g Flags) missing(command []string) Flags {
	return slices.DeleteFunc(slices.Clone(g), func(flag givenFlag) bool { return slices.Contains(command, "--"+flag.Name) })
}
