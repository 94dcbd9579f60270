package commands_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

// Each command that a report prints is the same request with one change: pasted, it gives the
// result that it promises.
func TestPrintedCommandsRepeatTheRequest(t *testing.T) {
	byDefault.use(t)
	w := publish(t, map[string]animal{"healthy": {Plain: true}})
	given := []string{
		"--no-jobs", "--ignore-alert", "Watchdog, or 'quoted'", "--timeout", "7m0s", "--accept", "SomeRisk", "--request-timeout",
		"1m",
	}
	for name, tc := range map[string]struct {
		reason string
		target []string
		// again are the flags that select the target in the printed commands.
		again string
	}{
		"Version": {reason: "the version is listed", target: []string{"--to", to}, again: "--to " + to},
		"Latest":  {reason: "the latest release may be another one by then", target: []string{"--to-latest"}, again: "--to " + to},
		"Image": {
			reason: "a version that ClusterVersion does not list cannot be named", target: []string{"--to-image", w.PullSpec},
			again: "--to-image " + w.PullSpec,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := runPreflight(t, exit.Undecided, slices.Concat(tc.target, given)...)
			if len(result.Actions) != 2 {
				t.Fatalf("%s: the actions %+v, want to run again and to accept", tc.reason, result.Actions)
			}
			for _, action := range result.Actions {
				for _, flag := range []string{
					tc.again, "--no-jobs", `--ignore-alert 'Watchdog, or '\''quoted'\'''`, "--timeout 7m0s", "--prometheus",
					"--request-timeout 1m", "SomeRisk",
				} {
					if !strings.Contains(action.Command, " "+flag) && !strings.Contains(action.Command, ","+flag) {
						t.Errorf("%s: %s lacks %s", tc.reason, action.Command, flag)
					}
				}
				want := exit.Undecided
				if action.Type == finding.ActionAccept {
					want = exit.Ready
				}
				if got := pasted(t, action.Command); got.Code != want {
					t.Errorf("%s: %s: exit code %d, want %d\n%s", tc.reason, action.Command, got.Code, want, got.Stderr)
				}
			}
		})
	}
}

// pasted calls the program with a command line, whose words a shell separates.
func pasted(t *testing.T, line string) program.Result {
	t.Helper()
	words, ok := strings.CutPrefix(line, "oc preflight ")
	if !ok {
		t.Fatalf("the command %q is none of this program", line)
	}
	separated, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+words).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return program.Call(t, strings.Split(strings.TrimSuffix(string(separated), "\x00"), "\x00")...)
}
