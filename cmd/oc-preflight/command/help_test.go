package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/cmd/oc-preflight/help"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/terminal"
)

// Tests of: cmd/oc-preflight/help

// The help of every command has an example of that command.
func TestEveryCommandHasAnExample(t *testing.T) {
	for _, verb := range verbs() {
		if !strings.Contains(verb.Example, "oc preflight "+verb.Name()) {
			t.Errorf("%s: the help has no example with %q", verb.Name(), "oc preflight "+verb.Name())
		}
	}
}

func verbs() []*cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	return command.New("oc preflight", streams).Commands()
}

// allVerbs are those of commands that have verbs, too.
func allVerbs(verbs []*cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, verb := range verbs {
		all = append(append(all, verb), allVerbs(verb.Commands())...)
	}
	return all
}

func TestEveryFlagIsDeclared(t *testing.T) {
	for _, verb := range allVerbs(verbs()) {
		for _, name := range option.Undeclared(verb) {
			t.Errorf("%s: --%s has no effect or no group: declare it with option.Declare where the flag is defined", verb.CommandPath(), name)
		}
	}
}

// A flag of one name means one thing: commands differ only in the group in which their help lists it.
func TestFlagsOfOneNameAreOneOption(t *testing.T) {
	first := map[string]option.Option{}
	by := map[string]string{}
	for _, verb := range allVerbs(verbs()) {
		verb.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			known := option.Of(flag)
			known.Group = ""
			if other, ok := first[flag.Name]; ok && other != known {
				t.Errorf("--%s is %+v for %s, and %+v for %s", flag.Name, known, verb.CommandPath(), other, by[flag.Name])
			}
			first[flag.Name], by[flag.Name] = known, verb.CommandPath()
		})
	}
}

// shownOn is what a command prints on a terminal with that many columns.
func shownOn(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	const rows = 24
	opened := terminal.Open(t, columns, rows)
	streams := genericiooptions.IOStreams{In: opened.Stream, Out: opened.Stream, ErrOut: opened.Stream}
	if code := command.Execute(context.Background(), append([]string{"/usr/bin/oc-preflight"}, args...), streams); code != 0 {
		t.Errorf("%q: exit code %d", args, code)
	}
	return opened.Received()
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"run", "-h"}, {"fleet", "-h"}, {"fleet", "targets", "-h"}, {"help", "--all"}, {"help", "--all", "run"}} {
		for _, columns := range []uint16{80, 120} {
			name := strings.ReplaceAll("preflight-"+strings.Join(args, "-"), "--", "-")
			golden.Compare(t, fmt.Sprintf("testdata/help/%s.%d.text", name, columns), shownOn(t, columns, args...))
		}
	}
}

// The verbs of the workflow are on one screen of 80 by 24, with the next prompt, however the program is called.
func TestOverviewFitsOneScreen(t *testing.T) {
	const columns, rows = 80, 24
	for _, name := range []string{"oc-preflight", "kubectl-preflight", "/usr/local/bin/preflight"} {
		for _, args := range [][]string{{"-h"}, {}, {"help"}} {
			var out strings.Builder
			command.Execute(context.Background(), append([]string{name}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
			lines := strings.Split(out.String(), "\n")
			if len(lines) > rows {
				t.Errorf("%s %q: %d lines with that of the prompt, want %d", name, args, len(lines), rows)
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > columns {
					t.Errorf("%s %q: more than %d columns: %s", name, args, columns, line)
				}
			}
		}
	}
}

// No line is longer than the terminal, but for examples, which are for pasting.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, verb := range allVerbs(verbs()) {
		for _, columns := range []int{80, 120} {
			var out strings.Builder
			if err := help.Command(&out, verb, columns); err != nil {
				t.Fatal(err)
			}
			before, after, _ := strings.Cut(out.String(), "\nExamples:\n")
			_, after, _ = strings.Cut(strings.TrimPrefix(after, verb.Example), "\n")
			for line := range strings.Lines(before + "\n" + after) {
				if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s in %d columns: %s", verb.CommandPath(), columns, line)
				}
			}
		}
	}
}

// The help of every command is at most five screens of 24 lines, and all that is said about its flags is in "help --all".
func TestHelpIsShort(t *testing.T) {
	const most, columns = 120, 80
	for _, verb := range allVerbs(verbs()) {
		var short, whole strings.Builder
		if err := errors.Join(help.Command(&short, verb, columns), help.Whole(&whole, verb, columns)); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(short.String(), "\n"); lines > most {
			t.Errorf("%s: %d lines, more than %d: move prose to a page", verb.CommandPath(), lines, most)
		}
		verb.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden || flag.Name == "help" {
				return
			}
			if !strings.Contains(short.String(), "--"+flag.Name) || !strings.Contains(strings.Join(strings.Fields(whole.String()), " "), strings.Join(strings.Fields(flag.Usage), " ")) {
				t.Errorf("%s: --%s is not listed, or not in full", verb.CommandPath(), flag.Name)
			}
		})
	}
}

// The help of a command leaves out the flags that all have: "options" has each of them.
func TestOptions(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	shown := shownOn(t, 120, "options")
	command.New("oc preflight", streams).PersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !strings.Contains(shown, "--"+flag.Name) {
			t.Errorf("--%s is missing in\n%s", flag.Name, shown)
		}
	})
}
