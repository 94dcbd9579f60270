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
func pythonCommand(t *testing.T, stdin []byte, args ...string) answer {
	t.Helper()
	with := python(t)
	command := with.command(t.TempDir(), append(append(with.args[1:], absolute(t, "python/preflight.py")), args...))
	var out, errs bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return answer{Code: command.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes()}
}

// call is one call of python/preflight.py as a command, answer what it writes and its exit
// code.
type (
	call struct {
		Args  []string `json:"args"`
		Stdin []byte   `json:"stdin"`
	}
	answer struct {
		Code   int    `json:"code"`
		Stdout []byte `json:"stdout"`
		Stderr []byte `json:"stderr"`
	}
)

// calls makes calls one after another in one process: the start of an interpreter takes
// longer than the calls.
type calls struct {
	requests  *json.Encoder
	responses *json.Decoder
}

// pythonCalls starts the process, which ends with the test.
func pythonCalls(t *testing.T) calls {
	t.Helper()
	const program = `import base64, io, json, sys
sys.path.insert(0, sys.argv[1])
import preflight
for line in sys.__stdin__:
    call = json.loads(line)
    sys.stdin = io.TextIOWrapper(io.BytesIO(base64.b64decode(call["stdin"] or "")))
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    sys.stdout, sys.stderr = out, err
    code = preflight.command(call["args"])
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    out.flush()
    err.flush()
    written = [base64.b64encode(f.buffer.getvalue()).decode() for f in (out, err)]
    print(json.dumps({"code": code, "stdout": written[0], "stderr": written[1]}), flush=True)
`
	with := python(t)
	command := with.command(t.TempDir(), append(with.args[1:], "-c", program, absolute(t, "python")))
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr // of the interpreter, not of a call
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	return calls{requests: json.NewEncoder(stdin), responses: json.NewDecoder(stdout)}
}

// make makes one call.
func (c calls) make(t *testing.T, stdin []byte, args ...string) (a answer) {
	t.Helper()
	if err := c.requests.Encode(call{Args: args, Stdin: stdin}); err != nil {
		t.Fatal(err)
	}
	if err := c.responses.Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// read returns the result that python/preflight.py reads in data.
func (c calls) read(t *testing.T, data []byte) preflight.Result {
	t.Helper()
	read := c.make(t, data, "decode")
	var got wire
	if err := json.Unmarshal(read.Stdout, &got); err != nil || read.Code != 0 {
		t.Fatalf("exit code %d, standard error %s: %v", read.Code, read.Stderr, err)
	}
	return got.result()
}

func TestPythonReadsAndWritesValidVectors(t *testing.T) {
	calls := pythonCalls(t)
	for _, path := range append(vectorFiles(t, "valid"), vectorFiles(t, "frozen")...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			document := readFile(t, strings.TrimSuffix(path, ".txt")+".json")
			var want wire
			if err := json.Unmarshal(document, &want); err != nil {
				t.Fatal(err)
			}
			if d := diff(t, calls.read(t, readFile(t, path)), want.result()); d != "" {
				t.Error(d)
			}
			written := calls.make(t, document, "encode", "100000")
			again, err := preflight.ParseFrame(written.Stdout)
			if err != nil || written.Code != 0 {
				t.Fatalf("exit code %d, %v: %s", written.Code, err, written.Stderr)
			}
			if d := diff(t, again, want.result()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPythonRejectsInvalidVectors(t *testing.T) {
	calls := pythonCalls(t)
	for _, path := range vectorFiles(t, "invalid") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			kind := strings.TrimSpace(string(readFile(t, strings.TrimSuffix(path, ".txt")+".error")))
			calls.make(t, readFile(t, path), "decode").expectError(t, 1, kind+": ")
		})
	}
}

// expectError fails the test unless the only output is an error that starts with text.
func (a answer) expectError(t *testing.T, code int, text string) {
	t.Helper()
	if a.Code != code || len(a.Stdout) > 0 || !strings.HasPrefix(string(a.Stderr), text) {
		t.Errorf("exit code %d, %q, %q, want exit code %d and the error %s", a.Code, a.Stdout, a.Stderr, code, text)
	}
}

// The calls in one process are those of the command.
func TestPythonCommand(t *testing.T) {
	t.Parallel()
	frame := pythonCommand(t, readFile(t, "testdata/wire/valid/all-outcomes.json"), "encode", "100000")
	result, err := preflight.ParseFrame(frame.Stdout)
	if err != nil || frame.Code != 0 || len(frame.Stderr) > 0 {
		t.Fatalf("exit code %d, %v: %s", frame.Code, err, frame.Stderr)
	}
	document := pythonCommand(t, frame.Stdout, "decode")
	var got wire
	if err := json.Unmarshal(document.Stdout, &got); err != nil || document.Code != 0 || len(document.Stderr) > 0 {
		t.Fatalf("exit code %d, %v: %s", document.Code, err, document.Stderr)
	}
	if d := diff(t, got.result(), result); d != "" {
		t.Error(d)
	}
	pythonCommand(t, readFile(t, "testdata/wire/invalid/checksum.txt"), "decode").expectError(t, 1, "Damaged: ")
	pythonCommand(t, nil, "describe").expectError(t, preflight.ExitUsage, "A /bin/preflight in Python")
}

func TestPythonFrameFitsBudget(t *testing.T) {
	calls := pythonCalls(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			want := randomResult(random)
			plain, err := want.Frame(2 << 20)
			if err != nil {
				t.Fatal(err)
			}
			document := bytes.SplitN(plain, []byte(" "), 5)[4]
			budget := 512 + random.IntN(6000)
			written := calls.make(t, document, "encode", fmt.Sprint(budget))
			got, err := preflight.ParseFrame(written.Stdout)
			if err != nil || len(written.Stdout) > budget {
				t.Fatalf("%d bytes, budget %d, error %v: %s", len(written.Stdout), budget, err, written.Stderr)
			}
			if d := diff(t, got, want); d != "" && !got.Truncated {
				t.Error(d)
			}
			if d := diff(t, calls.read(t, written.Stdout), got); d != "" {
				t.Error(d)
			}
			for code := range 6 {
				if got.Agrees(code) != want.Agrees(code) {
					t.Errorf("exit code %d agrees with either the result or its frame, not with both", code)
				}
			}
		})
	}
}

// pythonScript returns a program with three checks. body is the body of the second
// one.
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

func TestPythonEndings(t *testing.T) {
	t.Parallel()
	const fine, rest = "final\nFirst Pass Passed fine\nMiddle ", "\nLast Pass Passed"
	const wait = "t.log('here')\ntime.sleep(20)"
	cases := map[string]scriptCase{
		"Passes": {
			reason: "A check that reports nothing passes",
			script: script{text: pythonScript(t, "pass")}, want: fine + "Pass Passed" + rest,
		},
		"WorstCounts": {
			reason: "The most severe report is the outcome and comes first",
			script: script{text: pythonScript(t, "t.skip('s'); t.warn('w'); t.fail('f'); t.unknown('u'); t.reason('Because')")},
			code:   3, want: fine + "Fail Because f; u; w; s" + rest,
		},
		"Unknown": {
			reason: "A check may report that it is inconclusive",
			script: script{text: pythonScript(t, "t.unknown('two leaders')")},
			code:   4, want: fine + "Unknown Inconclusive two leaders" + rest,
		},
		"Exception": {
			reason: "An exception ends only the check in which it occurs",
			script: script{text: pythonScript(t, "open('/none')")},
			code:   4, want: fine + "Unknown CheckError FileNotFoundError: [Errno 2] No such file or directory: '/none'" + rest,
		},
		"Exits": {
			reason: "An exit during a check is not a pass, whatever the exit code",
			script: script{text: pythonScript(t, "sys.exit(0)")},
			code:   4, want: fine + "Unknown CheckError SystemExit: 0" + rest,
		},
		"ExceptionAfterAFail": {
			reason: "A fail that was reported remains a fail",
			script: script{text: pythonScript(t, "t.fail('seen'); {}['x']")},
			code:   3, want: fine + "Fail CheckFailed seen; KeyError: 'x'" + rest,
		},
		"Noise": {
			reason: "The standard output of a check is ignored",
			script: script{text: pythonScript(t, "print('preflight/1 json 2 00000000 {}')")},
			want:   fine + "Pass Passed" + rest,
		},
		"HardExit": {
			reason: "After os._exit the last result that was written remains, and unfinished checks are Unknown",
			script: script{text: pythonScript(t, "os._exit(0)")},
			want: "running\nFirst Pass Passed fine\nMiddle Unknown NotFinished Middle was running when the process ended\nLast Unknown " +
				"NotFinished Last had not started when the process ended",
		},
		"Terminated": {
			reason: "After SIGTERM finished checks keep their findings and the others are Unknown",
			script: script{text: pythonScript(t, wait), signal: syscall.SIGTERM},
			code:   4, want: fine + "Unknown Interrupted Middle was interrupted (last step: here)\nLast Unknown Interrupted Last was not " +
				"started before the process was interrupted",
		},
		"TerminatedAfterAFail": {
			reason: "A fail that was reported before SIGTERM remains a fail",
			script: script{text: pythonScript(t, "t.fail('seen')\n"+wait), signal: syscall.SIGTERM},
			code:   3, want: fine + "Fail CheckFailed seen; Middle was interrupted (last step: here)\nLast Unknown Interrupted Last was " +
				"not started before the process was interrupted",
		},
		"Killed": {
			reason: "After SIGKILL the last result that was written remains, and unfinished checks are Unknown",
			script: script{text: pythonScript(t, wait), signal: os.Kill},
			code:   -1, want: "running\nFirst Pass Passed fine\nMiddle Unknown NotFinished Middle was running when the process ended\nLast " +
				"Unknown NotFinished Last had not started when the process ended",
		},
		"Timeout": {
			reason: "A check that does not end is abandoned, and the next one runs",
			script: script{text: strings.Replace(pythonScript(t, wait), "import preflight", "import preflight\nTIMEOUT = 0.3", 1)},
			code:   4, want: fine + "Unknown Timeout Middle did not finish in time (last step: here)" + rest,
		},
		"Deadline": {
			reason: "The program writes its result before the deadline at which it would be killed",
			script: script{text: pythonScript(t, wait), timeout: 6 * time.Second},
			code:   4, want: fine + "Unknown Timeout Middle did not finish in time (last step: here)\nLast Unknown Timeout Last was not " +
				"started before the deadline of the run",
		},
		"BadDeadline": {
			reason: "A malformed deadline is an error, because the process might be killed before it reports",
			script: script{text: pythonScript(t, "pass"), env: []string{"PREFLIGHT_DEADLINE=soon"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_DEADLINE 'soon': want a time like " +
				"2026-01-31T10:00:00Z",
		},
		"BadBudget": {
			reason: "A budget below the minimum is an error, because the result might be cut off",
			script: script{text: pythonScript(t, "pass"), env: []string{"PREFLIGHT_RESULT_BYTES=511"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: PREFLIGHT_RESULT_BYTES '511': want a number of at least 512",
		},
		"BadRunID": {
			reason: "A run ID that is not valid in a frame is an error",
			script: script{text: pythonScript(t, "pass"), env: []string{"PREFLIGHT_RUN_ID=a b"}},
			code:   2, want: "final\nPreflight Unknown InvalidCheck no check was run: run ID 'a b': want at most 64 letters, digits, dots, " +
				"dashes and underscores",
		},
		"NoChecks": {
			reason: "A program without checks does not pass",
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

func TestPythonLogHasTheFullResult(t *testing.T) {
	const body = "t.fail('pod é☃ ' * 30000); t.evidence('k', 'v'); t.object('v1', 'Pod', 'a', 'b')"
	r := python(t).run(t, script{
		text: pythonScript(t, body+"; t.evidence('noise', os.urandom(9000).hex())"),
		env:  []string{"PREFLIGHT_RUN_ID=5f0c", "PREFLIGHT_RESULT_BYTES=700"},
	})
	short := r.result(t)
	if !short.Truncated || !short.Agrees(r.code) || len(r.terminationLog) > 700 {
		t.Errorf("exit code %d, %d bytes, truncated %t", r.code, len(r.terminationLog), short.Truncated)
	}
	full, err := preflight.ParseFrame([]byte(r.stdout))
	if err != nil || full.Truncated || !full.Agrees(r.code) || len(full.Findings[1].Message) != len("pod é☃ ")*30000 {
		t.Errorf("the log contains %+v, error %v", full.Findings, err)
	}
}

func TestPythonOutsideOfAJob(t *testing.T) {
	r := python(t).run(t, script{text: pythonScript(t, "t.fail('pod a')"), outsideJob: true})
	if want := "First: Pass: fine\nMiddle: Fail: pod a\nLast: Pass: \n"; r.code != 3 || r.stdout != want || r.stderr != "" {
		t.Errorf("got %+v, want %q and no frame", r, want)
	}
}

func TestPythonHelp(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-h", "--help"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			r := python(t).run(t, script{text: pythonScript(t, "t.fail('pod a')"), args: []string{flag}})
			if r.code != 0 || len(r.terminationLog) != 0 || r.stderr != "" {
				t.Errorf("got %+v, want no check to run", r)
			}
			for _, part := range []string{"usage: program [--help]\n", "\n  First\n  Middle\n  Last\n", "Exit codes: 0 ", "PREFLIGHT_DEADLINE"} {
				if !strings.Contains(r.stdout, part) {
					t.Errorf("no %q in the usage:\n%s", part, r.stdout)
				}
			}
		})
	}
}

// The items of each case are the PodDisruptionBudgets of a fake API server.
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
		"None": {"The check passes without budgets", 200, "", 0, pass},
		"Free": {
			"The check passes with a budget that allows an eviction, and with one without pods", 200,
			fmt.Sprintf(budget+","+budget, "free", 1, 3, "empty", 0, 0), 0, pass,
		},
		"Tight": {
			"The message names a budget that allows no eviction", 200, fmt.Sprintf(budget, "tight", 0, 3), 0,
			"final\nBudgetsAllowDrain Warn EvictionForbidden PodDisruptionBudget db/tight allows no eviction, so the nodes of its pods " +
				"cannot be drained",
		},
		"Denied": {
			"A failed request is inconclusive", 403, "", 4,
			"final\nBudgetsAllowDrain Unknown CheckError HTTPError: HTTP Error 403: Forbidden",
		},
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
			scriptCase{
				tc.reason,
				script{file: "python/budgets_allow_drain.py", env: []string{"KUBERNETES_API=" + server.URL}},
				tc.code,
				tc.want,
			}.check(t, with)
		})
	}
}
