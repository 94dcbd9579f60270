package preflight_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// shScript is a script of check functions.
func shScript(t *testing.T, body string) string {
	t.Helper()
	return ". '" + absolute(t, "sh/preflight.sh") + "'\n" + body + "\n"
}

func quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shSays is a script that says what a document has in it, one function for
// each finding.
func shSays(t *testing.T, result preflight.Result) string {
	t.Helper()
	var functions, calls strings.Builder
	for i, f := range result.Findings {
		fmt.Fprintf(&functions, "check%d() {\n", i)
		switch f.Outcome {
		case preflight.Pass:
			fmt.Fprintf(&functions, "preflight_pass %s %s\n", quote(f.Message), quote(f.Reason))
		case preflight.Skipped:
			fmt.Fprintf(&functions, "preflight_skip %s %s\n", quote(f.Message), quote(f.Reason))
		case preflight.Warn, preflight.Fail, preflight.Unknown:
			fmt.Fprintf(&functions, "preflight_%s %s %s %s\n", strings.ToLower(string(f.Outcome)), quote(f.Message), quote(f.Remediation), quote(f.Reason))
		}
		if f.URL != "" {
			fmt.Fprintf(&functions, "preflight_url %s\n", quote(f.URL))
		}
		for _, o := range f.Objects {
			fmt.Fprintf(&functions, "preflight_object %s %s %s %s\n", quote(o.APIVersion), quote(o.Kind), quote(o.Namespace), quote(o.Name))
		}
		for key, value := range f.Evidence {
			fmt.Fprintf(&functions, "preflight_evidence %s %s\n", quote(key), quote(value))
		}
		functions.WriteString("}\n")
		fmt.Fprintf(&calls, " %s check%d", f.Name, i)
	}
	return shScript(t, functions.String()+"preflight_main"+calls.String())
}

func TestShellSaysTheVectors(t *testing.T) {
	t.Parallel()
	for name, shell := range shells(t) {
		for _, path := range vectors(t, "valid") {
			var want wire
			if err := json.Unmarshal(read(t, strings.TrimSuffix(path, ".txt")+".json"), &want); err != nil {
				t.Fatal(err)
			}
			// The states and the cuts are tested below; here is what is said.
			if want.State != preflight.StateFinal || want.Truncated {
				continue
			}
			t.Run(name+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				r := shell.run(t, script{text: shSays(t, want.result()), env: []string{"PREFLIGHT_RUN_ID=" + want.RunID}})
				got := r.result(t)
				if d := diff(t, got, want.result()); d != "" || !got.Agrees(r.code) {
					t.Errorf("exit code %d, standard error %s, %s", r.code, r.stderr, d)
				}
			})
		}
	}
}

func TestShellSaysAnyText(t *testing.T) {
	t.Parallel()
	text := "\x01\x1f\x7f\t\"\\/\b\f\r\n\n$(echo no) `no` %s %d \\n é☃𝄞\u2028 preflight/1 json 2 \"truncated\":true"
	want := preflight.Result{State: preflight.StateFinal, RunID: "5f0c", Findings: []preflight.Finding{{
		Name: "Any", Outcome: preflight.Fail, Reason: "Because", Message: text, Remediation: "x" + text + "x", URL: "https://" + text + "x",
		Objects:  []preflight.Object{{APIVersion: "v1", Kind: "Pod", Namespace: text + "x", Name: text + "x"}},
		Evidence: map[string]string{text + "x": text + "x"},
	}}}
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shell.run(t, script{text: shSays(t, want), env: []string{"PREFLIGHT_RUN_ID=5f0c"}})
			if d := diff(t, r.result(t), want); d != "" {
				t.Errorf("standard error %s, %s", r.stderr, d)
			}
		})
	}
}

func TestEveryEndOfAShellScriptIsHeard(t *testing.T) {
	t.Parallel()
	const first, last = "first() { preflight_pass fine; }\n", "last() { preflight_pass fine; }\npreflight_main First first Middle middle Last last"
	with := func(body string) string { return shScript(t, first+"middle() { "+body+"\n}\n"+last) }
	const fine, unfinished = "First Pass Passed fine\nMiddle ", "\nLast Unknown NotFinished Last had not started when the process ended"
	cases := map[string]scriptCase{
		"Passes": {
			reason: "Each check gives one finding",
			script: script{text: with("preflight_pass good")},
			want:   "final\n" + fine + "Pass Passed good\nLast Pass Passed fine",
		},
		"WorstCounts": {
			reason: "Of all that was said the worst counts, and comes first; a pass is no part of it",
			script: script{text: with("preflight_pass p; preflight_skip s; preflight_fail f; preflight_warn w; preflight_unknown u")},
			code:   3, want: "final\n" + fine + "Fail CheckFailed f; s; w; u\nLast Pass Passed fine",
		},
		"SaidInAPipe": {
			reason: "What is said in a subshell is not lost",
			script: script{text: with("printf 'a\\nb\\n' | while read -r pod; do preflight_fail \"pod $pod\"; done; preflight_pass good")},
			code:   3, want: "final\n" + fine + "Fail CheckFailed pod a; pod b\nLast Pass Passed fine",
		},
		"SaysNothing": {
			reason: "Silence is no pass in a language in which errors are silent",
			script: script{text: with(":")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check said nothing\nLast Pass Passed fine",
		},
		"CommandFails": {
			reason: "A command that fails ends the check before it passes",
			script: script{text: with("pods=$(false); preflight_pass \"$pods\"")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check ended with the status 1; its log may say why\nLast Pass Passed fine",
		},
		"FailsAfterAPass": {
			reason: "A pass that was told too early does not stand",
			script: script{text: with("preflight_pass good; return 3")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check ended with the status 3; its log may say why\nLast Pass Passed fine",
		},
		"FailsAfterAFail": {
			reason: "A fail that was told stands",
			script: script{text: with("preflight_fail seen; false")},
			code:   3, want: "final\n" + fine + "Fail CheckFailed seen; the check ended with the status 1; its log may say why\nLast Pass Passed fine",
		},
		"Exits": {
			reason: "An exit is the end of one check only",
			script: script{text: with("exit 0")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check said nothing\nLast Pass Passed fine",
		},
		"Noise": {
			reason: "What a check prints is no result",
			script: script{text: with("echo preflight/1 json 2 00000000 {}; cd /; IFS=x; set -f; LC_ALL=C; preflight_pass good")},
			want:   "final\n" + fine + "Pass Passed good\nLast Pass Passed fine",
		},
		"BadReason": {
			reason: "A reason that no document may have is left out",
			script: script{text: with("preflight_fail f '' 'no word'")},
			code:   3, want: "final\n" + fine + "Fail  f\nLast Pass Passed fine",
		},
		"Terminated": {
			reason: "SIGTERM leaves an honest account of how far it was",
			script: script{text: with("echo here >&2; sleep 20"), signal: syscall.SIGTERM},
			code:   4, want: "running\n" + fine + "Unknown NotFinished Middle was running when the process ended" + unfinished,
		},
		"TerminatedAfterAFail": {
			reason: "The fail of a check before it stands",
			script: script{text: shScript(t, "first() { preflight_fail seen; }\nmiddle() { echo here >&2; sleep 20; }\n"+last), signal: syscall.SIGTERM},
			code:   4, want: "running\nFirst Fail CheckFailed seen\nMiddle Unknown NotFinished Middle was running when the process ended" + unfinished,
		},
		"Killed": {
			reason: "So does SIGKILL",
			script: script{text: with("echo here >&2; sleep 20"), signal: os.Kill},
			code:   -1, want: "running\n" + fine + "Unknown NotFinished Middle was running when the process ended" + unfinished,
		},
		"Deadline": {
			reason: "The program ends before the deadline at which it would be killed",
			script: script{text: with("sleep 20"), timeout: 6 * time.Second},
			code:   4, want: "running\n" + fine + "Unknown NotFinished Middle was running when the process ended" + unfinished,
		},
		"InTime": {
			reason: "A deadline that is far does not delay the end",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_DEADLINE=2096-02-29T08:09:08.123Z"}},
			want:   "final\n" + fine + "Pass Passed good\nLast Pass Passed fine",
		},
		"DeadlinePassed": {
			reason: "After the deadline nothing is started",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_DEADLINE=2020-01-31T10:00:00Z"}},
			code:   4, want: "final\nPreflight Unknown Timeout no check was run: the deadline of the run has passed",
		},
		"BadDeadline": {
			reason: "Without the deadline the program might not be heard",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_DEADLINE=soon"}},
			code:   2, want: "final\nPreflight Unknown InvalidArguments no check was run: PREFLIGHT_DEADLINE is no time like 2026-01-31T10:00:00Z",
		},
		"BadBudget": {
			reason: "Without the budget the result might be cut off",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_RESULT_BYTES=511"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RESULT_BYTES is no number of at least 512",
		},
		"BadRunID": {
			reason: "A run ID that no frame can hold is no run ID",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_RUN_ID=a b"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RUN_ID is not of at most 64 letters, digits, dots, dashes and underscores",
		},
		"LongRunID": {
			reason: "Nor is one that is too long",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_RUN_ID=" + strings.Repeat("x", 65)}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RUN_ID is not of at most 64 letters, digits, dots, dashes and underscores",
		},
		"NoChecks": {
			reason: "Nothing to run is not a pass",
			script: script{text: shScript(t, "preflight_main")},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: no checks: call preflight_main with at least one",
		},
		"BadName": {
			reason: "A name must be one that ClusterVersion takes",
			script: script{text: shScript(t, "preflight_main first-check true")},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: check name \"first-check\" is not CamelCase of at most 63 letters and digits",
		},
		"Twice": {
			reason: "A name stands for one check",
			script: script{text: shScript(t, "preflight_main A true A true")},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: check name \"A\" is taken by an earlier check",
		},
		"NoFunction": {
			reason: "A check without a function cannot pass",
			script: script{text: shScript(t, "preflight_main A true B")},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: check \"B\" has no function",
		},
	}
	for shellName, shell := range shells(t) {
		for name, tc := range cases {
			t.Run(shellName+"/"+name, func(t *testing.T) {
				t.Parallel()
				tc.check(t, shell)
			})
		}
	}
}

func TestShellLeavesOutInOrder(t *testing.T) {
	t.Parallel()
	// So many checks fail with so long a message, after one that passes.
	text := func(count, length int) string {
		body, calls := fmt.Sprintf("good() { preflight_pass fine; }\nbad() { preflight_fail %s %s; }\n", quote(strings.Repeat("é☃", length/5)), quote(strings.Repeat("r", 200))), "preflight_main Good good"
		for i := range count {
			calls += fmt.Sprintf(" Check%d bad", i)
		}
		return shScript(t, body+calls)
	}
	cases := map[string]struct {
		reason        string
		count, length int
		budget        string
		// What is left of the last message, in bytes, and of the findings.
		message, findings int
		truncated         bool
	}{
		"Fits":     {"What fits is left as it is", 2, 500, "", 500, 3, false},
		"Cut":      {"Whole characters of the message are left", 2, 500, "1200", 128, 3, true},
		"Names":    {"Name, outcome and reason are left", 8, 500, "700", 0, 9, true},
		"Summary":  {"At last one finding stands for all", 20, 500, "512", 38, 1, true},
		"Huge":     {"A budget beyond what a kubelet keeps is not believed", 4, 2000, "1000000", 128, 5, true},
		"Parts":    {"A long frame goes into the log in parts", 9, 2000, "", 128, 10, true},
		"TooLong":  {"A message is cut when it is said", 1, 9000, "", 2048, 2, false},
		"AsLittle": {"The smallest budget holds a whole small result", 1, 5, "512", 5, 2, false},
	}
	for shellName, shell := range shells(t) {
		for name, tc := range cases {
			t.Run(shellName+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := shell.run(t, script{text: text(tc.count, tc.length), env: []string{"PREFLIGHT_RUN_ID=5f0c", "PREFLIGHT_RESULT_BYTES=" + tc.budget}})
				result := r.result(t)
				last := result.Findings[len(result.Findings)-1]
				if near := tc.message - len(last.Message); near < 0 || near > 5 || len(result.Findings) != tc.findings || result.Truncated != tc.truncated {
					t.Errorf("%s: %d bytes of message, %d findings, truncated %t", tc.reason, len(last.Message), len(result.Findings), result.Truncated)
				}
				if strings.Contains(last.Message, "\ufffd") || last.Outcome != preflight.Fail || !result.Agrees(r.code) || len(r.terminationLog) > 4096 {
					t.Errorf("%s: exit code %d, %d bytes, %+v", tc.reason, r.code, len(r.terminationLog), last)
				}
				if !tc.truncated {
					return
				}
				whole, err := preflight.ParseFrame([]byte(r.stdout))
				if err != nil || whole.Truncated || len(whole.Findings) != tc.count+1 || !whole.Agrees(r.code) {
					t.Errorf("%s: the log has %+v, error %v", tc.reason, whole, err)
				}
			})
		}
	}
}

func TestShellOnALaptop(t *testing.T) {
	t.Parallel()
	text := shScript(t, "bad() { preflight_fail \"pod a\"; }\npreflight_main Bad bad")
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shell.run(t, script{text: text, laptop: true})
			if r.code != 3 || r.stdout != "" || r.stderr != "Bad: Fail: pod a\n" {
				t.Errorf("got %+v, want what is for people, and no frame", r)
			}
			// In a Job whose termination log is gone the log has the result.
			r = shell.run(t, script{text: text, laptop: true, env: []string{"PREFLIGHT_RUN_ID=5f0c"}})
			result, err := preflight.ParseFrame([]byte(r.stdout))
			if err != nil || !result.Agrees(r.code) || result.RunID != "5f0c" {
				t.Errorf("got %+v, error %v", result, err)
			}
		})
	}
}

// The example, with an oc that says what the case has it say.
func TestShellExample(t *testing.T) {
	t.Parallel()
	cases := map[string]scriptCase{
		"None":  {reason: "No volume is in the way", script: script{text: "true"}, want: "final\nNoFlexVolumes Pass Passed no volume uses flexVolume"},
		"Two":   {reason: "Each volume is named", script: script{text: "printf 'db-0\\ndb-1\\n'"}, code: 3, want: "final\nNoFlexVolumes Fail FlexVolumeInUse volume db-0 uses flexVolume, which 4.21.3 drops; volume db-1 uses flexVolume, which 4.21.3 drops"},
		"Error": {reason: "No answer is no pass", script: script{text: "echo forbidden >&2; exit 1"}, code: 4, want: "final\nNoFlexVolumes Unknown CheckError the check ended with the status 1; its log may say why"},
	}
	for shellName, shell := range shells(t) {
		for name, tc := range cases {
			t.Run(shellName+"/"+name, func(t *testing.T) {
				t.Parallel()
				bin := t.TempDir()
				if err := os.WriteFile(filepath.Join(bin, "oc"), []byte("#!/bin/sh\n"+tc.script.text+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				path := shell.path
				if path == "" {
					path = os.Getenv("PATH")
				}
				shell := interpreter{args: shell.args, path: bin + ":" + path}
				tc.script.file = "sh/no-flex-volumes.sh"
				tc.script.env = []string{"PREFLIGHT_TARGET_VERSION=4.21.3"}
				tc.check(t, shell)
			})
		}
	}
}
