package preflight_test

import (
	"context"
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// testCase is a test case with the elements that Prow reads. Prow ignores
// attributes of a failure, and error elements.
type testCase struct {
	Name    string    `xml:"name,attr"`
	Skipped *string   `xml:"skipped"`
	Failure *string   `xml:"failure"`
	Error   *struct{} `xml:"error"`
}

// parseJUnit parses the document as CI systems do. They drop a whole document that
// is not well-formed.
func parseJUnit(t *testing.T, document string) []testCase {
	t.Helper()
	var got struct {
		Suite struct {
			Tests    int        `xml:"tests,attr"`
			Failures int        `xml:"failures,attr"`
			Cases    []testCase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(document), &got); err != nil {
		t.Fatalf("%v in %q", err, document)
	}
	failures := 0
	for _, c := range got.Suite.Cases {
		if c.Error != nil {
			t.Errorf("%s has an error element, which Prow ignores", c.Name)
		}
		if c.Failure != nil {
			failures++
		}
	}
	if got.Suite.Failures != failures || got.Suite.Tests != len(got.Suite.Cases) {
		t.Errorf("the suite counts %d failures of %d tests, want %d of %d", got.Suite.Failures, got.Suite.Tests, failures, len(got.Suite.Cases))
	}
	if strings.Contains(document, "<![CDATA[") {
		t.Errorf("the document has a CDATA section, which encoding/xml does not sanitize: %s", document)
	}
	return got.Suite.Cases
}

func TestJUnitVerdict(t *testing.T) {
	finding := func(name string, outcome preflight.Outcome) preflight.Finding {
		return preflight.Finding{Name: name, Outcome: outcome, Reason: "Because", Message: "message of " + name}
	}
	cases := map[string]struct {
		reason   string
		findings []preflight.Finding
		// failures are the names of the failed test cases and parts of their texts.
		failures map[string]string
	}{
		"Pass": {
			reason:   "The verdict passes if no check failed or was inconclusive",
			findings: []preflight.Finding{finding("A", preflight.Pass), finding("B", preflight.Warn), finding("C", preflight.Skipped)},
			failures: map[string]string{},
		},
		"Fail": {
			reason:   "The verdict fails if a check failed",
			findings: []preflight.Finding{finding("A", preflight.Pass), finding("B", preflight.Fail)},
			failures: map[string]string{"B": "Fail: message of B", "preflight.Verdict": "Fail: 1 Fail, 1 Pass"},
		},
		"Unknown": {
			reason:   "An inconclusive check is a failure",
			findings: []preflight.Finding{finding("A", preflight.Unknown)},
			failures: map[string]string{"A": "Unknown: message of A", "preflight.Verdict": "Unknown: 1 Unknown"},
		},
		"Empty": {
			reason:   "A result without findings fails",
			failures: map[string]string{"preflight.Verdict": "Unknown: no check was run"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var document strings.Builder
			if err := preflight.PrintJUnit(&document, preflight.Update{}, preflight.Result{Findings: tc.findings}); err != nil {
				t.Fatal(err)
			}
			got := parseJUnit(t, document.String())
			if last := got[len(got)-1].Name; last != "preflight.Verdict" || len(got) != len(tc.findings)+1 {
				t.Errorf("%s: %d test cases, the last one is %s", tc.reason, len(got), last)
			}
			for _, c := range got {
				want, failed := tc.failures[c.Name]
				if failed != (c.Failure != nil) || failed && !strings.Contains(*c.Failure, want) {
					t.Errorf("%s: %s in %s", tc.reason, c.Name, document.String())
				}
			}
		})
	}
}

func TestJUnitOfARejectedProgram(t *testing.T) {
	var stdout, stderr strings.Builder
	p := preflight.Program{Args: []string{"-o", "junit"}, Stdout: &stdout, Stderr: &stderr, TerminationLog: missingLog(t)}
	if code := p.Run(context.Background()); code != preflight.ExitUsage {
		t.Errorf("exit code %d, want %d", code, preflight.ExitUsage)
	}
	cases := parseJUnit(t, stdout.String())
	if len(cases) != 2 || cases[0].Failure == nil || !strings.Contains(*cases[0].Failure, "no checks: call preflight.Main") ||
		cases[1].Failure == nil {
		t.Errorf("want two failures, one with the cause, got %s", stdout.String())
	}
}

// A check may put any text into its finding.
func FuzzJUnit(f *testing.F) {
	f.Add("plain", "4.21.3")
	f.Add("<&>\"']]>", "--")
	f.Add("<![CDATA[", "")
	f.Add("\x00\x01\x1b[31m\u0085\ufffe\xff", "\x07")
	f.Add("two\nlines\r\n", "")
	f.Fuzz(func(t *testing.T, text, version string) {
		var stdout strings.Builder
		p := preflight.Program{
			Args: []string{"-o", "junit"}, Env: map[string]string{"PREFLIGHT_TARGET_VERSION": version},
			Stdout: &stdout, Stderr: &stdout, TerminationLog: missingLog(t),
		}
		p.Run(context.Background(),
			preflight.Check{Name: "Fails", URL: text, Run: func(_ context.Context, t *preflight.T) error {
				t.Failf("%s", text)
				t.Remedyf("%s", text)
				return nil
			}},
			preflight.Check{Name: "Warns", Run: func(_ context.Context, t *preflight.T) error { t.Warnf("%s", text); return nil }},
			preflight.Check{Name: "Skips", Run: func(_ context.Context, t *preflight.T) error { t.Skipf("%s", text); return nil }},
			preflight.Check{Name: "Errs", Run: func(context.Context, *preflight.T) error { return errors.New(text) }},
		)
		cases := parseJUnit(t, stdout.String())
		if len(cases) != 5 || cases[0].Failure == nil || cases[1].Failure != nil || cases[2].Skipped == nil || cases[3].Failure == nil ||
			cases[4].Failure == nil {
			t.Errorf("%q: want a failure, a pass, a skip and two failures, got %q", text, stdout.String())
		}
	})
}
