package documents_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/test/documents"
)

// root is the root of the repository.
const root = "../.."

// markdown are the Markdown files of the repository, by path.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	paths, err := documents.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, path := range paths {
		files[path] = read(t, path)
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := documents.Read(root, path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// program returns a new command line of oc-preflight for each call, since flags
// keep their values.
func program() *cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	made := command.New("oc preflight", streams)
	made.InitDefaultHelpCmd()
	made.InitDefaultCompletionCmd()
	return made
}

// TestCalls fails for a call of this program, in a block of a document, that the program
// rejects: an unknown command, flag, value of a flag, or a wrong number of arguments.
func TestCalls(t *testing.T) {
	checked := 0
	for path, text := range markdown(t) {
		for _, block := range documents.Blocks(text) {
			if block.Language == "text" {
				continue // output
			}
			for _, call := range documents.Calls(block.Text) {
				checked++
				if err := accepts(call); err != nil {
					t.Errorf("%s, section %q: oc preflight %s: %v", path, block.Section, strings.Join(call, " "), err)
				}
			}
		}
	}
	const least = 80 // the documents have more: fewer are a failure of this test to find them
	if checked < least {
		t.Errorf("%d calls were found in the documents, want at least %d", checked, least)
	}
}

// TestExamples fails for a call in the help of a command that the program rejects.
func TestExamples(t *testing.T) {
	for _, verb := range append(program().Commands(), program()) {
		for _, call := range documents.Calls(verb.Example) {
			if err := accepts(call); err != nil {
				t.Errorf("help of %q: oc preflight %s: %v", verb.CommandPath(), strings.Join(call, " "), err)
			}
		}
	}
}

// TestSpans fails for a call of this program, in the prose of a document, with an unknown
// command or flag. It may be incomplete.
func TestSpans(t *testing.T) {
	for path, text := range markdown(t) {
		for _, span := range documents.Spans(text) {
			for _, call := range documents.Calls(span) {
				if err := known(call); err != nil {
					t.Errorf("%s: `%s`: %v", path, span, err)
				}
			}
		}
	}
}

// accepts parses a call as the program does, and returns why it is rejected. Nothing is
// executed.
func accepts(call []string) error {
	call = slices.DeleteFunc(slices.Clone(call), func(word string) bool { return word == "$@" }) // flags of a script
	verb, arguments, err := program().Find(call)
	if err != nil {
		return err
	}
	if err := verb.ParseFlags(arguments); err != nil {
		return err
	}
	if err := verb.ValidateArgs(verb.Flags().Args()); err != nil {
		return err
	}
	return errors.Join(option.Combine(verb), formats(verb))
}

// formats returns an error for a format that the command does not have, in the flags
// "output" and "report".
func formats(verb *cobra.Command) error {
	for _, name := range []string{"output", "report"} {
		flag := verb.Flags().Lookup(name)
		complete, completes := verb.GetFlagCompletionFunc(name)
		if flag == nil || !flag.Changed || !completes {
			continue
		}
		values := strings.Split(strings.Trim(flag.Value.String(), "[]"), ",")
		if name == "output" { // one format, which may be an expression with commas
			values = values[:1]
		}
		for _, value := range values {
			prefix, _, _ := strings.Cut(value, "=")
			found, _ := complete(verb, nil, prefix)
			if !slices.ContainsFunc(found, func(each string) bool { return strings.TrimSuffix(each, "=") == prefix }) {
				return fmt.Errorf("--%s has no format %q", name, prefix)
			}
		}
	}
	return nil
}

// known returns an error for an unknown command or flag.
func known(call []string) error {
	verb, arguments, err := program().Find(call)
	if err != nil {
		return err
	}
	for _, argument := range arguments {
		name, isFlag := strings.CutPrefix(argument, "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && verb.Flag(name) == nil && name != "help" {
			return fmt.Errorf("unknown flag: --%s", name)
		}
	}
	return nil
}

func TestCallsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, script string
		want           [][]string
	}{
		"None":  {reason: "other programs are not checked", script: "oc get nodes\nls oc-preflight.tar.gz\n"},
		"Plain": {reason: "a line is a call", script: "oc preflight run --to 4.19.3\n", want: [][]string{{"run", "--to", "4.19.3"}}},
		"Continued": {
			reason: "a backslash continues the line", script: "oc preflight run \\\n    --to 4.19.3\n",
			want: [][]string{{"run", "--to", "4.19.3"}},
		},
		"Comment": {
			reason: "comments are not executed", script: "# oc preflight bad\noc preflight run # oc preflight bad\n",
			want: [][]string{{"run"}},
		},
		"Operators": {
			reason: "a pipe, a redirection and a list end a call", script: "oc preflight a > f && oc preflight b|jq . ; kubectl preflight c\n",
			want: [][]string{{"a"}, {"b"}, {"c"}},
		},
		"Nested": {
			reason: "a substitution contains a call", script: `id="$(oc-preflight status -o name)"`,
			want: [][]string{{"status", "-o", "name"}},
		},
		"Quoted": {
			reason: "quotes keep one word", script: `oc preflight run --accept "A, B" --since='2 h'`,
			want: [][]string{{"run", "--accept", "A, B", "--since=2 h"}},
		},
		"InYAML": {
			reason: "a recipe has its script in YAML", script: "- run: oc preflight run --to-latest\n",
			want: [][]string{{"run", "--to-latest"}},
		},
		"Variable": {reason: "a variable is one word", script: `oc preflight attach "$run"`, want: [][]string{{"attach", "$run"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, documents.Calls(tc.script)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRejected checks calls that the program rejects, so that TestCalls can fail.
func TestRejected(t *testing.T) {
	for reason, call := range map[string]string{
		"an unknown command":        "check --to 4.19.3",
		"an unknown flag":           "run --latest",
		"a flag of another command": "status --accept A",
		"a flag without its value":  "run --to",
		"a bad duration":            "run --to-latest --timeout ten",
		"an unknown format":         "run --to-latest -o xml",
		"a report without a format": "run --to-latest --report xml=report.xml",
		"too many arguments":        "attach 3b6f 4c7a",
		"a missing argument":        "logs",
		"two targets":               "run --to 4.19.3 --to-latest",
	} {
		if accepts(strings.Fields(call)) == nil {
			t.Errorf("%s: oc preflight %s is accepted", reason, call)
		}
	}
}
