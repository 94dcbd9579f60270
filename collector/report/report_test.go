package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var updateGolden = flag.Bool("update", false, "rewrite the golden files")

// story is the report of a cluster where one check fails, one warns, one
// passes and an acknowledgement is missing.
func story() report.Report {
	refuses := false
	findings := []finding.Finding{
		{Finding: preflight.Finding{Name: "ClusterIngressOperator.DefaultCertificate", Outcome: preflight.Fail, Reason: "WeakKey", Message: "the certificate in Secret openshift-ingress/router-certs has an RSA key of 1024 bits", Remediation: "Replace it:\noc -n openshift-ingress create secret tls ...", URL: "https://example.com/weak", Objects: []preflight.Object{{APIVersion: "v1", Kind: "Secret", Namespace: "openshift-ingress", Name: "router-certs"}}}, Source: finding.SourceJob, Blocks: true, Job: &finding.Job{Namespace: "openshift-ingress-operator", Name: "preflight-0123456789", Attempts: 1, ExitCode: new(int32(3)), Node: "node-1"}},
		{Finding: preflight.Finding{Name: "AdminAck-ack-4.18-api-removals", Outcome: preflight.Fail, Reason: "AdminAckRequired", Message: "Remove <v1beta1> & others.", Remediation: "oc preflight ack ack-4.18-api-removals"}, Source: finding.SourceGate, Blocks: true, BlockedTargets: []string{"4.19.0"}},
		{Finding: preflight.Finding{Name: "MachineConfigOperator.IgnitionVersion", Outcome: preflight.Warn, Reason: "Leftover", Message: "unused"}, Source: finding.SourceJob},
		{Finding: preflight.Finding{Name: "Etcd.Quorum", Outcome: preflight.Unknown, Reason: "ImagePull", Message: "the image cannot be pulled"}, Source: finding.SourceJob, Blocks: true},
		{Finding: preflight.Finding{Name: "Etcd.Space", Outcome: preflight.Fail, Reason: "Full", Message: "accepted before"}, Source: finding.SourceJob, Blocks: true},
		{Finding: preflight.Finding{Name: "CloudCredentialOperator.Permissions", Outcome: preflight.Pass, Reason: "Passed"}, Source: finding.SourceJob},
	}
	expected := verdict.Expectation{Checks: 6, Reported: 6}
	folded, sorted := verdict.Fold(findings, expected, verdict.Policy{Accepted: map[string]string{"Etcd.Space": "--accept"}})
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: "01234567-89ab-4cde-8f01-23456789abcd", StartTime: "2026-11-21T08:00:00Z",
			CompletionTime: "2026-11-21T08:00:09Z", Phase: report.PhaseComplete, ToolVersion: "v0.1.0",
		},
		Cluster: report.Cluster{ID: "c1", Version: "4.18.3", Image: "registry/release@sha256:aa", Kubernetes: "v1.31.5"},
		Target: report.Target{
			Version: "4.19.0", Image: "registry/release@sha256:bb", UpdateKind: "Minor", Verified: true, Signers: []string{"Release Key 0123456789ABCDEF"},
		},
		Verdict: folded, Expected: expected, Findings: sorted,
		Created: []preflight.Object{
			{APIVersion: "batch/v1", Kind: "Job", Namespace: "openshift-etcd", Name: "quorum-0123456789"},
			{APIVersion: "batch/v1", Kind: "Job", Namespace: "openshift-etcd", Name: "space-0123456789"},
			{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "quorum-0123456789"},
		},
		CVO: report.CVO{Accepts: &refuses, Reason: "PreconditionChecks", Message: "an admin ack is missing"},
	}
}

func ready() report.Report {
	told := story()
	told.Expected = verdict.Expectation{Checks: 1, Reported: 1}
	told.Verdict, told.Findings = verdict.Fold([]finding.Finding{
		{Finding: preflight.Finding{Name: "AdminAck", Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}, Source: finding.SourceGate},
	}, told.Expected, verdict.Policy{})
	told.CVO, told.Created = report.CVO{Reason: "NotEvaluated"}, []preflight.Object{}
	return told
}

func forced() report.Report {
	told := story()
	told.Removal = &report.Removal{Deleted: told.Created[1:], Left: told.Created[:1]}
	told.Target.Verified, told.Target.Signers = false, []string{}
	told.Run.Phase = report.PhaseInterrupted
	told.Verdict, told.Findings = verdict.Fold([]finding.Finding{
		{Finding: preflight.Finding{Name: "ReleaseSignature", Outcome: preflight.Fail, Reason: "NoSignature", Message: "no signature"}, Source: finding.SourceSignature, Blocks: true},
	}, told.Expected, verdict.Policy{Force: true})
	return told
}

// running is the report of a run that goes on, of which one check has failed.
func running() report.Report {
	told := story()
	told.Run.Phase, told.Run.CompletionTime = report.PhaseRunning, ""
	told.Target.Verified, told.Target.Signers = false, []string{}
	told.CVO, told.Created = report.CVO{}, []preflight.Object{}
	told.Standing = &report.Standing{Time: "2026-11-21T08:00:05Z", Holder: "laptop_3"}
	told.Expected = verdict.Expectation{Checks: 3, Reported: 1, Missing: []string{"Etcd.Quorum", "Etcd.Space"}}
	told.Verdict, told.Findings = verdict.Fold([]finding.Finding{
		{Finding: preflight.Finding{Name: "ClusterIngressOperator.DefaultCertificate", Outcome: preflight.Fail, Reason: "WeakKey", Message: "1024 bits"}, Source: finding.SourceJob, Blocks: true},
	}, told.Expected, verdict.Policy{})
	return told
}

// begun is the report of a run of which no check has answered.
func begun() report.Report {
	told := running()
	var missing []string
	for i := range 40 {
		missing = append(missing, fmt.Sprintf("Component%02d.LookAtEverything", i))
	}
	told.Expected = verdict.Expectation{Checks: len(missing), Missing: missing}
	told.Verdict, told.Findings = verdict.Fold(nil, told.Expected, verdict.Policy{})
	return told
}

func canceled() report.Report {
	told := running()
	told.Run.Phase, told.Run.CompletionTime = report.PhaseCanceled, "2026-11-21T08:00:09Z"
	told.Standing = nil
	return told
}

// outdated was ready, and much has happened since.
func outdated() report.Report {
	told := ready()
	told.Standing = &report.Standing{Time: "2026-11-23T08:00:00Z", Ended: []string{"it was valid until 2026-11-22T08:00:00Z"}}
	for i := range 12 {
		told.Standing.Ended = append(told.Standing.Ended, fmt.Sprintf("Node worker-%d has changed", i))
	}
	return told
}

// current is told again while it holds.
func current() report.Report {
	told := ready()
	told.Standing = &report.Standing{Time: "2026-11-21T09:00:00Z"}
	return told
}

// left goes on, and nobody is at it.
func left() report.Report {
	told := begun()
	told.Expected.Missing = told.Expected.Missing[:2]
	told.Standing = &report.Standing{Time: "2026-11-21T08:00:05Z"}
	return told
}

func TestGolden(t *testing.T) {
	for name, told := range map[string]report.Report{
		"blocked": story(), "ready": ready(), "forced": forced(), "running": running(), "begun": begun(), "canceled": canceled(),
		"outdated": outdated(), "current": current(), "left": left(),
	} {
		for _, format := range report.Formats() {
			t.Run(name+"."+format, func(t *testing.T) {
				var got bytes.Buffer
				if err := report.Write(&got, format, told); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+format, got.Bytes())
			})
		}
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *updateGolden {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got (rewrite with -update):\n%s", diff)
	}
}

func TestJSONReadsBack(t *testing.T) {
	var written bytes.Buffer
	if err := report.Write(&written, "json", story()); err != nil {
		t.Fatal(err)
	}
	var got report.Report
	if err := json.Unmarshal(written.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(story(), got); diff != "" {
		t.Errorf("the report is its own reader: -want +got:\n%s", diff)
	}
}

func TestTextCannotDriveTheTerminal(t *testing.T) {
	told := story()
	told.Findings[0].Message = "before\x1b[2Jafter\u009b31m\r"
	told.Findings[0].Name = "A\x1b]0;title\x07"
	var got bytes.Buffer
	if err := report.Write(&got, "text", told); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(got.String(), "\x1b\u009b\r\x07") {
		t.Errorf("control characters of a finding reach the terminal: %q", got.String())
	}
}

func TestUnknownFormatNamesTheOthers(t *testing.T) {
	err := report.Write(&bytes.Buffer{}, "xml", story())
	if err == nil {
		t.Fatal("format xml was taken")
	}
	for _, want := range append(report.Formats(), `"xml"`) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
}
