package preflight_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// pythonCommand runs python/preflight.py as a command.
func pythonCommand(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	with := python(t)
	command := with.command(t.TempDir(), append(append(with.args[1:], absolute(t, "python/preflight.py")), args...))
	var out, problem bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(stdin), &out, &problem
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), problem.String(), command.ProcessState.ExitCode()
}

// readByPython is what python/preflight.py reads in data.
func readByPython(t *testing.T, data []byte) preflight.Result {
	t.Helper()
	stdout, stderr, code := pythonCommand(t, data, "decode")
	var got wire
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("exit code %d, standard error %s: %v", code, stderr, err)
	}
	return got.result()
}

func TestPythonReadsAndWritesTheValidVectors(t *testing.T) {
	t.Parallel()
	for _, path := range append(vectors(t, "valid"), vectors(t, "frozen")...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			document := read(t, strings.TrimSuffix(path, ".txt")+".json")
			var want wire
			if err := json.Unmarshal(document, &want); err != nil {
				t.Fatal(err)
			}
			if d := diff(t, readByPython(t, read(t, path)), want.result()); d != "" {
				t.Error(d)
			}
			line, stderr, _ := pythonCommand(t, document, "encode", "100000")
			again, err := preflight.ParseFrame([]byte(line))
			if err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			if d := diff(t, again, want.result()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPythonRefusesTheInvalidVectors(t *testing.T) {
	t.Parallel()
	for _, path := range vectors(t, "invalid") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			kind := strings.TrimSpace(string(read(t, strings.TrimSuffix(path, ".txt")+".error")))
			stdout, stderr, code := pythonCommand(t, read(t, path), "decode")
			if code != 1 || stdout != "" || !strings.HasPrefix(stderr, kind+": ") {
				t.Errorf("exit code %d, %q, %q, want the error %s", code, stdout, stderr, kind)
			}
		})
	}
}

func TestPythonKeepsToEveryBudget(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 9))
			want := randomResult(random)
			plain, err := want.Frame(2 << 20)
			if err != nil {
				t.Fatal(err)
			}
			document := bytes.SplitN(plain, []byte(" "), 5)[4]
			budget := 512 + random.IntN(6000)
			line, stderr, _ := pythonCommand(t, document, "encode", fmt.Sprint(budget))
			got, err := preflight.ParseFrame([]byte(line))
			if err != nil || len(line) > budget {
				t.Fatalf("%d bytes, budget %d, error %v: %s", len(line), budget, err, stderr)
			}
			if d := diff(t, got, want); d != "" && !got.Truncated {
				t.Error(d)
			}
			if d := diff(t, readByPython(t, []byte(line)), got); d != "" {
				t.Error(d)
			}
			for code := range 6 {
				if got.Agrees(code) != want.Agrees(code) {
					t.Errorf("exit code %d agrees with only one of the result and its frame", code)
				}
			}
		})
	}
}

// pythonScript is a program of three checks, with the body of the middle one.
func pythonScript(t *testing.T, body string) string {
	t.Helper()
	return fmt.Sprintf(`import os, sys, time
sys.path.insert(0, %q)
import preflight

def middle(t):
    %s

preflight.main(preflight.Check("First", lambda t: None, description="fine"),
               preflight.Check("Middle", middle, timeout=TIMEOUT if "TIMEOUT" in globals() else None),
               preflight.Check("Last", lambda t: None))
`, absolute(t, "python"), strings.ReplaceAll(body, "\n", "\n    "))
}

func TestEveryEndOfAPythonProgramIsHeard(t *testing.T) {
	t.Parallel()
	const fine, rest = "final\nFirst Pass Passed fine\nMiddle ", "\nLast Pass Passed"
	const wait = "t.log('here')\ntime.sleep(20)"
	cases := map[string]scriptCase{
		"Passes": {
			reason: "Saying nothing is a pass",
			script: script{text: pythonScript(t, "pass")}, want: fine + "Pass Passed" + rest,
		},
		"WorstCounts": {
			reason: "Of all that was said the worst counts, and comes first",
			script: script{text: pythonScript(t, "t.skip('s'); t.warn('w'); t.fail('f'); t.unknown('u'); t.reason('Because')")},
			code:   3, want: fine + "Fail Because f; u; w; s" + rest,
		},
		"Unknown": {
			reason: "A check that could not tell may say so",
			script: script{text: pythonScript(t, "t.unknown('two leaders')")},
			code:   4, want: fine + "Unknown Inconclusive two leaders" + rest,
		},
		"Exception": {
			reason: "An exception is the end of one check only",
			script: script{text: pythonScript(t, "open('/none')")},
			code:   4, want: fine + "Unknown CheckError FileNotFoundError: [Errno 2] No such file or directory: '/none'" + rest,
		},
		"Exits": {
			reason: "An exit is no pass, whatever its code",
			script: script{text: pythonScript(t, "sys.exit(0)")},
			code:   4, want: fine + "Unknown CheckError SystemExit: 0" + rest,
		},
		"ExceptionAfterAFail": {
			reason: "A fail that was told stands",
			script: script{text: pythonScript(t, "t.fail('seen'); {}['x']")},
			code:   3, want: fine + "Fail CheckFailed seen; KeyError: 'x'" + rest,
		},
		"Noise": {
			reason: "What a check prints is no result",
			script: script{text: pythonScript(t, "print('preflight/1 json 2 00000000 {}')")},
			want:   fine + "Pass Passed" + rest,
		},
		"HardExit": {
			reason: "An exit out of our reach leaves an honest account",
			script: script{text: pythonScript(t, "os._exit(0)")},
			want:   "running\nFirst Pass Passed fine\nMiddle Unknown NotFinished Middle was running when the process ended\nLast Unknown NotFinished Last had not started when the process ended",
		},
		"Terminated": {
			reason: "SIGTERM leaves what is known; the rest is interrupted",
			script: script{text: pythonScript(t, wait), signal: syscall.SIGTERM},
			code:   4, want: fine + "Unknown Interrupted Middle was interrupted (last step: here)\nLast Unknown Interrupted Last was not started before the process was told to end",
		},
		"TerminatedAfterAFail": {
			reason: "A fail that was told before SIGTERM stands",
			script: script{text: pythonScript(t, "t.fail('seen')\n"+wait), signal: syscall.SIGTERM},
			code:   3, want: fine + "Fail CheckFailed seen; Middle was interrupted (last step: here)\nLast Unknown Interrupted Last was not started before the process was told to end",
		},
		"Killed": {
			reason: "SIGKILL leaves an honest account of how far it was",
			script: script{text: pythonScript(t, wait), signal: os.Kill},
			code:   -1, want: "running\nFirst Pass Passed fine\nMiddle Unknown NotFinished Middle was running when the process ended\nLast Unknown NotFinished Last had not started when the process ended",
		},
		"Timeout": {
			reason: "A check that does not end is left behind, and the next one is asked",
			script: script{text: strings.Replace(pythonScript(t, wait), "import preflight", "import preflight\nTIMEOUT = 0.3", 1)},
			code:   4, want: fine + "Unknown Timeout Middle did not finish before its time was up (last step: here)" + rest,
		},
		"Deadline": {
			reason: "The program is heard before the deadline at which it would be killed",
			script: script{text: pythonScript(t, wait), timeout: 6 * time.Second},
			code:   4, want: fine + "Unknown Timeout Middle did not finish before its time was up (last step: here)\nLast Unknown Timeout Last was not started before the deadline of the run",
		},
		"BadDeadline": {
			reason: "Without the deadline the program might not be heard",
			script: script{text: pythonScript(t, "pass"), env: []string{"PREFLIGHT_DEADLINE=soon"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_DEADLINE 'soon': want a time like 2026-01-31T10:00:00Z",
		},
		"BadBudget": {
			reason: "Without the budget the result might be cut off",
			script: script{text: pythonScript(t, "pass"), env: []string{"PREFLIGHT_RESULT_BYTES=511"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RESULT_BYTES '511': want a number of at least 512",
		},
		"BadRunID": {
			reason: "A run ID that no frame can hold is no run ID",
			script: script{text: pythonScript(t, "pass"), env: []string{"PREFLIGHT_RUN_ID=a b"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: run ID 'a b': want at most 64 letters, digits, dots, dashes and underscores",
		},
		"NoChecks": {
			reason: "Nothing to run is not a pass",
			script: script{text: fmt.Sprintf("import sys\nsys.path.insert(0, %q)\nimport preflight\npreflight.main()\n", absolute(t, "python"))},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: no checks: call preflight.main with at least one",
		},
	}
	with := python(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.check(t, with)
		})
	}
}

func TestPythonLongResultIsWholeInTheLog(t *testing.T) {
	const body = "t.fail('pod é☃ ' * 30000); t.evidence('k', 'v'); t.object('v1', 'Pod', 'a', 'b')"
	r := python(t).run(t, script{text: pythonScript(t, body+"; t.evidence('noise', os.urandom(9000).hex())"), env: []string{"PREFLIGHT_RUN_ID=5f0c", "PREFLIGHT_RESULT_BYTES=700"}})
	short := r.result(t)
	if !short.Truncated || !short.Agrees(r.code) || len(r.terminationLog) > 700 {
		t.Errorf("exit code %d, %d bytes, truncated %t", r.code, len(r.terminationLog), short.Truncated)
	}
	whole, err := preflight.ParseFrame([]byte(r.stdout))
	if err != nil || whole.Truncated || !whole.Agrees(r.code) || len(whole.Findings[1].Message) != len("pod é☃ ")*30000 {
		t.Errorf("the log has %+v, error %v", whole.Findings, err)
	}
}

func TestPythonOnALaptop(t *testing.T) {
	r := python(t).run(t, script{text: pythonScript(t, "t.fail('pod a')"), laptop: true})
	if want := "First: Pass: fine\nMiddle: Fail: pod a\nLast: Pass: \n"; r.code != 3 || r.stdout != want || r.stderr != "" {
		t.Errorf("got %+v, want %q, and no frame", r, want)
	}
}

// The example, with an API server that has what the case has it have.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	const budget = `{"metadata":{"namespace":"db","name":"%s"},"status":{"disruptionsAllowed":%d,"expectedPods":%d}}`
	const pass = "final\nBudgetsAllowDrain Pass Passed Every PodDisruptionBudget allows an eviction"
	cases := map[string]struct {
		reason string
		status int
		items  string
		code   int
		want   string
	}{
		"None":   {"Without budgets nothing is in the way", 200, "", 0, pass},
		"Free":   {"A budget that allows an eviction is none in the way, nor one without pods", 200, fmt.Sprintf(budget+","+budget, "free", 1, 3, "empty", 0, 0), 0, pass},
		"Tight":  {"A budget that allows none is named", 200, fmt.Sprintf(budget, "tight", 0, 3), 0, "final\nBudgetsAllowDrain Warn EvictionForbidden budget tight of namespace db allows no eviction now, so a node with its pods is not drained"},
		"Denied": {"No answer is no pass", 403, "", 4, "final\nBudgetsAllowDrain Unknown CheckError HTTPError: HTTP Error 403: Forbidden"},
	}
	with := python(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				fmt.Fprintf(w, `{"items":[%s]}`, tc.items)
			}))
			defer server.Close()
			scriptCase{tc.reason, script{file: "python/budgets_allow_drain.py", env: []string{"KUBERNETES_API=" + server.URL}}, tc.code, tc.want}.check(t, with)
		})
	}
}
