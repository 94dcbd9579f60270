package documents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// listed is a check as the program of an example lists it.
type listed struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Rules       []preflight.Rule `json:"rules"`
}

// TestGallery writes what the programs of the examples list.
func TestGallery(t *testing.T) {
	mains, err := filepath.Glob(filepath.Join(root, "examples", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	const examples = 9
	if len(mains) != examples {
		t.Errorf("%d examples were found, want %d", len(mains), examples)
	}
	programs := t.TempDir()
	run(t, "go", "build", "-o", programs+string(filepath.Separator), "./examples/...")
	rows := [][]string{{"example", "check", "what it checks", "rules"}}
	for _, path := range mains {
		name := filepath.Base(filepath.Dir(path))
		var checks []listed
		if err := json.Unmarshal(run(t, filepath.Join(programs, name), "--list", "-o", "json"), &checks); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, check := range checks {
			var rules []string
			for _, rule := range check.Rules {
				rules = append(rules, describe(rule))
			}
			rows = append(rows, []string{
				fmt.Sprintf("[%s](%[1]s/README.md), [output](%[1]s/testdata/output.txt)", name), check.Name,
				check.Description, strings.Join(rules, "; "),
			})
		}
	}
	expectGenerated(t, "examples/README.md", "gallery", table(rows...))
}

// run returns the standard output of a command in the root of the repository.
func run(t *testing.T, program string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir, command.Stderr = root, os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(arguments, " "), err)
	}
	return output
}

// describe describes a rule.
func describe(rule preflight.Rule) string {
	var resources []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resources = append(resources, "`"+strings.TrimSuffix(resource+"."+group, ".")+"`")
		}
	}
	text := strings.Join(rule.Verbs, ", ") + " " + strings.Join(resources, ", ")
	if len(rule.ResourceNames) > 0 {
		text += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	if rule.Namespace != "" {
		text += " in `" + rule.Namespace + "`"
	}
	return text
}
