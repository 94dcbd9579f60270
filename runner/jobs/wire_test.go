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
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

// line is a result line of any version and encoding, with any payload.
func line(version int, encoding, payload string) string {
	return fmt.Sprintf("preflight/%d %s %d %08x %s\n", version, encoding, len(payload), crc32.ChecksumIEEE([]byte(payload)), payload)
}

// document is a result of the current version with additional fields: fields of
// the document, and findingFields of its only finding.
func document(fields, findingFields string) string {
	return fmt.Sprintf(`{"state":"final","runID":%q,%s"findings":[{%s"name":"Quorum","outcome":"Pass","reason":"Passed"}]}`, runID, fields,
		findingFields)
}

// A release ships the SDK that its checks were built with, and any runner reads
// their results: a result of a newer SDK must be parsed or rejected, and must never
// become a wrong pass.
func TestResultsOfNewerSDK(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		code    int32
		message string
		want    string
		words   string
	}{
		"Today": {"the unchanged document passes", 0, line(1, "json", document("", "")), "Etcd.Quorum Pass(Passed)", ""},
		"FieldOfDocument": {
			"unknown fields of version 1 are ignored", 0, line(1, "json", document(`"schema":"1.9","steps":[{"n":1}],`, "")),
			"Etcd.Quorum Pass(Passed)", "",
		},
		"FieldOfFinding": {
			"unknown fields of version 1 are ignored", 0,
			line(1, "json", document("", `"parts":[{"name":"Sub"}],"severity":9,`)), "Etcd.Quorum Pass(Passed)", "",
		},
		"FieldOfTheRunner": {
			"a check cannot set the fields of the runner", 0,
			line(1, "json", document("", `"blocks":false,"bypass":{"by":"Force"},"source":"gate",`)), "Etcd.Quorum Pass(Passed)", "",
		},
		"NewOutcome": {
			"an unknown outcome does not pass", 4, line(1, "json", strings.Replace(document("", ""), `"Pass"`, `"Fine"`, 1)),
			"Etcd.Quorum Unknown(Passed)", `"Fine"`,
		},
		"NewOutcomeExit0": {
			"an unknown outcome does not pass with exit code 0", 0,
			line(1, "json", strings.Replace(document("", ""), `"Pass"`, `"Fine"`, 1)), wholeJob + "Unknown(Contradiction)", "exit code 0",
		},
		"NewReason": {
			"an invalid reason is replaced", 0, line(1, "json", strings.Replace(document("", ""), `"Passed"`, `"all well"`, 1)),
			"Etcd.Quorum Pass(Passed)", "",
		},
		"NewExitCode": {
			"an unknown exit code contradicts the result", 5, line(1, "json", document("", "")),
			wholeJob + "Unknown(Contradiction)", "exit code 5",
		},
		"NewState": {
			"an unknown state is rejected", 0, line(1, "json", strings.Replace(document("", ""), "final", "paused", 1)),
			wholeJob + "Unknown(BadResult)", `state "paused"`,
		},
		"NewEncoding": {
			"an unknown encoding is rejected", 0, line(1, "zstd", "abcd"), wholeJob + "Unknown(BadResult)",
			`unknown encoding "zstd"`,
		},
		"NewVersion": {
			"another version is rejected", 0, line(2, "json", document("", "")), wholeJob + "Unknown(BadResult)",
			"wire version 2",
		},
		"BothVersions": {
			"a result in both versions is parsed", 0, line(1, "json", document("", "")) + line(2, "json", `{"v":2}`),
			"Etcd.Quorum Pass(Passed)", "",
		},
		"NoFindings": {
			"a result without findings does not pass", 0,
			line(1, "json", fmt.Sprintf(`{"state":"final","runID":%q,"results":[]}`, runID)), wholeJob + "Unknown(BadResult)", "without findings",
		},
	} {
		t.Run(name, func(t *testing.T) {
			classified := diagnosis.Classify(observe(framed, pod(ended(tc.code, tc.message)), logged("")))
			if diff := cmp.Diff([]string{tc.want}, outcomes(classified.Findings)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := classified.Findings[0].Message; !strings.Contains(got, tc.words) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, got, tc.words)
			}
		})
	}
}

// Results of the first SDK versions must be parsed by every later runner.
func TestResultsOfOlderSDK(t *testing.T) {
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
			parsed, err := preflight.ParseFrame(capture)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{wholeJob + "Unknown(NoResult)"}
			for _, f := range parsed.Findings {
				if parsed.State == preflight.StateFinal || f.Outcome == preflight.Fail {
					want = append(want, "Etcd."+f.Name+" "+string(f.Outcome)+"("+f.Reason+")")
				}
			}
			if parsed.State == preflight.StateFinal {
				want = want[1:]
			}
			// The result is valid in its own run only.
			sameRun := func(o *diagnosis.Observation) { o.Check.Job.Labels["preflight.openshift.io/run"] = parsed.RunID }
			classified := diagnosis.Classify(observe(framed, pod(ended(codeOf(parsed), string(capture))), logged(""), sameRun))
			if diff := cmp.Diff(want, outcomes(classified.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// codeOf is the exit code that agrees with a result; 0 for an unfinished result,
// which must not pass.
func codeOf(result preflight.Result) int32 {
	for code := range int32(5) {
		if result.Agrees(int(code)) && code != preflight.ExitUsage {
			return code
		}
	}
	return 0
}
