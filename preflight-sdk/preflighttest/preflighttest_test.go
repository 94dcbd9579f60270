package preflighttest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
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
			reason: "the check knows the update, and the test's log has that of the check",
			check: check(func(_ context.Context, t *preflight.T) error {
				t.Logf("going to %s", t.Update().To)
				return nil
			}),
			end: end{says: []string{"Quorum: going to 4.21.3\n"}}, want: preflight.Pass,
		},
		"Error": {
			reason: "could not tell is an answer like others",
			check:  check(func(context.Context, *preflight.T) error { return errors.New("no route to host") }),
			want:   preflight.Unknown,
		},
		"Panic": {
			reason: "nobody can want a panic, so it does not hide behind a wanted Unknown",
			check:  check(func(context.Context, *preflight.T) error { panic("boom") }),
			end:    end{failed: true, says: []string{"the check is defective", "panic: boom", "preflighttest_test.go:"}},
		},
		"FailThenPanic": {
			reason: "a fail stands, as in the report, with the panic in its message",
			check: check(func(_ context.Context, t *preflight.T) error {
				t.Failf("seen")
				panic("boom")
			}),
			want: preflight.Fail,
		},
		"Goexit": {
			reason: "nor an end of the goroutine, as by the FailNow of a test",
			check:  check(func(context.Context, *preflight.T) error { runtime.Goexit(); return nil }),
			end:    end{failed: true, says: []string{"runtime.Goexit"}},
		},
		"Invalid": {
			reason: "what Main would refuse is no check to test",
			check:  preflight.Check{Name: "no-camel"},
			end:    end{failed: true, says: []string{`\"no-camel\" is not CamelCase`}},
		},
		"OwnReason": {
			reason: "a check may use the words of the SDK where it can tell",
			check: check(func(_ context.Context, t *preflight.T) error {
				t.Reason("Panic")
				t.Failf("the kernel panicked")
				return nil
			}),
			want: preflight.Fail,
		},
		"Deaf": {
			reason:   "a check that hangs is heard of before the test is killed",
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
		Remediation: "Repair it:\noc debug node/master-2",
		Objects:     []preflight.Object{{APIVersion: "v1", Kind: "Pod", Namespace: "openshift-etcd", Name: "etcd-2"}},
		Evidence:    map[string]string{"members": "3", "answers": "2"},
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
			reason: "every part is there",
			want:   preflighttest.Want{Outcome: preflight.Fail, Reason: "MemberDown", Message: "<etcd-2>", Remedy: "oc debug"},
		},
		"OutcomeOnly": {
			reason: "what is empty may be anything",
			want:   preflighttest.Want{Outcome: preflight.Fail},
		},
		"Nothing": {
			reason: "a forgotten outcome is no wish for anything",
			want:   preflighttest.Want{Message: "etcd"},
			end:    end{failed: true, says: []string{"set Want.Outcome"}},
		},
		"Outcome": {
			reason: "the failure shows the whole finding",
			want:   preflighttest.Want{Outcome: preflight.Pass},
			end:    end{failed: true, says: []string{"outcome: want Pass", `"outcome": "Fail"`, `"message": "etcd member <etcd-2> does not answer"`, `"answers": "2"`}},
		},
		"PartOfReason": {
			reason: "a reason is a word, not a text",
			want:   preflighttest.Want{Outcome: preflight.Fail, Reason: "Member"},
			end:    end{failed: true, says: []string{"reason: want Member"}},
		},
		"Texts": {
			reason: "all that is wrong is told at once",
			want:   preflighttest.Want{Outcome: preflight.Fail, Message: "etcd-3", Remedy: "oc delete"},
			end:    end{failed: true, says: []string{"message: want a part etcd-3; remediation: want a part oc delete"}},
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
  "remediation": "Repair it:\noc debug node/master-2",
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
		// want is what is in the file afterwards; empty: it is not there.
		want string
	}{
		"Same": {
			reason: "the file is what the finding is", prepare: differs(golden), want: golden,
		},
		"LineEnds": {
			reason:  "git may have changed the line ends",
			prepare: differs("{\r\n" + golden[2:]), want: "{\r\n" + golden[2:],
		},
		"Missing": {
			reason: "no file is no agreement",
			end:    end{failed: true, says: []string{"no such file", "UPDATE_GOLDEN=1 go test"}},
		},
		"Differs": {
			reason: "the first line that differs is shown, from both", prepare: differs("{\n  \"name\": \"Other\",\n}\n"),
			end:  end{failed: true, says: []string{"finding.json:2: the file has", `"  \"name\": \"Other\","`, `"  \"name\": \"Quorum\","`, "UPDATE_GOLDEN=1"}},
			want: "{\n  \"name\": \"Other\",\n}\n",
		},
		"Shorter": {
			reason: "an end before the end is a difference", prepare: differs(golden[:2]),
			end: end{failed: true, says: []string{"finding.json:2: the file has\n\t\"\"\n"}}, want: golden[:2],
		},
		"Longer": {
			reason: "and so is one behind it", prepare: differs(golden + "{}"),
			end: end{failed: true, says: []string{"finding.json:20: the file has\n\t\"{}\"\nand should have\n\t\"\"\n"}}, want: golden + "{}",
		},
		"Write": {
			reason: "a new file is written, with its folder", update: "1",
			end: end{says: []string{"wrote ", "finding.json"}}, want: golden,
		},
		"Rewrite": {
			reason: "an old one is written anew", update: "1", prepare: differs("old"),
			end: end{says: []string{"wrote "}}, want: golden,
		},
		"CannotWrite": {
			reason: "what could not be written is told", update: "1",
			prepare: func(t *testing.T, file string) { t.Helper(); write(t, filepath.Dir(file), "a file") },
			end:     end{failed: true, says: []string{"not a directory"}},
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

// What was written once does not touch the file again, or else a build system
// would take it for new each time.
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
	options := preflight.ManifestOptions{Name: "etcd-preflight", Namespace: "openshift-etcd", Image: "quay.io/openshift/origin-cluster-etcd-operator:latest"}
	pods := preflight.Rule{Namespace: "openshift-etcd", APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}
	declared := check(func(context.Context, *preflight.T) error { return nil })
	declared.Rules = []preflight.Rule{pods}
	file := filepath.Join(t.TempDir(), "job.yaml")

	t.Setenv("UPDATE_GOLDEN", "1")
	r := recorded(t, func(r *record) { preflighttest.Manifest(r, file, options, declared) })
	r.expect(t, "the first is written", end{says: []string{"wrote "}})

	t.Setenv("UPDATE_GOLDEN", "")
	r = recorded(t, func(r *record) { preflighttest.Manifest(r, file, options, declared) })
	r.expect(t, "and is what it should be", end{})

	declared.Rules[0].Verbs = []string{"list", "watch"}
	r = recorded(t, func(r *record) { preflighttest.Manifest(r, file, options, declared) })
	r.expect(t, "a rule that nobody printed is a drift", end{failed: true, says: []string{"job.yaml:", "watch", "UPDATE_GOLDEN=1"}})

	options.Name = "Not a label"
	r = recorded(t, func(r *record) { preflighttest.Manifest(r, file, options, declared) })
	r.expect(t, "what makes no manifest agrees with none", end{failed: true, says: []string{"no manifest for", `name "Not a label"`}})
}
