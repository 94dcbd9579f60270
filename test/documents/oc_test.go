package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/test/documents"
)

// callOfOC matches a call of oc: its verb, behind flags with values, and the rest of the line.
var callOfOC = regexp.MustCompile("(?m)(?:^|[\\s;&|($`\"'])oc ((?:-n|--[a-z-]+) \\S+ )*([a-z][a-z-]*)([^\\n`;&|]*)")

// harmlessVerbs are the verbs that documents and findings may show to be typed: they read, or change what the text
// beside them names. A verb that removes something is none of them.
func harmlessVerbs() []string {
	return []string{
		"adm", "annotate", "api-resources", "api-versions", "apply", "auth", "completion", "cp", "create", "debug", "describe", "edit", "exec",
		"extract", "get", "image",
		"label", "login", "logs", "mirror", "patch", "plugin", "preflight", "replace", "rollout", "run", "scale", "set", "wait", "whoami",
	}
}

// harmlessAdministration are those of "oc adm".
func harmlessAdministration() []string {
	return []string{
		"certificate", "inspect", "must-gather", "node-logs", "policy", "release", "top", "uncordon", "upgrade",
		"wait-for-stable-cluster",
	}
}

// removed are the only objects whose deletion is shown: those of this program and its controller, one in the place of
// which it has its own, and
// roles of "auth" that are piped.
var removed = regexp.MustCompile(`preflight|manifests/uninstall.yaml|-f -$|e\.object\.Name`)

// TestCommandsOfOC fails for a command of oc in a page, a golden file, an explanation or a finding that removes something
// else than what this program has created, that forces an update, or that removes the channel.
func TestCommandsOfOC(t *testing.T) {
	calls := 0
	check := func(place, text string) {
		for _, match := range callOfOC.FindAllStringSubmatch(text, -1) {
			calls++
			if why := harmful(match[2], match[3]); why != "" {
				t.Errorf("%s: oc %s%s: %s", place, match[2], match[3], why)
			}
		}
	}
	for path, text := range markdown(t) {
		for _, block := range documents.Blocks(text) {
			check(path, block.Text)
		}
		for _, span := range documents.Spans(text) {
			check(path, span)
		}
	}
	for _, entry := range explain.Entries() {
		check(entry.Name, "`"+entry.Remedy+"`")
	}
	for _, command := range printedCommands(t) {
		check("a finding or a golden file", command)
	}
	const least = 250 // fewer are a failure of this test to find them
	if calls < least {
		t.Errorf("%d calls of oc were found, want at least %d", calls, least)
	}
}

// harmful is why a call may destroy something; empty where it does not.
func harmful(verb, rest string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch {
	case strings.Contains(rest, "--force"):
		return "it forces"
	case verb == "adm" && !slices.Contains(harmlessAdministration(), strings.Trim(first, `".,:)'`)):
		return "this verb of oc adm is not among " + strings.Join(harmlessAdministration(), ", ")
	case regexp.MustCompile(`^ upgrade channel *(?:["')]|$)`).MatchString(rest) && verb == "adm":
		return "it removes the channel"
	case verb == "delete" && removed.MatchString(rest):
		return ""
	case !slices.Contains(harmlessVerbs(), verb):
		return "this verb is not among " + strings.Join(harmlessVerbs(), ", ")
	}
	return ""
}

// printedCommands are the commands that findings are made with, and those of the golden files of reports on a real cluster. The
// author of a check answers for the commands of its findings.
func printedCommands(t *testing.T) []string {
	t.Helper()
	start := regexp.MustCompile("(?:Read|Change|Delete|OnThisMachine)\\(\\s*[\"`]|^\\s*\\$ |\"command\": \"")
	var commands []string
	for _, directory := range []string{"collector", "runner", "cmd", "test/commands/testdata"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			made := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
			golden := strings.Contains(path, "test/commands/testdata") && slices.Contains([]string{".text", ".json"}, filepath.Ext(path))
			if err != nil || entry.IsDir() || !made && !golden {
				return err
			}
			content, err := os.ReadFile(path)
			for line := range strings.Lines(string(content)) {
				for _, command := range start.Split(strings.TrimRight(line, "\n"), -1)[1:] { // a line may have several
					if strings.HasPrefix(command, "oc ") {
						commands = append(commands, command)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return commands
}
