package terminal_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// A demo that is interrupted while its cluster starts leaves nothing. The start itself is
// tested by test/cluster, and what is then shown by test/e2e and test/installation.
func TestInterruptedStart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, keep string
		// left are the entries of the directory for temporary files afterwards.
		left int
	}{
		"Temporary": {reason: "a temporary directory is deleted"},
		"Kept":      {reason: "the directory of a cluster to keep need not exist, and stays", keep: "new/demo", left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			keep := tc.keep
			if keep != "" {
				keep = filepath.Join(temporary, keep)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			interrupt()
			_, err := terminal.Open(ctx, io.Discard, keep)
			if !errors.Is(err, context.Canceled) || errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: error %v, want only that of the interrupt", tc.reason, err)
			}
			left, err := os.ReadDir(temporary)
			if err != nil || len(left) != tc.left {
				t.Errorf("%s: %d entries are left, want %d: %v, %v", tc.reason, len(left), tc.left, left, err)
			}
		})
	}
}

// The output shows each command as it can be entered, and an unexpected exit code is an
// error.
func TestRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho $KUBECONFIG\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		code   int
		want   string // a part of the error; none if empty
	}{
		"Expected":   {reason: "the exit code is the expected one", code: exit.Blocked},
		"Unexpected": {reason: "the exit code is another one", code: exit.Ready, want: "ended with exit code 3, want 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			shown, err := terminal.New(&out, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			shown.Preflight, shown.Cluster = program, &cluster.Cluster{Kubeconfig: "admin.kubeconfig"}
			err = shown.Run(t.Context(), tc.code, "oc-preflight", "run", "--accept", "the risk {}")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if diff := cmp.Diff("$ oc-preflight run --accept 'the risk {}'\nadmin.kubeconfig\n", out.String()); diff != "" {
				t.Errorf("%s: output (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Only the lines that were asked for are shown, and none of them is an error.
func TestRunLines(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho Settling: soon\necho Good: all\necho a list\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, begin string
		code          int
		shown         string
		fails         bool
	}{
		"Shown":      {reason: "one line begins so", begin: "Good", shown: "Good: all\n"},
		"None":       {reason: "no line begins so", begin: "Regressed", fails: true},
		"Unexpected": {reason: "the exit code is another one", begin: "Good", code: exit.Blocked, shown: "Good: all\n", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			shown, err := terminal.New(&out, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			shown.Preflight, shown.Cluster = program, &cluster.Cluster{Kubeconfig: "admin.kubeconfig"}
			if err := shown.RunLines(t.Context(), tc.code, tc.begin, "oc-preflight", "after"); (err != nil) != tc.fails {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff("$ oc-preflight after | grep ^"+tc.begin+"\n"+tc.shown, out.String()); diff != "" {
				t.Errorf("%s: output (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
