package preflight_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestAfter(t *testing.T) {
	type run = func(context.Context, *preflight.T) error
	cases := map[string]struct {
		reason   string
		first    run
		advisory bool
		want     string
		message  string
	}{
		"Pass": {"A check runs after a prerequisite that passed", pass, false, "Pass", ""},
		"Warn": {
			"A check runs after a prerequisite that warned",
			func(_ context.Context, t *preflight.T) error { t.Warnf("soon"); return nil }, false, "Pass", "",
		},
		"Skip": {
			"A check runs after a prerequisite that was skipped",
			func(_ context.Context, t *preflight.T) error { t.Skipf("no"); return nil }, false, "Pass", "",
		},
		"Advisory": {
			"A check runs after an advisory prerequisite that failed",
			func(_ context.Context, t *preflight.T) error { t.Failf("bad"); return nil }, true, "Pass", "",
		},
		"Fail": {
			"A check does not run after a prerequisite that failed, and is Unknown",
			func(_ context.Context, t *preflight.T) error { t.Failf("bad"); return nil },
			false, "Unknown", "Second was not started: its prerequisite First failed",
		},
		"Unknown": {
			"A check does not run after an inconclusive prerequisite",
			func(context.Context, *preflight.T) error { return errors.New("refused") },
			false, "Unknown", "Second was not started: its prerequisite First was inconclusive",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout strings.Builder
			started := false
			p := preflight.Program{Args: []string{"-o", "json"}, Stdout: &stdout, Stderr: &stdout, TerminationLog: missingLog(t)}
			p.Run(context.Background(),
				preflight.Check{Name: "First", Run: tc.first, Advisory: tc.advisory},
				preflight.Check{Name: "Second", After: []string{"First"}, Run: func(context.Context, *preflight.T) error {
					started = true
					return nil
				}},
				preflight.Check{Name: "Third", After: []string{"Second"}, Run: pass},
			)
			result := parseJSON(t, stdout.String())
			second, third := result.Findings[1], result.Findings[2]
			if string(second.Outcome) != tc.want || second.Message != tc.message || started != (tc.want == "Pass") {
				t.Errorf("%s: got %q, started %t, want %s %q", tc.reason, outcomeLine(second), started, tc.want, tc.message)
			}
			if third.Outcome != second.Outcome {
				t.Errorf("%s: the check after that has %q, want the same outcome", tc.reason, outcomeLine(third))
			}
			if tc.message != "" && (second.Reason != "PrerequisiteFailed" || second.Remediation == "") {
				t.Errorf("%s: got reason %q, remedy %q", tc.reason, second.Reason, second.Remediation)
			}
		})
	}
}

func TestSelectionKeepsTheOrder(t *testing.T) {
	checks := []preflight.Check{
		{Name: "Other", Run: pass},
		{Name: "First", Run: pass},
		{Name: "Second", After: []string{"First"}, Run: pass},
		{Name: "Third", After: []string{"Second"}, Run: pass},
	}
	cases := map[string]struct {
		reason string
		args   []string
		stdout string
		stderr string
	}{
		"RunIncludesPrerequisites": {
			"Without its prerequisites a check might pass for the wrong reason",
			[]string{"--run", "Third"},
			"First   \nSecond  \nThird   \n", "",
		},
		"RunTheFirst": {"--run does not select dependent checks", []string{"--run", "First"}, "First  \n", ""},
		"SkipPrerequisite": {
			"A skipped prerequisite of a selected check is an error",
			[]string{"--skip", "First"},
			"", "preflight: check \"Second\" has the prerequisite \"First\": skip both or neither\n",
		},
		"SkipPrerequisiteOfRun": {
			"A skipped prerequisite of a check that --run names is an error",
			[]string{"--run", "Third", "--skip", "Second"},
			"", "preflight: check \"Third\" has the prerequisite \"Second\": skip both or neither\n",
		},
		"SkipAll":   {"A check may be skipped together with its prerequisites", []string{"--skip", "First,Second,Third"}, "Other  \n", ""},
		"SkipAfter": {"A check that is not a prerequisite may be skipped", []string{"--skip", "Third,Other"}, "First   \nSecond  \n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{Args: append(tc.args, "--list"), Stdout: &stdout, Stderr: &stderr, TerminationLog: missingLog(t)}
			p.Run(context.Background(), checks...)
			if stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("%s: got %q, error %q, want %q, error %q", tc.reason, stdout.String(), stderr.String(), tc.stdout, tc.stderr)
			}
		})
	}
}
