package report_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// hopTo is the report of one update of a path through these versions.
func hopTo(path []string, findings ...finding.Finding) report.Report {
	expected := verdict.Expectation{Checks: 3, Reported: 3}
	later := len(path) > 2
	decided, folded := verdict.Fold(findings, expected, verdict.Policy{Provisional: later})
	made := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run:     report.Run{ID: "6f4c2b1e-0000-4000-8000-000000000000", StartTime: "2026-11-21T08:00:00Z", CompletionTime: "2026-11-21T08:01:00Z", Phase: report.PhaseComplete, ToolVersion: "v0.1.0"},
		Cluster: report.Cluster{ID: "c1", Version: path[0], Image: "registry/release@sha256:aa", Kubernetes: "v1.29.5"},
		Target:  report.Target{Version: path[len(path)-1], Image: "registry/release@sha256:bb", UpdateKind: "Minor", Verified: true, Signers: []string{"Release Key"}},
		Verdict: decided, Expected: expected, Findings: folded, Created: []finding.Object{},
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

func TestPath(t *testing.T) {
	passed := finding.Pass("Verified", "the release is signed").Named("ReleaseSignature").From(finding.SourceSignature)
	due := finding.Fail("AdminAckRequired", "Move the clients first.").Named("AdminAck-ack-4.17-apis").From(finding.SourceGate).Remedy("Acknowledge it.")
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
	} {
		t.Run(name, func(t *testing.T) {
			if tc.made.Decision != tc.want {
				t.Errorf("%s: decision %s, want %s", tc.reason, tc.made.Decision, tc.want)
			}
			for _, format := range []string{"text", "json", "markdown", "html", "junit"} {
				golden(t, name+"."+format, encoded(t, format, tc.made))
			}
		})
	}
}
