package preflight_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// missingLog returns the path of a termination log that does not exist, as outside
// of a Job.
func missingLog(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "termination-log")
}

// existingLog returns the path of a termination log as a kubelet creates it. Its
// content is longer than any frame.
func existingLog(t *testing.T) string {
	t.Helper()
	path := missingLog(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("old ", 4000)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// parseJSON parses the output of -o json.
func parseJSON(t *testing.T, stdout string) preflight.Result {
	t.Helper()
	var w wire
	if err := json.Unmarshal([]byte(stdout), &w); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return w.result()
}

// sampleChecks returns a check for every outcome.
func sampleChecks() []preflight.Check {
	return []preflight.Check{
		{Name: "Quorum", Description: "etcd has three healthy members", URL: "https://example.com/quorum", Run: pass},
		{Name: "Space", Description: "etcd has room", Advisory: true, Run: func(_ context.Context, t *preflight.T) error {
			t.Failf("the database is 6 GiB")
			t.Remedyf("Defragment it.")
			return nil
		}},
		{Name: "Proxy", Run: func(_ context.Context, t *preflight.T) error { t.Skipf("no proxy"); return nil }},
		{Name: "Storage", URL: "https://example.com/flex", Timeout: time.Minute, After: []string{"Quorum"}, Rules: []preflight.Rule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"list"}},
		}, Run: func(_ context.Context, t *preflight.T) error {
			t.Logf("listing volumes")
			t.Failf("volume db-0 uses the driver %q, which the target drops", "flex")
			t.Remedyf("Move it to CSI:")
			t.Remedyf("oc edit pv db-0")
			return nil
		}},
		{Name: "Certificates", Run: func(context.Context, *preflight.T) error { return os.ErrPermission }},
	}
}

func TestOutput(t *testing.T) {
	const exitCodes = "Exit codes: 0 no check failed or was inconclusive, 2 invalid usage, 3 a check\nfailed, 4 a check was inconclusive."
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"Text": {
			reason: "The text output has the cause and, below it, the remediation",
			code:   preflight.ExitFail,
			stdout: `✓ Quorum: Pass: etcd has three healthy members
‼ Space: Warn: the database is 6 GiB
    Defragment it.
– Proxy: Skipped: no proxy
✗ Storage: Fail: volume db-0 uses the driver "flex", which the target drops
    Move it to CSI:
    oc edit pv db-0
    See https://example.com/flex
? Certificates: Unknown: permission denied
    Fix the cause, then run the preflight again. The log of the check may contain details.
1 Fail, 1 Unknown, 1 Warn, 1 Skipped, 1 Pass
`,
			stderr: "Storage: listing volumes\n",
		},
		"Run": {
			reason: "--run selects checks and keeps the order of declaration",
			args:   []string{"--run", "Proxy,Quorum"},
			stdout: "✓ Quorum: Pass: etcd has three healthy members\n– Proxy: Skipped: no proxy\n1 Skipped, 1 Pass\n",
		},
		"Skip": {
			reason: "--skip excludes checks",
			args:   []string{"--skip", "Storage, Quorum,Proxy,Space"},
			code:   preflight.ExitUnknown,
			stdout: "? Certificates: Unknown: permission denied\n    Fix the cause, then run the preflight again. The log of the check may " +
				"contain details.\n1 Unknown\n",
		},
		"JSON": {
			reason: "-o json prints the document of the wire format",
			args:   []string{"-o", "json", "--run", "Proxy"},
			stdout: `{
  "state": "final",
  "findings": [
    {
      "name": "Proxy",
      "outcome": "Skipped",
      "reason": "NotApplicable",
      "message": "no proxy"
    }
  ]
}
`,
		},
		"List": {
			reason: "--list prints the checks without running them",
			args:   []string{"--list", "--skip", "Proxy"},
			stdout: "Quorum        etcd has three healthy members\nSpace         etcd has room\nStorage       \nCertificates  \n",
		},
		"ListJSON": {
			reason: "--list -o json prints the whole declaration for tools",
			args:   []string{"--list", "-o", "json", "--run", "Quorum,Space,Storage"},
			stdout: `[
  {
    "name": "Quorum",
    "description": "etcd has three healthy members",
    "url": "https://example.com/quorum"
  },
  {
    "name": "Space",
    "description": "etcd has room",
    "advisory": true
  },
  {
    "name": "Storage",
    "url": "https://example.com/flex",
    "timeout": "1m0s",
    "after": [
      "Quorum"
    ],
    "rules": [
      {
        "apiGroups": [
          ""
        ],
        "resources": [
          "persistentvolumes"
        ],
        "verbs": [
          "list"
        ]
      }
    ]
  }
]
`,
		},
		"JUnit": {
			reason: "In JUnit, Fail and Unknown are failures, a warning passes, and a test case has the result as a whole",
			args:   []string{"-o", "junit", "--to", "4.21.3"},
			code:   preflight.ExitFail,
			stdout: `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="preflight" tests="6" failures="3" errors="0" skipped="1">
    <properties>
      <property name="to" value="4.21.3"></property>
    </properties>
    <testcase name="Quorum" classname="preflight"></testcase>
    <testcase name="Space" classname="preflight">
      <system-out>‼ Space: Warn: the database is 6 GiB&#xA;    Defragment it.&#xA;</system-out>
    </testcase>
    <testcase name="Proxy" classname="preflight">
      <skipped message="no proxy">– Proxy: Skipped: no proxy&#xA;</skipped>
    </testcase>
    <testcase name="Storage" classname="preflight">
      <failure message="volume db-0 uses the driver &#34;flex&#34;, which the target drops" type="CheckFailed">✗ Storage: Fail: volume db-0 uses the driver &#34;flex&#34;, which the target drops&#xA;    Move it to CSI:&#xA;    oc edit pv db-0&#xA;    See https://example.com/flex&#xA;</failure>
    </testcase>
    <testcase name="Certificates" classname="preflight">
      <failure message="permission denied" type="Unknown.CheckError">? Certificates: Unknown: permission denied&#xA;    Fix the cause, then run the preflight again. The log of the check may contain details.&#xA;</failure>
    </testcase>
    <testcase name="preflight.Verdict" classname="preflight">
      <failure message="Fail: 1 Fail, 1 Unknown, 1 Warn, 1 Skipped, 1 Pass" type="Fail">Fail: 1 Fail, 1 Unknown, 1 Warn, 1 Skipped, 1 Pass</failure>
    </testcase>
  </testsuite>
</testsuites>
`,
			stderr: "Storage: listing volumes\n",
		},
		"UnknownFlag": {
			reason: "The error names an unknown flag",
			args:   []string{"--fast"},
			code:   preflight.ExitUsage,
			stderr: "preflight: flag provided but not defined: -fast (--help shows the flags)\n",
		},
		"Argument": {
			reason: "Arguments are not allowed",
			args:   []string{"all"},
			code:   preflight.ExitUsage,
			stderr: "preflight: unexpected argument \"all\" (--help shows the flags)\n",
		},
		"Format": {
			reason: "The error lists the formats",
			args:   []string{"-o", "yaml"},
			code:   preflight.ExitUsage,
			stderr: "preflight: output \"yaml\": want text, json or junit\n",
		},
		"NoSuchCheck": {
			reason: "The name of an unknown check is an error",
			args:   []string{"--skip", "Quorun"},
			code:   preflight.ExitUsage,
			stderr: "preflight: unknown check \"Quorun\": want one of Quorum, Space, Proxy, Storage, Certificates\n",
		},
		"RejectedJSON": {
			reason: "The JSON output of a rejected program has the cause",
			args:   []string{"-o", "json", "--run", "Quorun"},
			code:   preflight.ExitUsage,
			stdout: `{
  "state": "final",
  "findings": [
    {
      "name": "Preflight",
      "outcome": "Unknown",
      "reason": "InvalidArguments",
      "message": "no check was run: unknown check \"Quorun\": want one of Quorum, Space, Proxy, Storage, Certificates",
      "remediation": "Fix the program or its Job manifest, then verify it: /bin/preflight --list"
    }
  ]
}
`,
			stderr: "preflight: unknown check \"Quorun\": want one of Quorum, Space, Proxy, Storage, Certificates\n",
		},
		"NothingSelected": {
			reason: "An empty selection is an error, not a pass",
			args:   []string{"--run", "Quorum", "--skip", "Quorum"},
			code:   preflight.ExitUsage,
			stderr: "preflight: --run and --skip select no check\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{Args: tc.args, Stdout: &stdout, Stderr: &stderr, TerminationLog: missingLog(t)}
			if code := p.Run(context.Background(), sampleChecks()...); code != tc.code {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, tc.code)
			}
			if stdout.String() != tc.stdout {
				t.Errorf("%s: standard output:\n%s\nwant:\n%s", tc.reason, stdout.String(), tc.stdout)
			}
			if stderr.String() != tc.stderr {
				t.Errorf("%s: standard error:\n%s\nwant:\n%s", tc.reason, stderr.String(), tc.stderr)
			}
			if _, err := os.Stat(p.TerminationLog); !os.IsNotExist(err) {
				t.Errorf("%s: the program created a termination log", tc.reason)
			}
		})
	}

	var stdout strings.Builder
	p := preflight.Program{Args: []string{"--help"}, Stdout: &stdout, Stderr: &stdout, TerminationLog: missingLog(t)}
	if code := p.Run(context.Background()); code != 0 || !strings.Contains(stdout.String(), exitCodes) {
		t.Errorf("--help: exit code %d, output %s", code, stdout.String())
	}
}

func TestRejectionIsReported(t *testing.T) {
	good := preflight.Check{Name: "Good", Run: pass}
	cases := map[string]struct {
		reason string
		checks []preflight.Check
		args   []string
		env    map[string]string
		want   string
	}{
		"NoName": {"A check has a name", []preflight.Check{{Run: pass}}, nil, nil, "InvalidCheck: check 1 has no name"},
		"LowerCase": {
			"A name must be valid as a risk name in ClusterVersion",
			[]preflight.Check{{Name: "good", Run: pass}},
			nil, nil,
			`InvalidCheck: check name "good" is not CamelCase of at most 63 letters and digits`,
		},
		"Dash": {
			"A dash is not CamelCase",
			[]preflight.Check{{Name: "Good-one", Run: pass}},
			nil, nil,
			`InvalidCheck: check name "Good-one" is not CamelCase of at most 63 letters and digits`,
		},
		"Twice": {"Names are unique", []preflight.Check{good, good}, nil, nil, `InvalidCheck: duplicate check name "Good"`},
		"NoRun": {
			"A check without a function is invalid",
			[]preflight.Check{{Name: "Good"}},
			nil, nil,
			`InvalidCheck: check "Good" has no Run function`,
		},
		"Timeout": {
			"A negative timeout is invalid",
			[]preflight.Check{{Name: "Good", Run: pass, Timeout: -time.Second}},
			nil, nil,
			`InvalidCheck: check "Good" has a negative timeout: -1s`,
		},
		"All": {
			"The error lists all violations",
			[]preflight.Check{{}, {Name: "b", Run: pass}},
			nil, nil,
			`InvalidCheck: check 1 has no name; check "" has no Run function; check name "b" is not CamelCase of at most 63 letters and digits`,
		},
		"After": {
			"A prerequisite is a declared check",
			[]preflight.Check{{Name: "Good", Run: pass, After: []string{"Bad"}}},
			nil, nil,
			`InvalidCheck: check "Good" has the prerequisite "Bad", which is not declared before it`,
		},
		"AfterLater": {
			"A prerequisite is declared earlier, so that there is no cycle",
			[]preflight.Check{{Name: "A", Run: pass, After: []string{"B"}}, {Name: "B", Run: pass, After: []string{"A"}}},
			nil, nil,
			`InvalidCheck: check "A" has the prerequisite "B", which is not declared before it`,
		},
		"AfterItself": {
			"A check is not its own prerequisite",
			[]preflight.Check{{Name: "A", Run: pass, After: []string{"A"}}},
			nil, nil,
			`InvalidCheck: check "A" has the prerequisite "A", which is not declared before it`,
		},
		"Rule": {
			"A rule that the runner rejects is invalid",
			[]preflight.Check{checkWithRules("A", preflight.Rule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})},
			nil, nil, `InvalidCheck: rule 1 of check "A": verb "delete": want get, list or watch`,
		},
		"Path": {
			"A malformed path is an error",
			[]preflight.Check{good},
			nil,
			map[string]string{"PREFLIGHT_UPDATE_PATH": "soon,"},
			`InvalidArguments: PREFLIGHT_UPDATE_PATH: version "": want versions like 4.21.3, separated by commas`,
		},
		"Facts": {
			"Malformed facts are an error, because a missing fact might change the outcome",
			[]preflight.Check{good},
			nil,
			map[string]string{"PREFLIGHT_FACTS": "[]"},
			`InvalidArguments: PREFLIGHT_FACTS: want a JSON object of strings`,
		},
		"ManifestOf": {
			"A manifest covers all checks",
			[]preflight.Check{good},
			[]string{"--print-manifest", "--run", "Good"},
			nil,
			`InvalidArguments: --print-manifest prints YAML for all checks: it allows only --name, --namespace and --image`,
		},
		"ManifestAs": {
			"A manifest is YAML",
			[]preflight.Check{good},
			[]string{"--print-manifest", "-o", "json"},
			nil,
			`InvalidArguments: --print-manifest prints YAML for all checks: it allows only --name, --namespace and --image`,
		},
		"ManifestName": {
			"A manifest needs a name",
			[]preflight.Check{good},
			[]string{"--print-manifest", "--namespace=a", "--image=b"},
			nil,
			`InvalidArguments: manifest: name "": want at most 40 lower-case letters, digits and dashes`,
		},
		"ListJUnit": {
			"A list is not a result",
			[]preflight.Check{good},
			[]string{"--list", "-o", "junit"},
			nil,
			`InvalidArguments: --list supports only the outputs text and json`,
		},
		"NoChecks": {
			"A program without checks does not pass", nil, nil, nil,
			"InvalidCheck: no checks: call preflight.Main with at least one",
		},
		"Flag": {
			"The result reports an unknown flag in the Job manifest",
			[]preflight.Check{good},
			[]string{"--fast"},
			nil,
			"InvalidArguments: flag provided but not defined: -fast (--help shows the flags)",
		},
		"NoSuchCheck": {
			"The result reports an unknown check in the Job manifest",
			[]preflight.Check{good},
			[]string{"--run=Bad"},
			nil,
			`InvalidArguments: unknown check "Bad": want one of Good`,
		},
		"Deadline": {
			"A malformed deadline is an error, because the process might be killed before it reports",
			[]preflight.Check{good},
			nil,
			map[string]string{"PREFLIGHT_DEADLINE": "soon"},
			`InvalidArguments: PREFLIGHT_DEADLINE "soon": want a time like 2026-01-31T10:00:00Z`,
		},
		"Budget": {
			"A budget below the minimum is an error, because the result might be cut off",
			[]preflight.Check{good},
			nil,
			map[string]string{"PREFLIGHT_RESULT_BYTES": "511"},
			`InvalidArguments: PREFLIGHT_RESULT_BYTES "511": want a number of at least 512`,
		},
		"BudgetNumber": {
			"A budget that is not a number is an error",
			[]preflight.Check{good},
			nil,
			map[string]string{"PREFLIGHT_RESULT_BYTES": "4k"},
			`InvalidArguments: PREFLIGHT_RESULT_BYTES "4k": want a number of at least 512`,
		},
		"RunID": {
			"A run ID that is not valid in a frame is an error",
			[]preflight.Check{good},
			nil,
			map[string]string{"PREFLIGHT_RUN_ID": "a b"},
			`InvalidArguments: PREFLIGHT_RUN_ID: run ID "a b": want at most 64 letters, digits, dots, dashes and underscores`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{Args: tc.args, Env: tc.env, Stdout: &stdout, Stderr: &stderr, TerminationLog: existingLog(t)}
			code := p.Run(context.Background(), tc.checks...)
			if code != preflight.ExitUsage {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, preflight.ExitUsage)
			}
			reason, message, _ := strings.Cut(tc.want, ": ")
			if want := "preflight: " + message + "\n"; stderr.String() != want {
				t.Errorf("%s: standard error %q, want %q", tc.reason, stderr.String(), want)
			}
			result, err := preflight.ParseFrame(readFile(t, p.TerminationLog))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := "Unknown " + reason + " no check was run: " + message
			if got := outcomeLine(result.Findings[0]); got != want || !result.Agrees(code) {
				t.Errorf("%s: got %q, want %q, agreeing with the exit code", tc.reason, got, want)
			}
		})
	}
}

func TestTerminationLogHasTheResultSoFar(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{
		Env: map[string]string{"PREFLIGHT_RUN_ID": "5f0c"}, Stdout: &stdout, Stderr: &stderr,
		TerminationLog: existingLog(t),
	}
	var seen []string
	observe := func(context.Context, *preflight.T) error {
		result, err := preflight.ParseFrame(readFile(t, p.TerminationLog))
		if err != nil {
			return err
		}
		line := result.RunID + " " + result.State
		for _, f := range result.Findings {
			line += ", " + outcomeLine(f)
		}
		seen = append(seen, line)
		return nil
	}
	code := p.Run(context.Background(), preflight.Check{Name: "A", Run: observe}, preflight.Check{Name: "B", Run: observe})
	if err := observe(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"5f0c running, Unknown NotFinished A was running when the process ended, Unknown NotFinished B had not started when the process ended",
		"5f0c running, Pass Passed , Unknown NotFinished B was running when the process ended",
		"5f0c final, Pass Passed , Pass Passed ",
	}
	if d := diff(t, seen, want); d != "" || code != 0 {
		t.Errorf("exit code %d, standard error %q, %s", code, stderr.String(), d)
	}
	if strings.Contains(stdout.String(), "preflight/1") || len(readFile(t, p.TerminationLog)) > 4096 {
		t.Errorf("standard output %q; want the frame only in the termination log, because it fits", stdout.String())
	}
}

// longCheck returns a check whose message has length bytes that do not compress.
func longCheck(length int) preflight.Check {
	return preflight.Check{Name: "Long", Run: func(_ context.Context, t *preflight.T) error {
		t.Failf("%s", incompressible(length)(length))
		t.Evidence("more", incompressible(100)(2))
		return nil
	}}
}

func TestLogHasTheFullResult(t *testing.T) {
	cases := map[string]struct {
		reason string
		budget string
		length int
		short  int
	}{
		"OneLine": {"A frame of a few KiB is written on one line", "", 5000, 4096},
		"Parts":   {"A longer frame is split into parts, because a log may interrupt long lines", "", 40_000, 4096},
		"Budget":  {"The budget of the runner applies", "600", 3000, 600},
		"Huge":    {"A budget above the limit of the kubelet is reduced to this limit", "1000000", 5000, 4096},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{
				Env:    map[string]string{"PREFLIGHT_RUN_ID": "5f0c", "PREFLIGHT_RESULT_BYTES": tc.budget},
				Stdout: &stdout, Stderr: &stderr, TerminationLog: existingLog(t),
			}
			code := p.Run(context.Background(), longCheck(tc.length))

			message := readFile(t, p.TerminationLog)
			short, err := preflight.ParseFrame(message)
			if err != nil || !short.Truncated || !short.Agrees(code) || len(message) > tc.short {
				t.Errorf("%s: termination message of %d bytes, truncated %t, error %v", tc.reason, len(message), short.Truncated, err)
			}
			whole, err := preflight.ParseFrame([]byte(stdout.String()))
			if err != nil {
				t.Fatalf("%s: log: %v", tc.reason, err)
			}
			want := preflight.Result{State: preflight.StateFinal, RunID: "5f0c", Findings: []preflight.Finding{{
				Name: "Long", Outcome: preflight.Fail, Reason: "CheckFailed", Message: incompressible(tc.length)(tc.length),
				Evidence: map[string]string{"more": incompressible(100)(2)},
			}}}
			if d := diff(t, whole, want); d != "" || code != preflight.ExitFail {
				t.Errorf("%s: exit code %d, the log does not contain the full result", tc.reason, code)
			}
			for _, line := range strings.Split(stdout.String(), "\n") {
				if strings.HasPrefix(line, "preflight/") && len(line) > 16<<10 {
					t.Errorf("%s: line of %d bytes", tc.reason, len(line))
				}
			}
		})
	}
}

func TestResultAboveAllLimitsKeepsItsOutcome(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{
		Env: map[string]string{"PREFLIGHT_RUN_ID": "5f0c"}, Stdout: &stdout, Stderr: &stderr,
		TerminationLog: existingLog(t),
	}
	code := p.Run(context.Background(), preflight.Check{Name: "Long", Run: func(_ context.Context, t *preflight.T) error {
		t.Failf("%s", strings.Repeat("too long ", 1<<17)) // more than 1 MiB
		return nil
	}})
	for name, data := range map[string][]byte{"termination message": readFile(t, p.TerminationLog), "log": []byte(stdout.String())} {
		result, err := preflight.ParseFrame(data)
		if err != nil || !result.Truncated || !result.Agrees(code) || result.Findings[0].Outcome != preflight.Fail {
			t.Errorf("%s: truncated %t, exit code %d, error %v", name, result.Truncated, code, err)
		}
	}
}

func TestLogHasTheResultWithoutTerminationLog(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{
		Args:   []string{"--run", "Quorum"},
		Env:    map[string]string{"PREFLIGHT_RUN_ID": "5f0c"},
		Stdout: &stdout, Stderr: &stderr, TerminationLog: missingLog(t),
	}
	code := p.Run(context.Background(), sampleChecks()...)
	result, err := preflight.ParseFrame([]byte(stdout.String()))
	if err != nil || !result.Agrees(code) || result.RunID != "5f0c" {
		t.Errorf("got %+v, error %v", result, err)
	}
	if !strings.Contains(stderr.String(), "preflight: cannot write the termination message: ") {
		t.Errorf("standard error %q does not contain the cause", stderr.String())
	}
}

func TestNoFrameOutsideOfAJob(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{Stdout: &stdout, Stderr: &stderr, TerminationLog: missingLog(t)}
	if code := p.Run(context.Background(), longCheck(9000)); code != preflight.ExitFail {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(stdout.String(), "preflight/1") || stderr.Len() > 0 {
		t.Errorf("output %.200q, standard error %q: want the text output only", stdout.String(), stderr.String())
	}
}

func TestNoCheckStartsAfterTheDeadline(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{
		Args:   []string{"-o", "json"},
		Env:    map[string]string{"PREFLIGHT_DEADLINE": "2020-01-31T10:00:00Z"},
		Stdout: &stdout, Stderr: &stderr, TerminationLog: existingLog(t),
	}
	code := p.Run(context.Background(), preflight.Check{Name: "A", Run: func(context.Context, *preflight.T) error {
		t.Error("the check was run")
		return nil
	}})
	want := "Unknown Timeout A was not started before the deadline of the run"
	if got := outcomeLine(parseJSON(t, stdout.String()).Findings[0]); got != want || code != preflight.ExitUnknown {
		t.Errorf("exit code %d, got %q, want %q", code, got, want)
	}
}
