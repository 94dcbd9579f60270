package command_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

// damaged is a copy of the example with that many files of nodes that cannot be parsed: that is found out when the
// nodes are first read.
func damaged(t *testing.T, files int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "must-gather")
	err := os.CopyFS(path, os.DirFS("../../../examples/archive"))
	nodes := ""
	walked := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "nodes" {
			nodes = name
		}
		return err
	})
	if err := errors.Join(err, walked); err != nil || nodes == "" {
		t.Fatal(nodes, err)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(nodes, fmt.Sprintf("broken-%03d.yaml", i)), []byte("kind: [Node\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// called are the outputs of a command.
func called(t *testing.T, args ...string) (out, errOut string) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	c := command.New("oc preflight", streams)
	c.SetArgs(args)
	c.SetOut(stdout)
	c.SetErr(stderr)
	_ = c.Execute() // the decision of a damaged archive is no Ready
	return stdout.String(), stderr.String()
}

// What turns out to be unreadable while the checks run is stated, too: the user must know what the decision lacks.
func TestFilesThatCouldNotBeReadAreStated(t *testing.T) {
	for name, args := range map[string][]string{
		"targets": {"targets", "--to", "4.19.1", "--archive"},
		"run":     {"run", "--to", "4.19.1", "--archive"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stated := called(t, append(args, damaged(t, 1))...)
			if strings.Count(stated, "not read: ") != 1 || !strings.Contains(stated, "broken-000.yaml: ") {
				t.Errorf("the file is not stated once:\n%s", stated)
			}
			_, stated = called(t, append(args, damaged(t, 120))...)
			if strings.Count(stated, "not read: ") != 101 || !strings.HasSuffix(stated, "not read: 20 other files\n") {
				t.Errorf("the files are not counted:\n%s", stated[max(0, len(stated)-1000):])
			}
		})
	}
}

func TestFilesOfAFleetThatCouldNotBeReadAreStated(t *testing.T) {
	for _, verb := range []string{"targets", "run"} {
		t.Run(verb, func(t *testing.T) {
			table, _ := called(t, "fleet", verb, "--to", "4.19.1", "--archives", damaged(t, 120), "-o", "json")
			if !strings.Contains(table, "120 files of the archive not read, such as ") || !strings.Contains(table, "broken-000.yaml: ") {
				t.Errorf("the row does not state the files:\n%s", table)
			}
		})
	}
}
