package command_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/test/terminal"
)

// archiveOf is the path of the example archive with other available updates.
func archiveOf(t *testing.T, versions ...string) string {
	t.Helper()
	const template = `
    - channels: [stable-4.19]
      image: quay.io/openshift-release-dev/ocp-release@sha256:%s
      version: %s`
	var offered strings.Builder
	for i, version := range versions {
		fmt.Fprintf(&offered, template, strings.Repeat(fmt.Sprintf("%02d", i), 32), version)
	}
	made := t.TempDir()
	if err := os.CopyFS(made, os.DirFS("../../../examples/archive")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(made, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "clusterversions.yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		before, rest, _ := strings.Cut(string(content), "    availableUpdates:")
		_, after, found := strings.Cut(rest, "    conditionalUpdates:")
		if !found {
			return errors.New("the archive has no available updates")
		}
		return errors.Join(err, os.WriteFile(path, []byte(before+"    availableUpdates:"+offered.String()+"\n    conditionalUpdates:"+after),
			0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The decision is on a terminal of 80 by 24 when a command has ended, and nothing of the progress is left in its scrollback.
func TestDecisionIsOnTheScreen(t *testing.T) {
	t.Setenv("LC_ALL", "C") // a character is a byte
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	const columns, rows = 80, 24
	for name, tc := range map[string]struct {
		reason   string
		verb     []string
		versions []string
		want     string
	}{
		"One": {
			reason: "the findings of one update", verb: []string{"targets"}, versions: []string{"4.19.1"},
			want: "Decision of gates, risks and health on 4.19.1: Blocked",
		},
		"Nine": {reason: "nine updates", verb: []string{"targets"}, versions: []string{
			"4.19.1", "4.19.2", "4.19.3", "4.19.4", "4.19.5", "4.19.6",
			"4.18.13", "4.18.14", "4.18.15",
		}, want: ": 0 Clear, 6 Blocked, 3 Undecided; first 4.18.15: Undecided"},
		"Run": {reason: "the verdict", verb: []string{"run", "--to", "4.19.1"}, versions: []string{"4.19.1"}, want: "Verdict: Blocked"},
	} {
		opened := terminal.Open(t, columns, rows)
		command.Execute(context.Background(), append(append([]string{"oc-preflight"}, tc.verb...), "--archive", archiveOf(t, tc.versions...)),
			genericiooptions.IOStreams{In: opened.Stream, Out: opened.Stream, ErrOut: opened.Stream})
		shown := terminal.NewScreen(columns, rows)
		if _, err := shown.Write([]byte(opened.Received())); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(shown.Shown(), tc.want) {
			t.Errorf("%s: %s: the screen has no %q:\n%s", name, tc.reason, tc.want, shown.Shown())
		}
		if all := strings.Join(shown.Scrollback, "\n"); strings.Contains(all, "reading the cluster") {
			t.Errorf("%s: progress is left in the scrollback:\n%s", name, all)
		}
	}
}
