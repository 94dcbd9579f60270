package command_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/program"
)

// placeholder is a word of a command that stands for a value.
var placeholder = regexp.MustCompile(`(?:^|[\s=/'"])[A-Z][A-Z_]{2,}(?:$|[\s/'"])`)

// commandLine is a line that shows a command to be typed.
var commandLine = regexp.MustCompile(
	`(?m)^.*?\$ (.+)$|^(?:hint|error): (?:.*?: | +)(oc preflight .+?)(?:;|$)|^(?:Next|Run again|Or accept): (oc preflight .+)$`)

// commandsOf are the commands that an output shows.
func commandsOf(output string) []string {
	var commands []string
	for _, match := range commandLine.FindAllStringSubmatch(output, -1) {
		commands = append(commands, strings.TrimSpace(match[1]+match[2]+match[3]))
	}
	return commands
}

// wordsOf are the words of a command, each once and sorted.
func wordsOf(command string) []string {
	all := strings.Fields(command)
	slices.Sort(all)
	return slices.Compact(all)
}

// What a command prints for the user to type is not that command, and has no placeholder: the user is where they were
// otherwise. To run again what was run is right only after a remedy.
func TestHintsLeadElsewhere(t *testing.T) {
	archive, err := filepath.Abs("../../../examples/archive")
	if err != nil {
		t.Fatal(err)
	}
	refusing, refused := writeKubeconfig(t, newRefusing(t, "alice")), []string{"--kubeconfig"}
	unread := writeKubeconfig(t, "http://127.0.0.1:1")
	for name, tc := range map[string]struct {
		reason string
		args   []string
		// least is the number of commands that are shown at least.
		least int
	}{
		"Targets": {reason: "the list leads to a target", args: []string{"targets", "--archive", archive}, least: 1},
		"Target": {
			reason: "a target leads to its remedies", args: []string{"targets", "--archive", archive, "--to", "4.19.1"},
			least: 1,
		},
		"TargetInDetail": {
			reason: "every finding is shown", args: []string{"targets", "--archive", archive, "--to", "4.19.1", "--details"},
			least: 1,
		},
		"UnknownTarget": {
			reason: "an update that the cluster does not know",
			args:   []string{"targets", "--archive", archive, "--to", "4.30.1"},
		},
		"Drains": {reason: "a rehearsal of drains", args: []string{"drain-plan", "--archive", archive}},
		"Fleet": {
			reason: "an archive has no monitoring, and the same request again has none either",
			args:   []string{"fleet", "targets", "--archives", archive},
		},
		"FleetTo": {reason: "the causes have commands", args: []string{"fleet", "targets", "--archives", archive, "--to", "4.19.1"}},
		"FleetRefused": {
			reason: "the roles are bound to the user",
			args:   []string{"fleet", "targets", "--kubeconfigs", refusing, "--to", "4.19.1"}, least: 1,
		},
		"FleetUnread": {reason: "nothing listens", args: []string{"fleet", "targets", "--kubeconfigs", unread, "--to", "4.19.1"}},
		"Refused":     {reason: "the roles are bound to the user", args: append([]string{"targets"}, append(refused, refusing)...), least: 1},
		"RefusedRoles": {
			reason: "the roles of a release need others",
			args:   append([]string{"auth", "run", "--to", "4.19.3", "--bind", "user:alice"}, append(refused, refusing)...), least: 1,
		},
		"RefusedContext": {
			reason: "an administrator has another context",
			args:   append([]string{"auth", "run", "--to", "4.19.3", "--context", "other"}, append(refused, refusing)...), least: 1,
		},
		"Stored": {reason: "the graph is stored where the update service is reached", args: []string{
			"plan", "--from", "4.16.27", "--to",
			"4.18.17", "--channel", "eus-4.18", "--arch", "amd64", "--offline", "--cache-dir", t.TempDir(),
		}, least: 1},
		"UnknownReason":   {reason: "the list of reasons is another command", args: []string{"explain", "Nonsense"}, least: 1},
		"UnknownArgument": {reason: "the help is another command", args: []string{"targets", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, tc.args...)
			typed := wordsOf("oc preflight " + strings.Join(tc.args, " "))
			commands := commandsOf(got.Stdout + "\n" + got.Stderr)
			for _, command := range commands {
				if slices.Equal(typed, wordsOf(command)) {
					t.Errorf("%s: the command shows itself:\n%s", tc.reason, command)
				}
				if placeholder.MatchString(command) {
					t.Errorf("%s: the command has a placeholder:\n%s", tc.reason, command)
				}
			}
			if len(commands) < tc.least {
				t.Errorf("%s: %d commands are shown, want at least %d:\n%s%s", tc.reason, len(commands), tc.least, got.Stdout, got.Stderr)
			}
		})
	}
}

// No golden file shows a command with a placeholder. IMAGE is what a test puts in place of an image.
func TestGoldenCommandsHaveNoPlaceholders(t *testing.T) {
	shown := 0
	for _, directory := range []string{"../../../collector", "../../../test/commands/testdata", "../../../runner/fleet", "../"} {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".text", ".short", ".wide", ".markdown"}, filepath.Ext(path)) {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(content)) {
				command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
				if !ok {
					continue
				}
				shown++
				if found := placeholder.FindString(strings.ReplaceAll(command, "--to-image IMAGE", "")); found != "" &&
					!strings.Contains(command, "<<'"+strings.Trim(found, " '")+"'") {
					t.Errorf("%s: %s", path, command)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if least := 20; shown < least {
		t.Errorf("the golden files show %d commands, want at least %d", shown, least)
	}
}

// operationOf is the function that declares a command: Read where each of its calls is known to change nothing.
func operationOf(command string) string {
	operation := "Read"
	for call := range strings.SplitSeq(command, " | ") {
		_, words, isOC := strings.Cut(" "+call, " oc ")
		words = namespace.ReplaceAllString(words, "")
		switch {
		case !isOC && strings.HasPrefix(strings.TrimSpace(call), "grep "), reading.MatchString(words):
		case strings.HasPrefix(words, "delete "), strings.HasPrefix(words, "preflight cancel "):
			return "Delete"
		default:
			operation = "Change"
		}
	}
	return operation
}

// namespace are the flags before a verb of oc.
var namespace = regexp.MustCompile(`^-n \S+ `)

// reading are the requests that change nothing: what is not among them counts as a change.
var reading = regexp.MustCompile(`^(?:(?:get|describe|logs|wait|api-resources|api-versions|auth can-i|extract \S+ .*--to=-)(?: |$)` +
	`|adm (?:top|node-logs|release info) |adm upgrade(?: --include-not-recommended)? *$` +
	`|preflight (?:attach|auth|collect|history|plan|run|status|%s)(?: |$))`)

// No finding has a command with a placeholder, or is declared to change less than it does: the prose of its remedy has
// what the user must know.
func TestFindingsHaveNoPlaceholders(t *testing.T) {
	made := 0
	for _, directory := range []string{"collector", "runner", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../../..", directory), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				called, isSelector := call.Fun.(*ast.SelectorExpr)
				literal, isLiteral := call.Args[0].(*ast.BasicLit)
				if !isSelector || !slices.Contains([]string{"Read", "Change", "Delete", "OnThisMachine"}, called.Sel.Name) || !isLiteral {
					return true
				}
				command, err := strconv.Unquote(literal.Value)
				made++
				if err != nil || placeholder.MatchString(command) {
					t.Errorf("%s: %s", path, command)
				}
				if want := operationOf(command); called.Sel.Name != want && called.Sel.Name != "OnThisMachine" {
					t.Errorf("%s: %q is declared by %s, want %s", path, command, called.Sel.Name, want)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if least := 80; made < least {
		t.Errorf("%d commands were found, want at least %d", made, least)
	}
}
