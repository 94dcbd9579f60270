package jobs_test

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
)

// line is a frame of any version and encoding, with any payload.
func line(version int, encoding, payload string) string {
	return fmt.Sprintf("preflight/%d %s %d %08x %s\n", version, encoding, len(payload), crc32.ChecksumIEEE([]byte(payload)), payload)
}

// document is one of today's, with more in it than today's SDK writes: head
// stands before the findings, and finding in the only one.
func document(head, f string) string {
	return fmt.Sprintf(`{"state":"final","runID":%q,%s"findings":[{%s"name":"Quorum","outcome":"Pass","reason":"Passed"}]}`, runID, head, f)
}

// A release brings the SDK that its checks were built with, and is judged by
// the runner that the administrator has: the SDK may be newer, and what it
// says must be understood or refused, and never taken for a pass that it is
// not.
func TestARunnerMayBeOlderThanTheSDK(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		code    int32
		message string
		want    string
		words   string
	}{
		"Today":            {"this is what is changed below", 0, line(1, "json", document("", "")), "Etcd.Quorum Pass(Passed)", ""},
		"FieldOfDocument":  {"version 1 grows by fields", 0, line(1, "json", document(`"schema":"1.9","steps":[{"n":1}],`, "")), "Etcd.Quorum Pass(Passed)", ""},
		"FieldOfFinding":   {"version 1 grows by fields", 0, line(1, "json", document("", `"parts":[{"name":"Sub"}],"severity":9,`)), "Etcd.Quorum Pass(Passed)", ""},
		"FieldOfTheRunner": {"a check cannot say what only the runner knows", 0, line(1, "json", document("", `"blocks":false,"bypass":{"by":"Force"},"source":"gate",`)), "Etcd.Quorum Pass(Passed)", ""},
		"NewOutcome":       {"an outcome that nobody knows is not a pass", 4, line(1, "json", strings.Replace(document("", ""), `"Pass"`, `"Fine"`, 1)), "Etcd.Quorum Unknown(Passed)", `"Fine"`},
		"NewOutcomeExit0":  {"nor is it one with the exit code of a pass", 0, line(1, "json", strings.Replace(document("", ""), `"Pass"`, `"Fine"`, 1)), whole + "Unknown(Contradiction)", "exit code 0"},
		"NewReason":        {"a reason that is no word here is replaced", 0, line(1, "json", strings.Replace(document("", ""), `"Passed"`, `"all well"`, 1)), "Etcd.Quorum Pass(Passed)", ""},
		"NewExitCode":      {"a code that does not agree with the result is a contradiction", 5, line(1, "json", document("", "")), whole + "Unknown(Contradiction)", "exit code 5"},
		"NewState":         {"a state that nobody knows is not the end", 0, line(1, "json", strings.Replace(document("", ""), "final", "paused", 1)), whole + "Unknown(BadResult)", `state "paused"`},
		"NewEncoding":      {"what cannot be decoded is said to be so", 0, line(1, "zstd", "abcd"), whole + "Unknown(BadResult)", `unknown encoding "zstd"`},
		"NewVersion":       {"another version is named", 0, line(2, "json", document("", "")), whole + "Unknown(BadResult)", "wire version 2"},
		"BothVersions":     {"a writer that speaks both is understood", 0, line(1, "json", document("", "")) + line(2, "json", `{"v":2}`), "Etcd.Quorum Pass(Passed)", ""},
		"NoFindings":       {"a result that is elsewhere is not a pass", 0, line(1, "json", fmt.Sprintf(`{"state":"final","runID":%q,"results":[]}`, runID)), whole + "Unknown(BadResult)", "without findings"},
	} {
		t.Run(name, func(t *testing.T) {
			reading := jobs.Classify(observe(framed, pod(ended(tc.code, tc.message)), logged("")))
			if diff := cmp.Diff([]string{tc.want}, answers(reading.Findings)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := reading.Findings[0].Message; !strings.Contains(got, tc.words) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, got, tc.words)
			}
		})
	}
}

// The other way round: what the first implementations wrote is understood by
// every runner after them.
func TestARunnerMayBeNewerThanTheSDK(t *testing.T) {
	paths, err := filepath.Glob("../../preflight-sdk/testdata/wire/frozen/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			capture, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			said, err := preflight.ParseFrame(capture)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{whole + "Unknown(NoResult)"}
			for _, f := range said.Findings {
				if said.State == preflight.StateFinal || f.Outcome == preflight.Fail {
					want = append(want, "Etcd."+f.Name+" "+string(f.Outcome)+"("+f.Reason+")")
				}
			}
			if said.State == preflight.StateFinal {
				want = want[1:]
			}
			// The result counts in its own run only.
			theirs := func(o *jobs.Observation) { o.Check.Job.Labels["preflight.openshift.io/run"] = said.RunID }
			reading := jobs.Classify(observe(framed, pod(ended(codeOf(said), string(capture))), logged(""), theirs))
			if diff := cmp.Diff(want, answers(reading.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// codeOf is the exit code that goes with a result; 0 for a process that had not
// come to its end, which must not pass for that.
func codeOf(result preflight.Result) int32 {
	for code := range int32(5) {
		if result.Agrees(int(code)) && code != preflight.ExitUsage {
			return code
		}
	}
	return 0
}
