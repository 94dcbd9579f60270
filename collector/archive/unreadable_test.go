package archive_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// unreadableIn is the variable that names the archive to the process of another user.
const unreadableIn = "TEST_UNREADABLE"

// What the user may not read is missing, and named: a file, and a directory with all that may be in it.
func TestUnreadable(t *testing.T) {
	if dir := os.Getenv(unreadableIn); dir != "" {
		opened, reached := open(t, dir)
		fmt.Printf("listed %s\nleft out %s\n", listed(t, reached, budgetsV1, ""), strings.Join(opened.About().LeftOut, ", "))
		return
	}
	for name, tc := range map[string]struct{ unreadable, left string }{
		"File":      {"namespaces/ns/policy/poddisruptionbudgets/b.yaml", "b.yaml"},
		"Directory": {"namespaces/ns", "namespaces/ns"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "archive")
			if err := os.Chmod(filepath.Join(dir, "../.."), 0o755); err != nil { // which only this user may read
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Chmod(filepath.Join(dir, tc.unreadable), 0o700); err != nil { // to remove it
					t.Error(err)
				}
			})
			content := tree(map[string]string{
				"cluster-scoped-resources/config.openshift.io/clusterversions.yaml": version,
				"namespaces/ns/policy/poddisruptionbudgets/b.yaml":                  budget,
				"namespaces/other/policy/poddisruptionbudgets.yaml":                 emptyList("policy/v1", "PodDisruptionBudgetList"),
			})
			if err := os.CopyFS(dir, content); err != nil {
				t.Fatal(err)
			}
			if err := exec.CommandContext(t.Context(), "chmod", "-R", "a+rX", dir).Run(); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, tc.unreadable), 0); err != nil {
				t.Fatal(err)
			}
			got := asAnother(t, dir)
			if !strings.Contains(got, "listed partial:\n") || !strings.Contains(got, tc.left+": ") || !strings.Contains(got, "permission denied") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// asAnother is what this test prints about an archive as a user who is not root, whom no mode keeps from reading.
func asAnother(t *testing.T, dir string) string {
	t.Helper()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "../test")
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), copied, "-test.run", "^TestUnreadable$")
	command.Dir, command.Env = "/", append(os.Environ(), unreadableIn+"="+dir)
	if os.Geteuid() == 0 {
		const another = 65534
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: another, Gid: another}}
	}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return string(output)
}
