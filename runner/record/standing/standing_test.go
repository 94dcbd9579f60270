package standing_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/standing"
)

const current, next = "4.18.3", "4.19.0"

const runID = "3b6f2c1e-8a52-4a5e-9a57-0c1f7d2c9e11"

var authentic = record.Authentication{State: record.Authentic}

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// recorded is a run of two checks with these results.
func recorded(phase record.Phase, results ...record.Result) record.Record {
	return record.Record{
		Intent: record.Intent{
			ID: runID, From: current, Target: update.Release{Version: next, Image: "registry/release@sha256:" + strings.Repeat("1", 64)},
			ToolVersion: "test", Checks: []string{"Etcd.Space", "Etcd.Quorum"},
		},
		Phase: phase, StartTime: began, Results: results, Authentication: authentic,
	}
}

func reported(check string, outcome preflight.Outcome) record.Result {
	return record.Result{Check: check, Findings: []finding.Finding{{Finding: preflight.Finding{
		Name: check, Outcome: outcome,
		Reason: "Because",
	}, Source: finding.SourceJob, Blocks: outcome == preflight.Fail || outcome == preflight.Unknown}}}
}

func TestStoredWithoutReport(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		run      record.Record
		decision verdict.Decision
		expected verdict.Expectation
		findings []string
	}{
		"Begun": {
			reason: "no check has reported", run: recorded(record.Running), decision: verdict.Undecided,
			expected: verdict.Expectation{Checks: 2, Missing: []string{"Etcd.Quorum", "Etcd.Space"}},
		},
		"Passing": {
			reason: "one check has not reported", run: recorded(record.Running, reported("Etcd.Quorum", preflight.Pass)),
			decision: verdict.Undecided,
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"Etcd.Space"}}, findings: []string{"Etcd.Quorum Pass"},
		},
		"AllPassed": {
			reason: "gates and risks are evaluated at the end of the run", decision: verdict.Undecided,
			run:      recorded(record.Running, reported("Etcd.Quorum", preflight.Pass), reported("Etcd.Space", preflight.Pass)),
			expected: verdict.Expectation{Checks: 2, Reported: 2}, findings: []string{"Etcd.Quorum Pass", "Etcd.Space Pass"},
		},
		"Failing": {
			reason: "further findings cannot change a blocking failure", run: recorded(record.Running, reported("Etcd.Quorum", preflight.Fail)),
			decision: verdict.Blocked,
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"Etcd.Space"}}, findings: []string{"Etcd.Quorum Fail"},
		},
		"NoChecks": {
			reason: "a run without Jobs is undecided until its end", decision: verdict.Undecided,
			run: record.Record{
				Intent: record.Intent{ID: runID, From: current, Target: update.Release{Version: next}}, Phase: record.Running,
				StartTime: began, Authentication: authentic,
			},
		},
		"Canceled": {
			reason: "checks that have not reported are Unknown", decision: verdict.Undecided,
			run:      recorded(record.Canceled, reported("Etcd.Quorum", preflight.Pass)),
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"Etcd.Space"}},
			findings: []string{"Etcd.Space Unknown", "Etcd.Quorum Pass"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := standing.Stored(tc.run)
			if err != nil {
				t.Fatal(err)
			}
			var findings []string
			for _, f := range stored.Findings {
				findings = append(findings, f.Name+" "+string(f.Outcome))
			}
			if stored.Verdict.Decision != tc.decision || !slices.Equal(findings, tc.findings) {
				t.Errorf("%s: %s with %q, want %s with %q", tc.reason, stored.Verdict.Decision, findings, tc.decision, tc.findings)
			}
			if diff := cmp.Diff(tc.expected, stored.Expected); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if stored.Run.ID != runID || stored.Run.Phase != string(tc.run.Phase) || stored.Run.StartTime != "2026-11-21T08:00:00Z" ||
				stored.Target.UpdateKind != "Minor" {
				t.Errorf("%s: %+v %+v", tc.reason, stored.Run, stored.Target)
			}
		})
	}
}

func TestStoredReport(t *testing.T) {
	want := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Run: report.Run{ID: runID, Phase: report.PhaseInterrupted},
		Verdict: verdict.Verdict{Decision: verdict.Ready}, Expected: verdict.Expectation{Checks: 1, Reported: 1},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	run := recorded(record.Canceled)
	run.Report, run.CompletionTime = text, began.Add(time.Minute)
	got, err := standing.Stored(run)
	if err != nil {
		t.Fatal(err)
	}
	// The phase and time of the record are later than those of the report.
	want.Run.Phase, want.Run.CompletionTime = report.PhaseCanceled, "2026-11-21T08:01:00Z"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The times of a report are at most those of its record.
	want.Run.CompletionTime, want.Verdict.ValidUntil = "2999-01-01T00:00:00Z", "2999-01-02T00:00:00Z"
	if run.Report, err = json.Marshal(want); err != nil {
		t.Fatal(err)
	}
	want.Run.CompletionTime, want.Verdict.ValidUntil = "2026-11-21T08:01:00Z", "2026-11-22T08:01:00Z"
	got, err = standing.Stored(run)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("a report of the year 2999: %v; -want +got:\n%s", err, diff)
	}
	run.Report = []byte("{}")
	if _, err := standing.Stored(run); err == nil || !strings.HasPrefix(err.Error(), "the recorded report of run "+runID+" cannot be read: ") {
		t.Errorf("want an error for an invalid report, got %v", err)
	}
}

// The report of a record that is not authentic has no other finding, and its texts are
// part of a command only if they are plain.
func TestStoredUnauthentic(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		state          record.Authenticity
		version        string
		want, remedied string
		target         string
	}{
		"Edited": {
			reason: "a MAC does not match", state: record.Unauthentic, version: next, want: "UnauthenticRecord", remedied: "Retry",
			target: next,
		},
		"Unset": {reason: "the zero value is not authentic", version: next, want: "UnauthenticRecord", remedied: "Retry", target: next},
		"Unverifiable": {
			reason: "the key may not be read", state: record.Unverifiable, version: next, want: "UnverifiableRecord",
			remedied: "Roles", target: next,
		},
		"Shell": {
			reason: "the version would be part of a command", state: record.Unauthentic, version: "4.19.0;reboot",
			want: "UnauthenticRecord", remedied: "Retry",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := recorded(record.Complete, reported("Etcd.Quorum", preflight.Pass), reported("Etcd.Space", preflight.Pass))
			run.Report, run.Decision = []byte("{}"), "Ready"
			run.Authentication, run.Target.Version = record.Authentication{State: tc.state, Cause: "because"}, tc.version
			got, err := standing.Stored(run)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict.Decision != verdict.Undecided || len(got.Findings) != 1 || got.Findings[0].Name != "RunRecord" ||
				got.Findings[0].Reason != tc.want {
				t.Fatalf("%s: %+v with %+v", tc.reason, got.Verdict, got.Findings)
			}
			if f := got.Findings[0]; string(f.Actions[0].Type) != tc.remedied || !strings.Contains(f.Message, runID) ||
				!strings.Contains(f.Message, "because") {
				t.Errorf("%s: %+v", tc.reason, f)
			}
			if got.Target.Version != tc.target {
				t.Errorf("%s: target %q, want %q", tc.reason, got.Target.Version, tc.target)
			}
		})
	}
}

func TestExpired(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		until, completion string
		now               time.Duration
		want              string
	}{
		"Fresh": {reason: "the report has the end of its validity", until: "2026-11-21T09:00:00Z", now: 59 * time.Minute},
		"Over": {
			reason: "the validity excludes its end", until: "2026-11-21T09:00:00Z", now: time.Hour,
			want: "it was valid until 2026-11-21T09:00:00Z",
		},
		"Default": {reason: "without an end a report is valid for a day", completion: "2026-11-21T08:00:00Z", now: 23 * time.Hour},
		"DefaultOver": {
			reason: "without an end a report is valid for a day only", completion: "2026-11-21T08:00:00Z", now: 24 * time.Hour,
			want: "it was valid until 2026-11-22T08:00:00Z",
		},
		"TooLong": {
			reason: "a verdict is valid for a day at most", until: "2999-01-01T00:00:00Z", completion: "2026-11-21T08:00:00Z", now: 24 * time.Hour,
			want: "it was valid until 2026-11-22T08:00:00Z",
		},
		"Timeless": {
			reason: "an unknown validity is no validity",
			want:   "the report contains neither the time of its verdict nor the end of its validity",
		},
		"Garbage": {
			reason: "an unknown validity is no validity", until: "soon", completion: "now",
			want: "the report contains neither the time of its verdict nor the end of its validity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := report.Report{Run: report.Run{CompletionTime: tc.completion}, Verdict: verdict.Verdict{ValidUntil: tc.until}}
			if got := standing.Expired(stored, began.Add(tc.now)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
