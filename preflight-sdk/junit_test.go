package preflight_test

import (
	"context"
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// CI systems drop a whole report that is not well formed, whatever a check
// read and put into its message.
func FuzzJUnit(f *testing.F) {
	f.Add("plain", "4.21.3")
	f.Add("<&>\"']]>", "--")
	f.Add("\x00\x01\x1b[31m\u0085\ufffe\xff", "\x07")
	f.Add("two\nlines\r\n", "")
	f.Fuzz(func(t *testing.T, text, version string) {
		var stdout strings.Builder
		p := preflight.Program{
			Args: []string{"-o", "junit"}, Env: map[string]string{"PREFLIGHT_TARGET_VERSION": version},
			Stdout: &stdout, Stderr: &stdout, TerminationLog: absent(t),
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
		var got struct {
			Suite struct {
				Cases []struct {
					Name    string    `xml:"name,attr"`
					Skipped *struct{} `xml:"skipped"`
					Failure *struct{} `xml:"failure"`
					Error   *struct{} `xml:"error"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		if err := xml.Unmarshal([]byte(stdout.String()), &got); err != nil {
			t.Fatalf("%q gives %q: %v", text, stdout.String(), err)
		}
		cases := got.Suite.Cases
		if len(cases) != 4 || cases[0].Failure == nil || cases[2].Skipped == nil || cases[3].Error == nil {
			t.Errorf("%q gives %q: want a failure, a warning, a skip and an error", text, stdout.String())
		}
	})
}
