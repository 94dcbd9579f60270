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
	"github.com/openshift/update-preflight/runner/standing"
)

const current, next = "4.18.3", "4.19.0"

const runID = "3b6f2c1e-8a52-4a5e-9a57-0c1f7d2c9e11"

var began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// recorded is a run of two checks with these results.
func recorded(phase record.Phase, results ...record.Result) record.Record {
	return record.Record{
		Intent: record.Intent{
			ID: runID, From: current, Target: update.Release{Version: next, Image: "registry/release@sha256:" + strings.Repeat("1", 64)}, ToolVersion: "test", Checks: []string{"Etcd.Space", "Etcd.Quorum"},
		},
		Phase: phase, StartTime: began, Results: results,
	}
}

func heard(check string, outcome preflight.Outcome) record.Result {
	return record.Result{Check: check, Findings: []finding.Finding{{Finding: preflight.Finding{Name: check, Outcome: outcome, Reason: "Said"}, Source: finding.SourceJob, Blocks: outcome == preflight.Fail || outcome == preflight.Unknown}}}
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
			reason: "nothing is known", run: recorded(record.Running), decision: verdict.Undecided,
			expected: verdict.Expectation{Checks: 2, Missing: []string{"Etcd.Quorum", "Etcd.Space"}},
		},
		"Passing": {
			reason: "one is awaited", run: recorded(record.Running, heard("Etcd.Quorum", preflight.Pass)), decision: verdict.Undecided,
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"Etcd.Space"}}, findings: []string{"Etcd.Quorum Pass"},
		},
		"AllPassed": {
			reason: "gates and risks are known at the end only", decision: verdict.Undecided,
			run:      recorded(record.Running, heard("Etcd.Quorum", preflight.Pass), heard("Etcd.Space", preflight.Pass)),
			expected: verdict.Expectation{Checks: 2, Reported: 2}, findings: []string{"Etcd.Quorum Pass", "Etcd.Space Pass"},
		},
		"Failing": {
			reason: "nothing that comes can make it better", run: recorded(record.Running, heard("Etcd.Quorum", preflight.Fail)), decision: verdict.Blocked,
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"Etcd.Space"}}, findings: []string{"Etcd.Quorum Fail"},
		},
		"NoChecks": {
			reason: "a release without checks, or a run without Jobs", decision: verdict.Undecided,
			run: record.Record{Intent: record.Intent{ID: runID, From: current, Target: update.Release{Version: next}}, Phase: record.Running, StartTime: began},
		},
		"Canceled": {
			reason: "nobody waits any more, and each check says so", decision: verdict.Undecided,
			run:      recorded(record.Canceled, heard("Etcd.Quorum", preflight.Pass)),
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"Etcd.Space"}}, findings: []string{"Etcd.Space Unknown", "Etcd.Quorum Pass"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			told, err := standing.Stored(tc.run)
			if err != nil {
				t.Fatal(err)
			}
			var findings []string
			for _, f := range told.Findings {
				findings = append(findings, f.Name+" "+string(f.Outcome))
			}
			if told.Verdict.Decision != tc.decision || !slices.Equal(findings, tc.findings) {
				t.Errorf("%s: %s with %q, want %s with %q", tc.reason, told.Verdict.Decision, findings, tc.decision, tc.findings)
			}
			if diff := cmp.Diff(tc.expected, told.Expected); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if told.Run.ID != runID || told.Run.Phase != string(tc.run.Phase) || told.Run.StartTime != "2026-11-21T08:00:00Z" || told.Target.UpdateKind != "Minor" {
				t.Errorf("%s: %+v %+v", tc.reason, told.Run, told.Target)
			}
		})
	}
}

func TestStoredReport(t *testing.T) {
	want := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Run: report.Run{ID: runID, Phase: report.PhaseInterrupted},
		Verdict: verdict.Verdict{Decision: verdict.Ready},
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
	// What the record says of the end is later than what the report says.
	want.Run.Phase, want.Run.CompletionTime = report.PhaseCanceled, "2026-11-21T08:01:00Z"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	run.Report = []byte("{}")
	if _, err := standing.Stored(run); err == nil || !strings.HasPrefix(err.Error(), "the recorded report of run "+runID+" cannot be read: ") {
		t.Errorf("what is no report: %v", err)
	}
}

func TestExpired(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		until, completion string
		now               time.Duration
		want              string
	}{
		"Fresh":  {reason: "it says how long it holds", until: "2026-11-21T09:00:00Z", now: 59 * time.Minute},
		"Over":   {reason: "the end is not in it", until: "2026-11-21T09:00:00Z", now: time.Hour, want: "it was valid until 2026-11-21T09:00:00Z"},
		"Untold": {reason: "an interrupted run does not say", completion: "2026-11-21T08:00:00Z", now: 23 * time.Hour},
		"UntoldOld": {
			reason: "then it is as old as any may be", completion: "2026-11-21T08:00:00Z", now: 24 * time.Hour, want: "it was valid until 2026-11-22T08:00:00Z",
		},
		"Timeless": {reason: "not known is not current", want: "the report has neither the time of its verdict nor the end of its validity"},
		"Garbage":  {reason: "not known is not current", until: "soon", completion: "now", want: "the report has neither the time of its verdict nor the end of its validity"},
	} {
		t.Run(name, func(t *testing.T) {
			told := report.Report{Run: report.Run{CompletionTime: tc.completion}, Verdict: verdict.Verdict{ValidUntil: tc.until}}
			if got := standing.Expired(told, began.Add(tc.now)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
