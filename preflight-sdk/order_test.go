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
		"Pass":     {"What passed is ground to stand on", pass, false, "Pass", ""},
		"Warn":     {"A warning is no obstacle", func(_ context.Context, t *preflight.T) error { t.Warnf("soon"); return nil }, false, "Pass", ""},
		"Skip":     {"What does not apply is no obstacle", func(_ context.Context, t *preflight.T) error { t.Skipf("no"); return nil }, false, "Pass", ""},
		"Advisory": {"Advice is no obstacle", func(_ context.Context, t *preflight.T) error { t.Failf("bad"); return nil }, true, "Pass", ""},
		"Fail": {
			"After a fail the answer would mean nothing, and that is no pass",
			func(_ context.Context, t *preflight.T) error { t.Failf("bad"); return nil },
			false, "Unknown", "Second was not started: it comes after First, which failed",
		},
		"Unknown": {
			"What could not tell is no ground to stand on",
			func(context.Context, *preflight.T) error { return errors.New("refused") },
			false, "Unknown", "Second was not started: it comes after First, which could not tell",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout strings.Builder
			asked := false
			p := preflight.Program{Args: []string{"-o", "json"}, Stdout: &stdout, Stderr: &stdout, TerminationLog: absent(t)}
			p.Run(context.Background(),
				preflight.Check{Name: "First", Run: tc.first, Advisory: tc.advisory},
				preflight.Check{Name: "Second", After: []string{"First"}, Run: func(context.Context, *preflight.T) error {
					asked = true
					return nil
				}},
				preflight.Check{Name: "Third", After: []string{"Second"}, Run: pass},
			)
			result := printed(t, stdout.String())
			second, third := result.Findings[1], result.Findings[2]
			if string(second.Outcome) != tc.want || second.Message != tc.message || asked != (tc.want == "Pass") {
				t.Errorf("%s: got %q, asked %t, want %s %q", tc.reason, say(second), asked, tc.want, tc.message)
			}
			if third.Outcome != second.Outcome {
				t.Errorf("%s: what comes after that is %q, want it to be the same", tc.reason, say(third))
			}
			if tc.message != "" && (second.Reason != "PrerequisiteFailed" || second.Remediation == "") {
				t.Errorf("%s: got reason %q, remedy %q", tc.reason, second.Reason, second.Remediation)
			}
		})
	}
}

func TestChoosingKeepsTheOrder(t *testing.T) {
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
		"RunBringsWhatComesBefore": {
			"Without those before it a check might pass for the wrong reason",
			[]string{"--run", "Third"},
			"First   \nSecond  \nThird   \n", "",
		},
		"RunTheFirst": {"What comes after is not asked for", []string{"--run", "First"}, "First  \n", ""},
		"SkipBefore": {
			"Nobody leaves out the ground in silence",
			[]string{"--skip", "First"},
			"", "preflight: check \"Second\" comes after \"First\": --skip both or none\n",
		},
		"SkipBeforeOfRun": {
			"Not even of a check that was chosen",
			[]string{"--run", "Third", "--skip", "Second"},
			"", "preflight: check \"Third\" comes after \"Second\": --skip both or none\n",
		},
		"SkipAll":   {"Both left out is one's own decision", []string{"--skip", "First,Second,Third"}, "Other  \n", ""},
		"SkipAfter": {"The last one is nobody's ground", []string{"--skip", "Third,Other"}, "First   \nSecond  \n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{Args: append(tc.args, "--list"), Stdout: &stdout, Stderr: &stderr, TerminationLog: absent(t)}
			p.Run(context.Background(), checks...)
			if stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("%s: got %q, error %q, want %q, error %q", tc.reason, stdout.String(), stderr.String(), tc.stdout, tc.stderr)
			}
		})
	}
}
