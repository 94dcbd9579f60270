package reportview_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/test/golden"
)

// hopTo returns the report of one update of a path through these versions.
func hopTo(path []string, findings ...finding.Finding) report.Report {
	expected := verdict.Expectation{Checks: 3, Reported: 3}
	later := len(path) > 2
	decided, folded := verdict.Fold(findings, expected, verdict.Policy{Provisional: later})
	made := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: "6f4c2b1e-0000-4000-8000-000000000000", StartTime: "2026-11-21T08:00:00Z", CompletionTime: "2026-11-21T08:01:00Z",
			Phase: report.PhaseComplete, ToolVersion: "v0.1.0",
		},
		Cluster: report.Cluster{ID: "c1", Version: path[0], Image: "registry/release@sha256:aa", Kubernetes: "v1.29.5"},
		Target: report.Target{
			Version: path[len(path)-1], Image: "registry/release@sha256:bb", UpdateKind: "Minor", Verified: true,
			Signers: []string{"Release Key"},
		},
		Verdict: decided, Expected: expected, Findings: folded, Created: []report.Object{},
	}
	if later {
		made.Path, made.CVO = path, report.CVO{Reason: "NotEvaluated"}
		made.AskedAgain = []report.AskedAgain{
			{Name: "ClusterOperatorUpgradeable", Reason: "it reads what the operators report then"},
			{Name: "ClusterVersionOverrides", Reason: "it reads what the operators report then"},
			{Name: "Alerts", Reason: "alerts that fire before the update count"},
		}
	}
	return made
}

// expired returns the report with a verdict that is no longer valid.
func expired(r report.Report) report.Report {
	r.Standing = &report.Standing{Time: "2026-11-23T08:00:00Z", Ended: []string{"it was valid until 2026-11-22T08:01:00Z"}}
	return r
}

func noticed(made report.Path) report.Path {
	made.Notices = []string{"offline: the graph of channel eus-4.18 is 3d old"}
	return made
}

// stored writes a path and reads it again.
func stored(t *testing.T, made report.Path) report.Path {
	t.Helper()
	loaded, err := report.Load(bytes.NewReader(encoded(t, "yaml", made)))
	if err != nil {
		t.Fatal(err)
	}
	read, err := loaded.Path()
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestContradictoryPath(t *testing.T) {
	passed := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Verified"),
		"the release is signed").Named("ReleaseSignature").From(finding.SourceSignature)
	first, path := []string{"4.16.27", "4.17.33"}, []string{"4.16.27", "4.17.33", "4.18.17"}
	for name, tc := range map[string]struct {
		reason string
		forge  func(*report.Path)
		want   string
	}{
		"Kind": {
			reason: "another document", forge: func(p *report.Path) { p.Kind = report.Kind },
			want: `its kind is "PreflightReport", not "PreflightPath"`,
		},
		"Version": {reason: "another version", forge: func(p *report.Path) { p.APIVersion = "v9" }, want: "has another version"},
		"Decision": {
			reason: "the decision was edited", forge: func(p *report.Path) { p.Decision = verdict.Blocked },
			want: "its decision is Blocked, but its updates make it Ready",
		},
		"NoUpdates": {
			reason: "no update has a report", forge: func(p *report.Path) { p.Updates = nil },
			want: "it has 3 versions, but reports for 0 updates",
		},
		"NoVersions": {reason: "the path has no versions", forge: func(p *report.Path) { p.Versions = nil }, want: "it has 0 versions"},
		"Missing": {
			reason: "an update was deleted", forge: func(p *report.Path) { p.Updates = p.Updates[:1] },
			want: "its decision is Ready, but its updates make it Undecided",
		},
		"Provisional": {
			reason: "a later update is never Ready", forge: func(p *report.Path) { p.Updates[1] = hopTo(first, passed) },
			want: "update 2 is provisional: false",
		},
		"Exchanged": {
			reason: "the first update is not provisional", forge: func(p *report.Path) { slices.Reverse(p.Updates) },
			want: "update 1 is provisional: true",
		},
		"Update": {
			reason: "the decision about an update was edited",
			forge:  func(p *report.Path) { p.Updates[1].Verdict.Decision = verdict.Ready }, want: "update 2: the report contradicts itself",
		},
		"NoVerdict": {
			reason: "an update has no verdict", forge: func(p *report.Path) { p.Updates[0].Verdict.Decision = "" },
			want: "update 1: this report has no verdict",
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := report.NewPath(path, []report.Report{hopTo(first, passed), hopTo(path, passed)})
			tc.forge(&made)
			loaded, err := report.Load(bytes.NewReader(encoded(t, "json", made)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := loaded.Path(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// An additional update never makes a path Ready, nor a Blocked path anything else, and an
// additional acceptance never makes a path worse.
func TestLongerPathIsNotBetter(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 3))
	worse := map[verdict.Decision]int{verdict.Ready: 0, verdict.NothingKnown: 1, verdict.Undecided: 2, verdict.Blocked: 3}
	versions := []string{"4.16.27", "4.17.33", "4.18.17", "4.19.5", "4.20.1"}
	seen := map[verdict.Decision]bool{}
	for range 2000 {
		var updates, accepting []report.Report
		var before verdict.Decision
		for hop := range versions[1:] {
			findings := randomFindings(random)
			updates = append(updates, hopTo(versions[:hop+2], findings...))
			accepting = append(accepting, accepted(updates[hop], findings))
			made := report.NewPath(versions[:hop+2], updates).Decision
			seen[made] = true
			if hop > 0 && worse[made] < worse[before] {
				t.Fatalf("%d updates are %s, and %d are %s", hop, before, hop+1, made)
			}
			if with := report.NewPath(versions[:hop+2], accepting).Decision; worse[with] > worse[made] {
				t.Fatalf("the path is %s, and %s if risks are accepted", made, with)
			}
			before = made
		}
		if ended := report.NewPath(append(versions, "4.21.1"), updates).Decision; ended == verdict.Ready || before == verdict.Blocked &&
			ended != verdict.Blocked {
			t.Fatalf("the path is %s, and %s if an update has no report", before, ended)
		}
	}
	if len(seen) != 3 {
		t.Errorf("the cases have the decisions %v only", seen)
	}
}

// randomFindings returns up to three findings, most of which pass.
func randomFindings(random *rand.Rand) []finding.Finding {
	var findings []finding.Finding
	for i := range random.IntN(4) {
		f := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Because"), "it passed")
		switch random.IntN(12) {
		case 0:
			f = finding.Fail(finding.ReportedReason("Because"), "it failed")
			f.Blocks = true
		case 1:
			f = finding.Unknown(finding.ReportedReason("Because"), "it is inconclusive")
			f.Blocks = true
		}
		findings = append(findings, f.Named(fmt.Sprint("Risk", i)).From(finding.SourceRisk))
	}
	return findings
}

// accepted returns the report with one finding accepted.
func accepted(made report.Report, findings []finding.Finding) report.Report {
	policy := verdict.Policy{Provisional: made.Verdict.Provisional, Accepted: map[string]string{"Risk0": "--accept"}}
	made.Verdict, made.Findings = verdict.Fold(findings, made.Expected, policy)
	return made
}

func FuzzReadPath(f *testing.F) {
	passed := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Verified"),
		"the release is signed").Named("ReleaseSignature").From(finding.SourceSignature)
	made := report.NewPath([]string{"4.16.27", "4.17.33"}, []report.Report{hopTo([]string{"4.16.27", "4.17.33"}, passed)})
	var written bytes.Buffer
	if err := format.Write(&written, "json", shown(made), format.Style{}); err != nil {
		f.Fatal(err)
	}
	f.Add(written.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		loaded, err := report.Load(bytes.NewReader(content))
		if err != nil {
			return
		}
		read, err := loaded.Path()
		if err != nil {
			return
		}
		for _, output := range format.Names(shown(read)) {
			encoded(t, output, read) // does not panic
		}
	})
}

func TestPath(t *testing.T) {
	passed := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Verified"),
		"the release is signed").Named("ReleaseSignature").From(finding.SourceSignature)
	due := finding.Fail(finding.ReportedReason("AdminAckRequired"),
		"Move the clients first.").Named("AdminAck-ack-4.17-apis").From(finding.SourceGate).Remedy("Acknowledge it.")
	due.Blocks, due.BlockedTargets = true, []string{"4.18.17"}
	first, path := []string{"4.16.27", "4.17.33"}, []string{"4.16.27", "4.17.33", "4.18.17"}
	for name, tc := range map[string]struct {
		reason string
		made   report.Path
		want   verdict.Decision
	}{
		"path-ready": {
			reason: "the later update is never Ready", want: verdict.Ready,
			made: report.NewPath(path, []report.Report{hopTo(first, passed), hopTo(path, passed)}),
		},
		"path-blocked": {
			reason: "a later update that is blocked blocks the path", want: verdict.Blocked,
			made: report.NewPath(path, []report.Report{hopTo(first, passed), hopTo(path, passed, due)}),
		},
		"path-ended": {
			reason: "an update without a report leaves the path undecided", want: verdict.Undecided,
			made: report.NewPath(path, []report.Report{hopTo(first, passed)}),
		},
		"path-outdated": {
			reason: "a verdict that has expired is no decision", want: verdict.Ready,
			made: report.NewPath(path, []report.Report{expired(hopTo(first, passed)), hopTo(path, passed)}),
		},
		"path-notice": {
			reason: "a limitation of the graph is a notice", want: verdict.Ready,
			made: noticed(report.NewPath(path, []report.Report{hopTo(first, passed), hopTo(path, passed)})),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.made.Decision != tc.want {
				t.Errorf("%s: decision %s, want %s", tc.reason, tc.made.Decision, tc.want)
			}
			for _, output := range []string{"text", "json", "markdown", "html", "junit"} {
				golden.Compare(t, "testdata/"+name+"."+output, encoded(t, output, tc.made))
				if diff := cmp.Diff(string(encoded(t, output, tc.made)), string(encoded(t, output, stored(t, tc.made)))); diff != "" {
					t.Errorf("the stored path as %s: -path +stored:\n%s", output, diff)
				}
			}
		})
	}
}
