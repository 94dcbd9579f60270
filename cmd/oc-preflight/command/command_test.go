package command_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/cmd/oc-preflight/help"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/release"
	"github.com/openshift/update-preflight/test/terminal"
)

// Tests of: cmd/oc-preflight/author

// The programs that scripts start: the others call commands in this process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"oc-preflight": func() {
		streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		os.Exit(command.Execute(context.Background(), os.Args, streams))
	}})
}

// The scripts show command, output and exit code of everything that needs no
// cluster; test/e2e has those that do.
func TestScripts(t *testing.T) {
	directory, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.RunT(oneByOne{t}, testscript.Params{
		Dir: directory, Setup: setup, RequireExplicitExec: true, UpdateScripts: golden.Update(),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "starts": starts, "requested": requested},
	})
}

// oneByOne runs scripts one after the other, since each has the environment and the directory of
// this process.
type oneByOne struct{ *testing.T }

// Parallel implements testscript.T.
func (oneByOne) Parallel() {}

// Run implements testscript.T.
func (o oneByOne) Run(name string, script func(testscript.T)) {
	o.T.Run(name, func(t *testing.T) { script(oneByOne{t}) })
}

// Verbose implements testscript.T.
func (oneByOne) Verbose() bool { return testing.Verbose() }

// testKey is the key of the test among the values of its script.
type testKey struct{}

// variables are those of the environment that commands read, but for proxies: net/http reads these
// once in a process.
func variables() []string {
	return []string{"COSIGN_PASSWORD", "HOME", "KUBECONFIG", "NO_COLOR", "TMPDIR", "XDG_CACHE_HOME"}
}

// exits calls a command in this process, without input, and compares its exit code: exits CODE COMMAND ARG... A plugin
// is called by its absolute path, as oc and kubectl do.
func exits(script *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		script.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	t, ok := script.Value(testKey{}).(*testing.T)
	if !ok {
		script.Fatalf("the script has no test")
	}
	for _, name := range variables() {
		if value := script.Getenv(name); value != os.Getenv(name) {
			t.Setenv(name, value)
		}
	}
	t.Chdir(script.MkAbs("."))
	path := args[1]
	if strings.HasSuffix(strings.TrimSuffix(path, ".exe"), "-preflight") && !strings.Contains(path, "/") {
		path = "/usr/local/bin/" + path
	}
	got := program.CallAs(t, path, args[2:]...)
	for text, output := range map[string]io.Writer{got.Stdout: script.Stdout(), got.Stderr: script.Stderr()} {
		if _, err := io.WriteString(output, text); err != nil {
			script.Fatalf("%v", err)
		}
	}
	if want := args[0]; strconv.Itoa(got.Code) != want {
		script.Fatalf("%s: exit code %d, want %s", strings.Join(args[1:], " "), got.Code, want)
	}
}

// starts runs a program, which has the input of the script, and compares its exit code: starts CODE PROGRAM ARG...
func starts(script *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		script.Fatalf("usage: starts CODE PROGRAM [ARG...]")
	}
	err := script.Exec(args[1], args[2:]...)
	got := "exit status 0"
	if err != nil {
		got = err.Error()
	}
	if want := "exit status " + args[0]; got != want {
		script.Fatalf("%s: %s, want %s", strings.Join(args[1:], " "), got, want)
	}
}

const (
	repository = "quay.io/openshift-release-dev/ocp-release"
	signed     = repository + "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	unsigned   = repository + "@sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// signatures are those of the releases, and the keys that made them: the same for all scripts, since a key takes a
// fifth of a second.
type signatures struct {
	// keys are the public ones by the name of the key.
	keys  map[string][]byte
	store release.Store
	// forged is a signature by another key.
	forged []byte
}

var signAll = sync.OnceValues(func() (signatures, error) {
	made := signatures{keys: map[string][]byte{}, store: release.Store{}}
	for _, name := range []string{"release", "other"} {
		signer, err := release.NewSigner(name + " key")
		if err != nil {
			return signatures{}, err
		}
		if made.keys[name], err = signer.PublicKey(); err != nil {
			return signatures{}, err
		}
		signature, err := signer.Sign(signed, repository+":4.19.0-x86_64")
		if err != nil {
			return signatures{}, err
		}
		if name == "other" {
			made.forged = signature
			continue
		}
		made.store.Add(signed, signature)
	}
	return made, nil
})

// setup gives each script a release that is signed, the key, another key, and the path of the
// example archive.
func setup(env *testscript.Env) error {
	if of, ok := env.T().(oneByOne); ok {
		env.Values[testKey{}] = of.T
	}
	made, err := signAll()
	if err != nil {
		return err
	}
	for name, key := range made.keys {
		if err := os.WriteFile(filepath.Join(env.WorkDir, name+".asc"), key, 0o600); err != nil {
			return err
		}
	}
	if err := made.store.WriteDirectory(filepath.Join(env.WorkDir, "signatures")); err != nil {
		return err
	}
	if err := signVerdicts(env); err != nil {
		return err
	}
	if err := startAttackers(env, made.forged); err != nil {
		return err
	}
	archive, err := filepath.Abs("../../../examples/archive")
	if err != nil {
		return err
	}
	env.Setenv("ARCHIVE", archive)
	env.Setenv("SIGNED", signed)
	env.Setenv("UNSIGNED", unsigned)
	kubeconfig := filepath.Join(env.WorkDir, "kubeconfig")
	env.Setenv("KUBECONFIG", kubeconfig)
	return os.WriteFile(kubeconfig, []byte(unreachable), 0o600)
}

// unreachable is a kubeconfig of a cluster whose API server does not listen.
const unreachable = `{apiVersion: v1, kind: Config, current-context: c,
 clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}]}
`

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
	for _, args := range [][]string{
		{"-h"},
		{"run", "-h"},
		{"fleet", "-h"},
		{"fleet", "targets", "-h"},
		{"help", "--all"},
		{"help", "--all", "run"},
	} {
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
			command.Execute(context.Background(), append([]string{name}, args...),
				genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
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
			if !strings.Contains(short.String(), "--"+flag.Name) ||
				!strings.Contains(strings.Join(strings.Fields(whole.String()), " "), strings.Join(strings.Fields(flag.Usage), " ")) {
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
