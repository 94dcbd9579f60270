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

// absent is the termination log of a laptop: there is none.
func absent(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "termination-log")
}

// present is the termination log that a kubelet made, with something in it
// that is longer than any frame.
func present(t *testing.T) string {
	t.Helper()
	path := absent(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("old ", 4000)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// printed reads what -o json printed.
func printed(t *testing.T, stdout string) preflight.Result {
	t.Helper()
	var w wire
	if err := json.Unmarshal([]byte(stdout), &w); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return w.result()
}

// story has a check of every outcome.
func story() []preflight.Check {
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
	const exitCodes = "Exit codes: 0 nothing in the way, 2 bad usage, 3 a check failed, 4 could not tell."
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"Text": {
			reason: "The findings are for people: the cause, and what to do under it",
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
    Remove the cause and run the preflight again; the log of the check may say more.
1 Fail, 1 Unknown, 1 Warn, 1 Skipped, 1 Pass
`,
			stderr: "Storage: listing volumes\n",
		},
		"Run": {
			reason: "--run chooses, and keeps the order of declaration",
			args:   []string{"--run", "Proxy,Quorum"},
			stdout: "✓ Quorum: Pass: etcd has three healthy members\n– Proxy: Skipped: no proxy\n1 Skipped, 1 Pass\n",
		},
		"Skip": {
			reason: "--skip leaves out",
			args:   []string{"--skip", "Storage, Quorum,Proxy,Space"},
			code:   preflight.ExitUnknown,
			stdout: "? Certificates: Unknown: permission denied\n    Remove the cause and run the preflight again; the log of the check may say more.\n1 Unknown\n",
		},
		"JSON": {
			reason: "-o json is the document of the wire",
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
			reason: "--list runs nothing",
			args:   []string{"--list", "--skip", "Proxy"},
			stdout: "Quorum        etcd has three healthy members\nSpace         etcd has room\nStorage       \nCertificates  \n",
		},
		"ListJSON": {
			reason: "--list -o json is for tools",
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
			reason: "-o junit is for CI: a failure is a Fail, an error is not knowing, and a warning passes",
			args:   []string{"-o", "junit", "--to", "4.21.3"},
			code:   preflight.ExitFail,
			stdout: `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="preflight" tests="5" failures="1" errors="1" skipped="1">
    <properties>
      <property name="to" value="4.21.3"></property>
    </properties>
    <testcase name="Quorum" classname="preflight"></testcase>
    <testcase name="Space" classname="preflight">
      <system-out>‼ Space: Warn: the database is 6 GiB&#xA;    Defragment it.&#xA;</system-out>
    </testcase>
    <testcase name="Proxy" classname="preflight">
      <skipped message="no proxy"></skipped>
    </testcase>
    <testcase name="Storage" classname="preflight">
      <failure message="volume db-0 uses the driver &#34;flex&#34;, which the target drops" type="CheckFailed">✗ Storage: Fail: volume db-0 uses the driver &#34;flex&#34;, which the target drops&#xA;    Move it to CSI:&#xA;    oc edit pv db-0&#xA;    See https://example.com/flex&#xA;</failure>
    </testcase>
    <testcase name="Certificates" classname="preflight">
      <error message="permission denied" type="CheckError">? Certificates: Unknown: permission denied&#xA;    Remove the cause and run the preflight again; the log of the check may say more.&#xA;</error>
    </testcase>
  </testsuite>
</testsuites>
`,
			stderr: "Storage: listing volumes\n",
		},
		"UnknownFlag": {
			reason: "A flag that does not exist is named",
			args:   []string{"--fast"},
			code:   preflight.ExitUsage,
			stderr: "preflight: flag provided but not defined: -fast (--help shows the flags)\n",
		},
		"Argument": {
			reason: "There are no arguments",
			args:   []string{"all"},
			code:   preflight.ExitUsage,
			stderr: "preflight: unexpected argument \"all\" (--help shows the flags)\n",
		},
		"Format": {
			reason: "The formats are named",
			args:   []string{"-o", "yaml"},
			code:   preflight.ExitUsage,
			stderr: "preflight: output \"yaml\": want text, json or junit\n",
		},
		"NoSuchCheck": {
			reason: "A misspelt check must not be left out in silence",
			args:   []string{"--skip", "Quorun"},
			code:   preflight.ExitUsage,
			stderr: "preflight: no check \"Quorun\": there are Quorum, Space, Proxy, Storage, Certificates\n",
		},
		"NothingLeft": {
			reason: "Nothing run must not look like a pass",
			args:   []string{"--run", "Quorum", "--skip", "Quorum"},
			code:   preflight.ExitUsage,
			stderr: "preflight: --run and --skip leave no check\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{Args: tc.args, Stdout: &stdout, Stderr: &stderr, TerminationLog: absent(t)}
			if code := p.Run(context.Background(), story()...); code != tc.code {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, tc.code)
			}
			if stdout.String() != tc.stdout {
				t.Errorf("%s: standard output:\n%s\nwant:\n%s", tc.reason, stdout.String(), tc.stdout)
			}
			if stderr.String() != tc.stderr {
				t.Errorf("%s: standard error:\n%s\nwant:\n%s", tc.reason, stderr.String(), tc.stderr)
			}
			if _, err := os.Stat(p.TerminationLog); !os.IsNotExist(err) {
				t.Errorf("%s: the program made a termination log where there was none", tc.reason)
			}
		})
	}

	var stdout strings.Builder
	p := preflight.Program{Args: []string{"--help"}, Stdout: &stdout, Stderr: &stdout, TerminationLog: absent(t)}
	if code := p.Run(context.Background()); code != 0 || !strings.Contains(stdout.String(), exitCodes) {
		t.Errorf("--help: exit code %d, output %s", code, stdout.String())
	}
}

func TestRefusalIsHeard(t *testing.T) {
	good := preflight.Check{Name: "Good", Run: pass}
	cases := map[string]struct {
		reason string
		checks []preflight.Check
		args   []string
		env    map[string]string
		want   string
	}{
		"NoName":       {"A check is known by its name", []preflight.Check{{Run: pass}}, nil, nil, "InvalidCheck: check 1 has no name"},
		"LowerCase":    {"A name must be one that ClusterVersion takes", []preflight.Check{{Name: "good", Run: pass}}, nil, nil, `InvalidCheck: check name "good" is not CamelCase of at most 63 letters and digits`},
		"Dash":         {"The dash is not CamelCase", []preflight.Check{{Name: "Good-one", Run: pass}}, nil, nil, `InvalidCheck: check name "Good-one" is not CamelCase of at most 63 letters and digits`},
		"Twice":        {"A name stands for one check", []preflight.Check{good, good}, nil, nil, `InvalidCheck: check name "Good" is taken by an earlier check`},
		"NoRun":        {"A check without a function cannot pass", []preflight.Check{{Name: "Good"}}, nil, nil, `InvalidCheck: check "Good" has no Run function`},
		"Timeout":      {"A negative timeout is a slip", []preflight.Check{{Name: "Good", Run: pass, Timeout: -time.Second}}, nil, nil, `InvalidCheck: check "Good" has the negative timeout -1s`},
		"All":          {"All that is wrong is told at once", []preflight.Check{{}, {Name: "b", Run: pass}}, nil, nil, `InvalidCheck: check 1 has no name; check "" has no Run function; check name "b" is not CamelCase of at most 63 letters and digits`},
		"After":        {"A check comes after one that there is", []preflight.Check{{Name: "Good", Run: pass, After: []string{"Bad"}}}, nil, nil, `InvalidCheck: check "Good" comes after "Bad", which is not declared before it`},
		"AfterLater":   {"The order of declaration is that of asking, so there is no circle", []preflight.Check{{Name: "A", Run: pass, After: []string{"B"}}, {Name: "B", Run: pass, After: []string{"A"}}}, nil, nil, `InvalidCheck: check "A" comes after "B", which is not declared before it`},
		"AfterItself":  {"Nothing comes after itself", []preflight.Check{{Name: "A", Run: pass, After: []string{"A"}}}, nil, nil, `InvalidCheck: check "A" comes after "A", which is not declared before it`},
		"Rule":         {"A rule that would be refused in the release is refused at once", []preflight.Check{reader("A", preflight.Rule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})}, nil, nil, `InvalidCheck: rule 1 of check "A": verb "delete": want get, list or watch`},
		"Path":         {"A path that is none might be another", []preflight.Check{good}, nil, map[string]string{"PREFLIGHT_UPDATE_PATH": "soon,"}, `InvalidArguments: PREFLIGHT_UPDATE_PATH: version "": want versions like 4.21.3, with commas between them`},
		"Facts":        {"A fact that is missed might change the answer", []preflight.Check{good}, nil, map[string]string{"PREFLIGHT_FACTS": "[]"}, `InvalidArguments: PREFLIGHT_FACTS: want a JSON object of strings`},
		"ManifestOf":   {"A manifest is of all checks", []preflight.Check{good}, []string{"--print-manifest", "--run", "Good"}, nil, `InvalidArguments: --print-manifest is for all checks, as YAML: it goes with --name, --namespace and --image only`},
		"ManifestAs":   {"A manifest is YAML", []preflight.Check{good}, []string{"--print-manifest", "-o", "json"}, nil, `InvalidArguments: --print-manifest is for all checks, as YAML: it goes with --name, --namespace and --image only`},
		"ManifestName": {"A manifest needs a name", []preflight.Check{good}, []string{"--print-manifest", "--namespace=a", "--image=b"}, nil, `InvalidArguments: manifest: name "": want at most 40 lower-case letters, digits and dashes`},
		"ListJUnit":    {"A list is no result", []preflight.Check{good}, []string{"--list", "-o", "junit"}, nil, `InvalidArguments: --list prints text or json`},
		"NoChecks":     {"Nothing to run is not a pass", nil, nil, nil, "InvalidCheck: no checks: call preflight.Main with at least one"},
		"Flag":         {"The runner hears of a bad flag in the manifest", []preflight.Check{good}, []string{"--fast"}, nil, "InvalidArguments: flag provided but not defined: -fast (--help shows the flags)"},
		"NoSuchCheck":  {"The runner hears of a misspelt check in the manifest", []preflight.Check{good}, []string{"--run=Bad"}, nil, `InvalidArguments: no check "Bad": there are Good`},
		"Deadline":     {"Without the deadline the program might not be heard", []preflight.Check{good}, nil, map[string]string{"PREFLIGHT_DEADLINE": "soon"}, `InvalidArguments: PREFLIGHT_DEADLINE "soon": want a time like 2026-01-31T10:00:00Z`},
		"Budget":       {"Without the budget the result might be cut off", []preflight.Check{good}, nil, map[string]string{"PREFLIGHT_RESULT_BYTES": "511"}, `InvalidArguments: PREFLIGHT_RESULT_BYTES "511": want a number of at least 512`},
		"BudgetNumber": {"The budget is a number", []preflight.Check{good}, nil, map[string]string{"PREFLIGHT_RESULT_BYTES": "4k"}, `InvalidArguments: PREFLIGHT_RESULT_BYTES "4k": want a number of at least 512`},
		"RunID":        {"A run ID that no frame can hold is no run ID", []preflight.Check{good}, nil, map[string]string{"PREFLIGHT_RUN_ID": "a b"}, `InvalidArguments: PREFLIGHT_RUN_ID: run ID "a b": want at most 64 letters, digits, dots, dashes and underscores`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{Args: tc.args, Env: tc.env, Stdout: &stdout, Stderr: &stderr, TerminationLog: present(t)}
			code := p.Run(context.Background(), tc.checks...)
			if code != preflight.ExitUsage {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, preflight.ExitUsage)
			}
			reason, message, _ := strings.Cut(tc.want, ": ")
			if want := "preflight: " + message + "\n"; stderr.String() != want {
				t.Errorf("%s: standard error %q, want %q", tc.reason, stderr.String(), want)
			}
			result, err := preflight.ParseFrame(read(t, p.TerminationLog))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := "Unknown " + reason + " no check was run: " + message
			if got := say(result.Findings[0]); got != want || !result.Agrees(code) {
				t.Errorf("%s: got %q, want %q, agreeing with the exit code", tc.reason, got, want)
			}
		})
	}
}

func TestTerminationLogAlwaysHoldsWhatIsKnown(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{Env: map[string]string{"PREFLIGHT_RUN_ID": "5f0c"}, Stdout: &stdout, Stderr: &stderr, TerminationLog: present(t)}
	var seen []string
	look := func(context.Context, *preflight.T) error {
		result, err := preflight.ParseFrame(read(t, p.TerminationLog))
		if err != nil {
			return err
		}
		line := result.RunID + " " + result.State
		for _, f := range result.Findings {
			line += ", " + say(f)
		}
		seen = append(seen, line)
		return nil
	}
	code := p.Run(context.Background(), preflight.Check{Name: "A", Run: look}, preflight.Check{Name: "B", Run: look})
	if err := look(context.Background(), nil); err != nil {
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
	if strings.Contains(stdout.String(), "preflight/1") || len(read(t, p.TerminationLog)) > 4096 {
		t.Errorf("standard output %q; the frame fits and is wanted in the termination log only", stdout.String())
	}
}

// long says more than any termination message can hold.
func long(length int) preflight.Check {
	return preflight.Check{Name: "Long", Run: func(_ context.Context, t *preflight.T) error {
		t.Failf("%s", noise(length)(length))
		t.Evidence("more", noise(100)(2))
		return nil
	}}
}

func TestLongResultIsWholeInTheLog(t *testing.T) {
	cases := map[string]struct {
		reason string
		budget string
		length int
		short  int
	}{
		"OneLine": {"A frame of a few KiB is one line", "", 5000, 4096},
		"Parts":   {"A longer one is cut, since a log interrupts long lines", "", 300_000, 4096},
		"Budget":  {"The runner sets the budget", "600", 3000, 600},
		"Huge":    {"A budget beyond what a kubelet keeps is not believed", "1000000", 5000, 4096},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			p := preflight.Program{
				Env:    map[string]string{"PREFLIGHT_RUN_ID": "5f0c", "PREFLIGHT_RESULT_BYTES": tc.budget},
				Stdout: &stdout, Stderr: &stderr, TerminationLog: present(t),
			}
			code := p.Run(context.Background(), long(tc.length))

			message := read(t, p.TerminationLog)
			short, err := preflight.ParseFrame(message)
			if err != nil || !short.Truncated || !short.Agrees(code) || len(message) > tc.short {
				t.Errorf("%s: termination message of %d bytes, truncated %t, error %v", tc.reason, len(message), short.Truncated, err)
			}
			whole, err := preflight.ParseFrame([]byte(stdout.String()))
			if err != nil {
				t.Fatalf("%s: log: %v", tc.reason, err)
			}
			want := preflight.Result{State: preflight.StateFinal, RunID: "5f0c", Findings: []preflight.Finding{{
				Name: "Long", Outcome: preflight.Fail, Reason: "CheckFailed", Message: noise(tc.length)(tc.length),
				Evidence: map[string]string{"more": noise(100)(2)},
			}}}
			if d := diff(t, whole, want); d != "" || code != preflight.ExitFail {
				t.Errorf("%s: exit code %d, the log does not hold all that was said", tc.reason, code)
			}
			for _, line := range strings.Split(stdout.String(), "\n") {
				if strings.HasPrefix(line, "preflight/") && len(line) > 16<<10 {
					t.Errorf("%s: line of %d bytes", tc.reason, len(line))
				}
			}
		})
	}
}

func TestResultBeyondAllLimitsKeepsItsOutcome(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{Env: map[string]string{"PREFLIGHT_RUN_ID": "5f0c"}, Stdout: &stdout, Stderr: &stderr, TerminationLog: present(t)}
	code := p.Run(context.Background(), long(3<<20))
	for name, data := range map[string][]byte{"termination message": read(t, p.TerminationLog), "log": []byte(stdout.String())} {
		result, err := preflight.ParseFrame(data)
		if err != nil || !result.Truncated || !result.Agrees(code) || result.Findings[0].Outcome != preflight.Fail {
			t.Errorf("%s: truncated %t, exit code %d, error %v", name, result.Truncated, code, err)
		}
	}
}

func TestWhereThereIsNoTerminationLogTheLogHasTheResult(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{
		Args:   []string{"--run", "Quorum"},
		Env:    map[string]string{"PREFLIGHT_RUN_ID": "5f0c"},
		Stdout: &stdout, Stderr: &stderr, TerminationLog: absent(t),
	}
	code := p.Run(context.Background(), story()...)
	result, err := preflight.ParseFrame([]byte(stdout.String()))
	if err != nil || !result.Agrees(code) || result.RunID != "5f0c" {
		t.Errorf("got %+v, error %v", result, err)
	}
	if !strings.Contains(stderr.String(), "preflight: cannot write the termination message: ") {
		t.Errorf("standard error %q does not say why", stderr.String())
	}
}

func TestOnALaptopThereIsNoFrame(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{Stdout: &stdout, Stderr: &stderr, TerminationLog: absent(t)}
	if code := p.Run(context.Background(), long(9000)); code != preflight.ExitFail {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(stdout.String(), "preflight/1") || stderr.Len() > 0 {
		t.Errorf("output %.200q, standard error %q: want only what is for people", stdout.String(), stderr.String())
	}
}

func TestDeadlineInThePastStartsNothing(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{
		Args:   []string{"-o", "json"},
		Env:    map[string]string{"PREFLIGHT_DEADLINE": "2020-01-31T10:00:00Z"},
		Stdout: &stdout, Stderr: &stderr, TerminationLog: present(t),
	}
	code := p.Run(context.Background(), preflight.Check{Name: "A", Run: func(context.Context, *preflight.T) error {
		t.Error("the check was run")
		return nil
	}})
	want := "Unknown Timeout A was not started before the deadline of the run"
	if got := say(printed(t, stdout.String()).Findings[0]); got != want || code != preflight.ExitUnknown {
		t.Errorf("exit code %d, got %q, want %q", code, got, want)
	}
}
