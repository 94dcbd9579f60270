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

// shScript returns a script that sources preflight.sh.
func shScript(t *testing.T, body string) string {
	t.Helper()
	return ". '" + absolute(t, "sh/preflight.sh") + "'\n" + body + "\n"
}

func shellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shScriptReporting returns a script that reports the findings of the result, with
// one function per finding.
func shScriptReporting(t *testing.T, result preflight.Result) string {
	t.Helper()
	var functions, calls strings.Builder
	for i, f := range result.Findings {
		fmt.Fprintf(&functions, "check%d() {\n", i)
		switch f.Outcome {
		case preflight.Pass:
			fmt.Fprintf(&functions, "preflight_pass %s %s\n", shellQuote(f.Message), shellQuote(f.Reason))
		case preflight.Skipped:
			fmt.Fprintf(&functions, "preflight_skip %s %s\n", shellQuote(f.Message), shellQuote(f.Reason))
		case preflight.Warn, preflight.Fail, preflight.Unknown:
			fmt.Fprintf(&functions, "preflight_%s %s %s %s\n", strings.ToLower(string(f.Outcome)), shellQuote(f.Message), shellQuote(f.Remediation),
				shellQuote(f.Reason))
		}
		for _, action := range f.Actions {
			fmt.Fprintf(&functions, "preflight_command %s\n", shellQuote(action.Command))
		}
		if f.URL != "" {
			fmt.Fprintf(&functions, "preflight_url %s\n", shellQuote(f.URL))
		}
		for _, o := range f.Objects {
			fmt.Fprintf(&functions, "preflight_object %s %s %s %s\n", shellQuote(o.APIVersion), shellQuote(o.Kind), shellQuote(o.Namespace),
				shellQuote(o.Name))
		}
		for key, value := range f.Evidence {
			fmt.Fprintf(&functions, "preflight_evidence %s %s\n", shellQuote(key), shellQuote(value))
		}
		functions.WriteString("}\n")
		fmt.Fprintf(&calls, " %s check%d", f.Name, i)
	}
	return shScript(t, functions.String()+"preflight_main"+calls.String())
}

// finalDocuments returns the different documents of the valid vectors, by one of their files:
// most vectors have the same document in another form. Other states and truncation are
// tested below.
func finalDocuments(t *testing.T) map[string]preflight.Result {
	t.Helper()
	documents, seen := map[string]preflight.Result{}, map[string]bool{}
	for _, path := range vectorFiles(t, "valid") {
		document := readFile(t, strings.TrimSuffix(path, ".txt")+".json")
		var want wire
		if err := json.Unmarshal(document, &want); err != nil {
			t.Fatal(err)
		}
		if want.State == preflight.StateFinal && !want.Truncated && !seen[string(document)] {
			documents[filepath.Base(path)] = want.result()
		}
		seen[string(document)] = true
	}
	return documents
}

func TestShellWritesTheVectors(t *testing.T) {
	t.Parallel()
	for name, shell := range shells(t) {
		for file, want := range finalDocuments(t) {
			t.Run(name+"/"+file, func(t *testing.T) {
				t.Parallel()
				r := shell.run(t, script{text: shScriptReporting(t, want), env: []string{"PREFLIGHT_RUN_ID=" + want.RunID}})
				got := r.result(t)
				if d := diff(t, got, want); d != "" || !got.Agrees(r.code) {
					t.Errorf("exit code %d, standard error %s, %s", r.code, r.stderr, d)
				}
			})
		}
	}
}

func TestShellWritesAnyText(t *testing.T) {
	t.Parallel()
	text := "\x01\x1f\x7f\t\"\\/\b\f\r\n\n$(echo no) `no` %s %d \\n é☃𝄞\u2028 preflight/1 json 2 \"truncated\":true"
	want := preflight.Result{State: preflight.StateFinal, RunID: "5f0c", Findings: []preflight.Finding{{
		Name: "Any", Outcome: preflight.Fail, Reason: "Because", Message: text, Remediation: "x" + text + "x",
		Actions: []preflight.Action{{Command: "x" + text + "x"}}, URL: "https://" + text + "x",
		Objects:  []preflight.Object{{APIVersion: "v1", Kind: "Pod", Namespace: text + "x", Name: text + "x"}},
		Evidence: map[string]string{text + "x": text + "x"},
	}}}
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shell.run(t, script{text: shScriptReporting(t, want), env: []string{"PREFLIGHT_RUN_ID=5f0c"}})
			if d := diff(t, r.result(t), want); d != "" {
				t.Errorf("standard error %s, %s", r.stderr, d)
			}
		})
	}
}

func TestShellEndings(t *testing.T) {
	t.Parallel()
	const first, last = "first() { preflight_pass fine; }\n",
		"last() { preflight_pass fine; }\npreflight_main First first Middle middle Last last"
	with := func(body string) string { return shScript(t, first+"middle() { "+body+"\n}\n"+last) }
	const fine, unfinished = "First Pass Passed fine\nMiddle ", "\nLast Unknown NotFinished Last had not started when the process ended"
	cases := map[string]scriptCase{
		"Passes": {
			reason: "Each check produces one finding",
			script: script{text: with("preflight_pass good")},
			want:   "final\n" + fine + "Pass Passed good\nLast Pass Passed fine",
		},
		"WorstCounts": {
			reason: "The most severe report is the outcome and comes first; a pass is omitted",
			script: script{text: with("preflight_pass p; preflight_skip s; preflight_fail f; preflight_warn w; preflight_unknown u")},
			code:   3, want: "final\n" + fine + "Fail CheckFailed f; s; w; u\nLast Pass Passed fine",
		},
		"ReportedInAPipeline": {
			reason: "Reports of a subshell count",
			script: script{text: with("printf 'a\\nb\\n' | while read -r pod; do preflight_fail \"pod $pod\"; done; preflight_pass good")},
			code:   3, want: "final\n" + fine + "Fail CheckFailed pod a; pod b\nLast Pass Passed fine",
		},
		"ReportsNothing": {
			reason: "A check that reports nothing is inconclusive, because errors are easily missed in sh",
			script: script{text: with(":")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check reported nothing\nLast Pass Passed fine",
		},
		"CommandFails": {
			reason: "A command that fails makes the check inconclusive",
			script: script{text: with("pods=$(false); preflight_pass \"$pods\"")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check exited with status 1; see its log\nLast Pass Passed fine",
		},
		"FailsAfterAPass": {
			reason: "A check that fails after it reported a pass is inconclusive",
			script: script{text: with("preflight_pass good; return 3")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check exited with status 3; see its log\nLast Pass Passed fine",
		},
		"FailsAfterAFail": {
			reason: "A fail that was reported remains a fail",
			script: script{text: with("preflight_fail seen; false")},
			code:   3, want: "final\n" + fine + "Fail CheckFailed seen; the check exited with status 1; see its log\nLast Pass Passed fine",
		},
		"Exits": {
			reason: "An exit ends only the check in which it occurs",
			script: script{text: with("exit 0")},
			code:   4, want: "final\n" + fine + "Unknown CheckError the check reported nothing\nLast Pass Passed fine",
		},
		"Noise": {
			reason: "The standard output of a check is ignored",
			script: script{text: with("echo preflight/1 json 2 00000000 {}; cd /; IFS=x; set -f; LC_ALL=C; preflight_pass good")},
			want:   "final\n" + fine + "Pass Passed good\nLast Pass Passed fine",
		},
		"BadReason": {
			reason: "An invalid reason is omitted",
			script: script{text: with("preflight_fail f '' 'no word'")},
			code:   3, want: "final\n" + fine + "Fail  f\nLast Pass Passed fine",
		},
		"Terminated": {
			reason: "After SIGTERM the last result that was written remains, and unfinished checks are Unknown",
			script: script{text: with("echo here >&2; sleep 20"), signal: syscall.SIGTERM},
			code:   4, want: "running\n" + fine + "Unknown NotFinished Middle was running when the process ended" + unfinished,
		},
		"TerminatedAfterAFail": {
			reason: "The fail of an earlier check remains",
			script: script{
				text:   shScript(t, "first() { preflight_fail seen; }\nmiddle() { echo here >&2; sleep 20; }\n"+last),
				signal: syscall.SIGTERM,
			},
			code: 4, want: "running\nFirst Fail CheckFailed seen\nMiddle Unknown NotFinished Middle was running when the process ended" +
				unfinished,
		},
		"Killed": {
			reason: "After SIGKILL the last result that was written remains",
			script: script{text: with("echo here >&2; sleep 20"), signal: os.Kill},
			code:   -1, want: "running\n" + fine + "Unknown NotFinished Middle was running when the process ended" + unfinished,
		},
		"Deadline": {
			reason: "The program ends before the deadline at which it would be killed",
			script: script{text: with("sleep 20"), timeout: 6 * time.Second},
			code:   4, want: "running\n" + fine + "Unknown NotFinished Middle was running when the process ended" + unfinished,
		},
		"InTime": {
			reason: "A distant deadline does not delay the end",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_DEADLINE=2096-02-29T08:09:08.123Z"}},
			want:   "final\n" + fine + "Pass Passed good\nLast Pass Passed fine",
		},
		"DeadlinePassed": {
			reason: "No check starts after the deadline",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_DEADLINE=2020-01-31T10:00:00Z"}},
			code:   4, want: "final\nPreflight Unknown Timeout no check was run: the deadline of the run has passed",
		},
		"BadDeadline": {
			reason: "A malformed deadline is an error, because the process might be killed before it reports",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_DEADLINE=soon"}},
			code:   2, want: "final\nPreflight Unknown InvalidArguments no check was run: PREFLIGHT_DEADLINE: want a time like 2026-01-31T10:00:00Z",
		},
		"BadBudget": {
			reason: "A budget below the minimum is an error, because the result might be cut off",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_RESULT_BYTES=511"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RESULT_BYTES: want a number of at least 512",
		},
		"BadRunID": {
			reason: "A run ID that is not valid in a frame is an error",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_RUN_ID=a b"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RUN_ID: want at most 64 letters, digits, " +
				"dots, dashes and underscores",
		},
		"LongRunID": {
			reason: "A run ID that is too long is an error",
			script: script{text: with("preflight_pass good"), env: []string{"PREFLIGHT_RUN_ID=" + strings.Repeat("x", 65)}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RUN_ID: want at most 64 letters, digits, " +
				"dots, dashes and underscores",
		},
		"NoChecks": {
			reason: "A script without checks does not pass",
			script: script{text: shScript(t, "preflight_main")},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: no checks: call preflight_main with at least one",
		},
		"BadName": {
			reason: "A name must be valid as a risk name in ClusterVersion",
			script: script{text: shScript(t, "preflight_main first-check true")},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: check name \"first-check\" is not CamelCase of at " +
				"most 63 letters and digits",
		},
		"Twice": {
			reason: "Names are unique",
			script: script{text: shScript(t, "preflight_main A true A true")},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: duplicate check name \"A\"",
		},
		"NoFunction": {
			reason: "A check without a function is an error",
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

func TestShellTruncationOrder(t *testing.T) {
	t.Parallel()
	// text returns a script with one check that passes and count checks that fail with
	// a message of about length bytes.
	text := func(count, length int) string {
		body, calls := fmt.Sprintf("good() { preflight_pass fine; }\nbad() { preflight_fail %s %s; }\n",
			shellQuote(strings.Repeat("é☃", length/5)), shellQuote(strings.Repeat("r", 200))), "preflight_main Good good"
		for i := range count {
			calls += fmt.Sprintf(" Check%d bad", i)
		}
		return shScript(t, body+calls)
	}
	cases := map[string]struct {
		reason        string
		count, length int
		budget        string
		// The expected length of the last message in bytes and number of findings.
		message, findings int
		truncated         bool
	}{
		"Fits":     {"A result that fits is complete", 2, 500, "", 500, 3, false},
		"Cut":      {"Messages are truncated to whole characters", 2, 500, "1200", 128, 3, true},
		"Names":    {"Name, outcome and reason remain", 4, 150, "700", 0, 5, true},
		"Summary":  {"Finally one finding replaces all", 9, 10, "512", 38, 1, true},
		"Huge":     {"A budget above the limit of the kubelet is reduced to this limit", 4, 1000, "1000000", 128, 5, true},
		"Parts":    {"A long frame is written to the log in parts", 4, 2000, "", 128, 5, true},
		"TooLong":  {"A message is truncated when it is reported", 1, 9000, "", 2048, 2, false},
		"Smallest": {"A small result fits into the smallest budget", 1, 5, "512", 5, 2, false},
	}
	for shellName, shell := range shells(t) {
		for name, tc := range cases {
			t.Run(shellName+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := shell.run(t, script{
					text: text(tc.count, tc.length),
					env:  []string{"PREFLIGHT_RUN_ID=5f0c", "PREFLIGHT_RESULT_BYTES=" + tc.budget},
				})
				result := r.result(t)
				last := result.Findings[len(result.Findings)-1]
				if near := tc.message - len(last.Message); near < 0 || near > 5 || len(result.Findings) != tc.findings ||
					result.Truncated != tc.truncated {
					t.Errorf("%s: %d bytes of message, %d findings, truncated %t", tc.reason, len(last.Message), len(result.Findings), result.Truncated)
				}
				if strings.Contains(last.Message, "\ufffd") || last.Outcome != preflight.Fail || !result.Agrees(r.code) ||
					len(r.terminationLog) > 4096 {
					t.Errorf("%s: exit code %d, %d bytes, %+v", tc.reason, r.code, len(r.terminationLog), last)
				}
				if !tc.truncated {
					return
				}
				full, err := preflight.ParseFrame([]byte(r.stdout))
				if err != nil || full.Truncated || len(full.Findings) != tc.count+1 || !full.Agrees(r.code) {
					t.Errorf("%s: the log contains %+v, error %v", tc.reason, full, err)
				}
			})
		}
	}
}

func TestShellOutsideOfAJob(t *testing.T) {
	t.Parallel()
	text := shScript(t, "bad() { preflight_fail \"pod a\"; }\npreflight_main Bad bad")
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shell.run(t, script{text: text, outsideJob: true})
			if r.code != 3 || r.stdout != "" || r.stderr != "Bad: Fail: pod a\n" {
				t.Errorf("got %+v, want the text output and no frame", r)
			}
			// In a Job without a termination log, the log has the result.
			r = shell.run(t, script{text: text, outsideJob: true, env: []string{"PREFLIGHT_RUN_ID=5f0c"}})
			result, err := preflight.ParseFrame([]byte(r.stdout))
			if err != nil || !result.Agrees(r.code) || result.RunID != "5f0c" {
				t.Errorf("got %+v, error %v", result, err)
			}
		})
	}
}

func TestShellPrintsWhyACheckIsInconclusive(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, body, want string }{
		"CommandFails":   {"The failure of a command is printed", "false", "Nodes: Unknown: the check exited with status 1; see its log\n"},
		"ReportsNothing": {"The absence of a report is printed", ":", "Nodes: Unknown: the check reported nothing\n"},
	}
	for shellName, shell := range shells(t) {
		for name, tc := range cases {
			t.Run(shellName+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := shell.run(t, script{text: shScript(t, "nodes() { "+tc.body+"\n}\npreflight_main Nodes nodes"), outsideJob: true})
				if r.code != 4 || r.stdout != "" || r.stderr != tc.want {
					t.Errorf("%s: got %+v, want standard error %q", tc.reason, r, tc.want)
				}
			})
		}
	}
}

func TestShellHelp(t *testing.T) {
	t.Parallel()
	text := shScript(t, "nodes() { echo started >&2; preflight_fail \"pod a\"; }\npreflight_main Nodes nodes Pods nodes")
	for shellName, shell := range shells(t) {
		for _, flag := range []string{"-h", "--help"} {
			t.Run(shellName+"/"+flag, func(t *testing.T) {
				t.Parallel()
				r := shell.run(t, script{text: text, args: []string{flag}})
				if r.code != 0 || len(r.terminationLog) != 0 || r.stderr != "" {
					t.Errorf("got %+v, want no check to run", r)
				}
				for _, part := range []string{"usage: program [--help]\n", "\n  Nodes\n  Pods\n", "Exit codes: 0 ", "PREFLIGHT_DEADLINE"} {
					if !strings.Contains(r.stdout, part) {
						t.Errorf("no %q in the usage:\n%s", part, r.stdout)
					}
				}
			})
		}
	}
}

// fakeOC returns the shell with an oc command that executes text.
func (i interpreter) fakeOC(t *testing.T, text string) interpreter {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "oc"), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := i.path
	if path == "" {
		path = os.Getenv("PATH")
	}
	return interpreter{args: i.args, path: bin + ":" + path}
}

// The text of each case is the script of a fake oc command.
func TestShellExample(t *testing.T) {
	t.Parallel()
	cases := map[string]scriptCase{
		"None": {
			reason: "The check passes without such a volume", script: script{text: "true"},
			want: "final\nNoFlexVolumes Pass Passed no volume uses flexVolume",
		},
		"Two": {
			reason: "The message names each volume", script: script{text: "printf 'db-0\\ndb-1\\n'"}, code: 3,
			want: "final\nNoFlexVolumes Fail FlexVolumeInUse volume db-0 uses flexVolume, which 4.21.3 drops; volume db-1 uses flexVolume, " +
				"which 4.21.3 drops",
		},
		"Error": {
			reason: "A failed request is inconclusive", script: script{text: "echo forbidden >&2; exit 1"}, code: 4,
			want: "final\nNoFlexVolumes Unknown CheckError the check exited with status 1; see its log",
		},
	}
	for shellName, shell := range shells(t) {
		for name, tc := range cases {
			t.Run(shellName+"/"+name, func(t *testing.T) {
				t.Parallel()
				tc.script.file = "sh/no-flex-volumes.sh"
				tc.script.env = []string{"PREFLIGHT_TARGET_VERSION=4.21.3"}
				tc.check(t, shell.fakeOC(t, tc.script.text))
			})
		}
	}
}

// A script sources preflight.sh from its own directory, however it is started.
func TestShellExampleIsStartedFromAnyDirectory(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, directory, path string }{
		"NoSlash":  {"The path of the script has no slash", "sh", "no-flex-volumes.sh"},
		"Relative": {"The path of the script is relative", ".", "sh/no-flex-volumes.sh"},
		"Absolute": {"The path of the script is absolute", "testdata", absolute(t, "sh/no-flex-volumes.sh")},
	}
	for shellName, shell := range shells(t) {
		for name, tc := range cases {
			t.Run(shellName+"/"+name, func(t *testing.T) {
				t.Parallel()
				with := shell.fakeOC(t, "true")
				command := with.command(t.TempDir(), append(with.args[1:], tc.path))
				command.Dir = tc.directory
				output, err := command.CombinedOutput()
				if want := "NoFlexVolumes: Pass: no volume uses flexVolume\n"; err != nil || string(output) != want {
					t.Errorf("%s: error %v, output %q, want %q", tc.reason, err, output, want)
				}
			})
		}
	}
}
