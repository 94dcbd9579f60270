package preflighttest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
)

func check(run func(ctx context.Context, t *preflight.T) error) preflight.Check {
	return preflight.Check{Name: "Quorum", Description: "All members answer", Run: run}
}

func TestRun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		check    preflight.Check
		deadline time.Time
		end      end
		want     preflight.Outcome
	}{
		"Pass": {
			reason: "the check receives the update, and its log is written to the log of the test",
			check: check(func(_ context.Context, t *preflight.T) error {
				t.Logf("going to %s", t.Update().To)
				return nil
			}),
			end: end{output: []string{"Quorum: going to 4.21.3\n"}}, want: preflight.Pass,
		},
		"Error": {
			reason: "an inconclusive check does not fail the test",
			check:  check(func(context.Context, *preflight.T) error { return errors.New("no route to host") }),
			want:   preflight.Unknown,
		},
		"Panic": {
			reason: "a panic fails the test even if it expects Unknown",
			check:  check(func(context.Context, *preflight.T) error { panic("boom") }),
			end:    end{failed: true, output: []string{"the check is defective", "panic: boom", "preflighttest_test.go:"}},
		},
		"FailThenPanic": {
			reason: "a fail remains a fail, as in the report, with the panic in its message",
			check: check(func(_ context.Context, t *preflight.T) error {
				t.Failf("seen")
				panic("boom")
			}),
			want: preflight.Fail,
		},
		"Goexit": {
			reason: "runtime.Goexit, such as by testing.T.FailNow, fails the test even if it expects Unknown",
			check:  check(func(context.Context, *preflight.T) error { runtime.Goexit(); return nil }),
			end:    end{failed: true, output: []string{"runtime.Goexit"}},
		},
		"Invalid": {
			reason: "a declaration that Main rejects fails the test",
			check:  preflight.Check{Name: "no-camel"},
			end:    end{failed: true, output: []string{`\"no-camel\" is not CamelCase`}},
		},
		"OwnReason": {
			reason: "a conclusive check may use a reason of the SDK",
			check: check(func(_ context.Context, t *preflight.T) error {
				t.Reason("Panic")
				t.Failf("the kernel panicked")
				return nil
			}),
			want: preflight.Fail,
		},
		"IgnoresContext": {
			reason:   "a check that hangs is reported before the test is killed",
			check:    check(func(context.Context, *preflight.T) error { select {} }),
			deadline: time.Now().Add(100 * time.Millisecond), want: preflight.Unknown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got preflight.Finding
			r := (&record{TB: t, deadline: tc.deadline}).run(func(r *record) {
				got = preflighttest.Run(r, tc.check, preflight.Update{To: "4.21.3"})
			})
			r.expect(t, tc.reason, tc.end)
			if got.Outcome != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got.Outcome, tc.want)
			}
		})
	}
}

func finding() preflight.Finding {
	return preflight.Finding{
		Name: "Quorum", Outcome: preflight.Fail, Reason: "MemberDown",
		Message:     "etcd member <etcd-2> does not answer",
		Remediation: "Repair it.", Actions: []preflight.Action{{Command: "oc debug node/master-2"}},
		Objects:  []preflight.Object{{APIVersion: "v1", Kind: "Pod", Namespace: "openshift-etcd", Name: "etcd-2"}},
		Evidence: map[string]string{"members": "3", "answers": "2"},
	}
}

func TestExpect(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		want   preflighttest.Want
		end    end
	}{
		"All": {
			reason: "the finding meets every expectation",
			want:   preflighttest.Want{Outcome: preflight.Fail, Reason: "MemberDown", Message: "<etcd-2>", Remedy: "oc debug"},
		},
		"OutcomeOnly": {
			reason: "an empty field matches any value",
			want:   preflighttest.Want{Outcome: preflight.Fail},
		},
		"NoOutcome": {
			reason: "an expectation requires an outcome",
			want:   preflighttest.Want{Message: "etcd"},
			end:    end{failed: true, output: []string{"Want.Outcome is empty"}},
		},
		"Outcome": {
			reason: "the failure contains the whole finding",
			want:   preflighttest.Want{Outcome: preflight.Pass},
			end: end{failed: true, output: []string{
				"outcome: want Pass", `"outcome": "Fail"`,
				`"message": "etcd member <etcd-2> does not answer"`, `"answers": "2"`,
			}},
		},
		"PartOfReason": {
			reason: "the reason is compared as a whole",
			want:   preflighttest.Want{Outcome: preflight.Fail, Reason: "Member"},
			end:    end{failed: true, output: []string{"reason: want Member"}},
		},
		"Texts": {
			reason: "the failure lists all differences",
			want:   preflighttest.Want{Outcome: preflight.Fail, Message: "etcd-3", Remedy: "oc delete"},
			end:    end{failed: true, output: []string{`message: want the substring "etcd-3"; remediation: want the substring "oc delete"`}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recorded(t, func(r *record) { preflighttest.Expect(r, finding(), tc.want) })
			r.expect(t, tc.reason, tc.end)
		})
	}
}

const golden = `{
  "name": "Quorum",
  "outcome": "Fail",
  "reason": "MemberDown",
  "message": "etcd member <etcd-2> does not answer",
  "remediation": "Repair it.",
  "actions": [
    {
      "command": "oc debug node/master-2"
    }
  ],
  "objects": [
    {
      "apiVersion": "v1",
      "kind": "Pod",
      "namespace": "openshift-etcd",
      "name": "etcd-2"
    }
  ],
  "evidence": {
    "answers": "2",
    "members": "3"
  }
}
`

func TestGolden(t *testing.T) {
	differs := func(text string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) { t.Helper(); write(t, file, text) }
	}
	cases := map[string]struct {
		reason  string
		update  string
		prepare func(t *testing.T, file string)
		end     end
		// want is the content of the file afterwards; empty if it does not exist.
		want string
	}{
		"Same": {
			reason: "the file is equal to the finding", prepare: differs(golden), want: golden,
		},
		"LineEnds": {
			reason:  "git may have converted the line endings",
			prepare: differs("{\r\n" + golden[2:]), want: "{\r\n" + golden[2:],
		},
		"Missing": {
			reason: "a missing file is a failure",
			end:    end{failed: true, output: []string{"no such file", "UPDATE_GOLDEN=1 go test"}},
		},
		"Differs": {
			reason:  "the failure contains the first line that differs, of the file and of the finding",
			prepare: differs("{\n  \"name\": \"Other\",\n}\n"),
			end: end{failed: true, output: []string{
				"finding.json:2: the file has", `"  \"name\": \"Other\","`, `"  \"name\": \"Quorum\","`,
				"UPDATE_GOLDEN=1",
			}},
			want: "{\n  \"name\": \"Other\",\n}\n",
		},
		"Shorter": {
			reason: "a truncated file is a difference", prepare: differs(golden[:2]),
			end: end{failed: true, output: []string{"finding.json:2: the file has\n\t\"\"\n"}}, want: golden[:2],
		},
		"Longer": {
			reason: "additional text in the file is a difference", prepare: differs(golden + "{}"),
			end: end{failed: true, output: []string{"finding.json:25: the file has\n\t\"{}\"\nwant\n\t\"\"\n"}}, want: golden + "{}",
		},
		"Write": {
			reason: "a new file is created with its directory", update: "1",
			end: end{output: []string{"wrote ", "finding.json"}}, want: golden,
		},
		"Rewrite": {
			reason: "an existing file is replaced", update: "1", prepare: differs("old"),
			end: end{output: []string{"wrote "}}, want: golden,
		},
		"CannotWrite": {
			reason: "an error of writing is reported", update: "1",
			prepare: func(t *testing.T, file string) { t.Helper(); write(t, filepath.Dir(file), "a file") },
			end:     end{failed: true, output: []string{"not a directory"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("UPDATE_GOLDEN", tc.update)
			file := filepath.Join(t.TempDir(), "testdata", "finding.json")
			if tc.prepare != nil {
				tc.prepare(t, file)
			}
			r := recorded(t, func(r *record) { preflighttest.Golden(r, file, finding()) })
			r.expect(t, tc.reason, tc.end)
			if got, _ := os.ReadFile(file); string(got) != tc.want {
				t.Errorf("%s: the file is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if filepath.Ext(file) != "" {
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Build systems consider a file changed when its modification time changes.
func TestGoldenIsWrittenOnce(t *testing.T) {
	t.Setenv("UPDATE_GOLDEN", "1")
	file := filepath.Join(t.TempDir(), "finding.json")
	for _, want := range []string{"wrote " + file + "\n", ""} {
		r := recorded(t, func(r *record) { preflighttest.Golden(r, file, finding()) })
		if r.failed || r.log.String() != want {
			t.Errorf("got %q, want %q", r.log.String(), want)
		}
	}
}

func TestManifest(t *testing.T) {
	const program = "./testdata/program"
	options := preflight.ManifestOptions{
		Name: "etcd-preflight", Namespace: "openshift-etcd", Image: "quay.io/openshift/origin-cluster-etcd-operator:latest",
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	t.Setenv("UPDATE_GOLDEN", "1")
	r := recorded(t, func(r *record) { preflighttest.Manifest(r, program, file, options) })
	r.expect(t, "UPDATE_GOLDEN writes the manifest", end{output: []string{"wrote "}})
	t.Setenv("UPDATE_GOLDEN", "")
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{`["pods"]`, `["secrets"]`} {
		if !strings.Contains(string(written), "resources: "+resource) {
			t.Errorf("the manifest grants the rules of every check of main; no %s in\n%s", resource, written)
		}
	}

	for name, tc := range map[string]struct {
		reason  string
		program string
		content string
		options preflight.ManifestOptions
		end     end
	}{
		"Same": {
			reason:  "the manifest is what the program prints",
			program: program, content: string(written), options: options,
		},
		"RuleMissing": {
			reason:  "a rule of main's second check that the manifest does not grant is a difference",
			program: program, content: strings.ReplaceAll(string(written), "secrets", "configmaps"), options: options,
			end: end{failed: true, output: []string{"job.yaml:", "secrets", "UPDATE_GOLDEN=1"}},
		},
		"OtherOptions": {
			reason:  "the options are part of the manifest",
			program: program, content: string(written),
			options: preflight.ManifestOptions{Name: "other", Namespace: options.Namespace, Image: options.Image},
			end:     end{failed: true, output: []string{"job.yaml:2: ", "--name=other"}},
		},
		"InvalidOptions": {
			reason:  "the error of the program names the invalid option",
			program: program, content: string(written),
			options: preflight.ManifestOptions{Name: "Not a label", Namespace: options.Namespace, Image: options.Image},
			end:     end{failed: true, output: []string{"cannot print the manifest of the program ./testdata/program", `name "Not a label"`}},
		},
		"DoesNotCompile": {
			reason:  "the error of the compiler is in the log of the test",
			program: "./testdata/broken", content: string(written), options: options,
			end: end{failed: true, output: []string{"cannot build the program ./testdata/broken", "undefined: undefined"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "testdata", "job.yaml")
			write(t, file, tc.content)
			r := recorded(t, func(r *record) { preflighttest.Manifest(r, tc.program, file, tc.options) })
			r.expect(t, tc.reason, tc.end)
		})
	}
}
