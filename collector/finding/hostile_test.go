package finding_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
)

// hostile are names that an API server accepts of some kind, such as a CertificateSigningRequest, or that a file has.
func hostile() []string {
	return []string{
		"$(touch made)", "`touch made`", "a;touch made", "a&touch made", "a|touch made", "a\ntouch made", "a\rtouch made", "a>made", "a>>made",
		"<made",
		"a${IFS}b", "$HOME", "${PATH}", "~", "*", "?", "[a-z]", "{a,b}", "!!", "#a", "a#b", "'", "''", "'$(touch made)'", `"`, `"$(touch made)"`,
		`\`, `a\`, `\'$(touch made)`,
		"a b", " a", "a ", "a  b", "-", "-o", "--kubeconfig=made", "--", "a=b", "%s", "%d%n", "oc", "preflight", "\x00", "\x1b[2Ja", "\u202ea",
		"\u00a0", "ä", "", "|", "||", "&&", "(a)", "a\tb",
	}
}

// Whatever a name is, a command that is pasted into a shell makes exactly the calls of its words, and nothing else; or
// there is none.
func TestHostileNames(t *testing.T) {
	directory := t.TempDir()
	stub := "#!/bin/sh\n{ printf '%s\\n' \"$@\"; } > \"$CALLS/$$\"\n" // a file for each process: those of a pipeline run at the same time
	for _, program := range []string{"oc", "grep"} {
		if err := os.WriteFile(filepath.Join(directory, program), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	shown := 0
	for _, name := range hostile() {
		for form, action := range map[string]finding.Action{
			"operand":  finding.Read("oc get node %s -o yaml", name),
			"list":     finding.Change("oc adm certificate approve %s", []string{"first", name}),
			"part":     finding.Read("oc get crd/%s", name),
			"value":    finding.Read("oc get events --field-selector=involvedObject.name=%s", name),
			"patch":    finding.Change("oc patch configmap a --patch %s", finding.JSON(map[string]any{"data": map[string]string{name: "true"}})),
			"pipeline": finding.Change("oc get %s -o json | oc replace -f -", name),
			"scope":    finding.Delete("oc delete pod %s", "a").Namespaced(name),
			"searched": finding.Read("oc get nodes | grep -F %s", "alert: "+name),
		} {
			if action.Command == "" {
				continue
			}
			shown++
			got := pasted(t, directory, action.Command)
			var want []string
			for _, call := range action.Calls {
				want = append(want, strings.Join(call[1:], "\n")+"\n")
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%q as %s: %s\nmade %q\nwant %q", name, form, action.Command, got, want)
			}
		}
	}
	if least := 5 * len(hostile()); shown < least {
		t.Errorf("%d commands, want at least %d: the others have none", shown, least)
	}
}

// pasted are the calls that a shell makes of a command, each with its words, sorted. It fails where a file is made.
func pasted(t *testing.T, programs, command string) []string {
	t.Helper()
	working := t.TempDir()
	calls := t.TempDir()
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	shell.Dir, shell.Env = working, []string{"PATH=" + programs + ":/bin:/usr/bin", "CALLS=" + calls, "HOME=/nowhere"}
	if output, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", command, err, output)
	}
	if left, err := os.ReadDir(working); err != nil || len(left) > 0 {
		t.Errorf("%s made the file %v, %v", command, left, err)
	}
	var made []string
	files, err := os.ReadDir(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(calls, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, string(content))
	}
	slices.Sort(made)
	return made
}

// What a reader would have to complete, or a shell would take for a flag, is no command.
func TestNoCommand(t *testing.T) {
	for name, action := range map[string]finding.Action{
		"Flag":     finding.Read("oc get node %s", "--kubeconfig=made"),
		"ListFlag": finding.Change("oc adm certificate approve %s", []string{"a", "-f"}),
		"Escape":   finding.Read("oc get node %s", "\x1b[2Ja"),
		"Break":    finding.Read("oc get node %s", "a\nb"),
		"Reorder":  finding.Read("oc get node %s", "\u202ea"),
		"Long":     finding.Read("oc get node %s", strings.Repeat("x", finding.MaxCommand)),
	} {
		if action.Command != "" || len(action.Calls) > 0 {
			t.Errorf("%s: %q, want no command", name, action.Command)
		}
	}
}
