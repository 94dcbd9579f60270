package reportview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/golden"
)

// blocked is the report of a cluster where one check fails, one warns, one
// passes, one is inconclusive, and an acknowledgement is missing.
func blocked() report.Report {
	refuses := false
	certificate := finding.Fail(finding.ReportedReason("WeakKey"),
		"the certificate in Secret openshift-ingress/router-certs has an RSA key of 1024 bits").
		Remedy("Obtain a certificate with a longer key, then replace it:\n    oc -n openshift-ingress create secret tls router-certs " +
			"--cert=tls.crt --key=tls.key --dry-run=client -o yaml").
		Do(finding.Script("oc -n openshift-ingress apply -f - <<'END'\nkind: Secret\nEND")).
		Documented("https://example.com/weak").
		About(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: "openshift-ingress", Name: "router-certs"}).
		Named("ClusterIngressOperator.DefaultCertificate").From(finding.SourceJob)
	certificate.Job = &finding.Job{
		Namespace: "openshift-ingress-operator", Name: "preflight-0123456789", Attempts: 1, ExitCode: new(int32(3)),
		Node: "node-1",
	}
	acknowledge := finding.Acknowledge("ack-4.18-api-removals")
	acknowledge.Command = "oc preflight ack ack-4.18-api-removals"
	ack := finding.Fail(finding.ReportedReason("AdminAckRequired"),
		"Remove <v1beta1> & others.").Remedy("Acknowledge the gate.").Do(acknowledge).
		Named("AdminAck-ack-4.18-api-removals").From(finding.SourceGate)
	ack.BlockedTargets = []string{"4.19.0"}
	findings := []finding.Finding{
		certificate,
		ack,
		finding.Warn(finding.ReportedReason("Leftover"), "unused").Named("MachineConfigOperator.IgnitionVersion").From(finding.SourceJob),
		finding.Unknown(finding.ReportedReason("ImagePull"), "the image cannot be pulled").Named("Etcd.Quorum").From(finding.SourceJob),
		finding.Fail(finding.ReportedReason("Full"), "accepted before").Named("Etcd.Space").From(finding.SourceJob),
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"),
			"").Named("CloudCredentialOperator.Permissions").From(finding.SourceJob),
	}
	expected := verdict.Expectation{Checks: 6, Reported: 6}
	folded, sorted := verdict.Fold(findings, expected,
		verdict.Policy{Accepted: map[string]string{"Etcd.Space": "spec.desiredUpdate.acceptRisks"}})
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: "01234567-89ab-4cde-8f01-23456789abcd", StartTime: "2026-11-21T08:00:00Z",
			CompletionTime: "2026-11-21T08:00:09Z", Phase: report.PhaseComplete, ToolVersion: "v0.1.0",
		},
		Cluster: report.Cluster{ID: "c1", Version: "4.18.3", Image: "registry/release@sha256:aa", Kubernetes: "v1.31.5"},
		Target: report.Target{
			Version: "4.19.0", Image: "registry/release@sha256:bb", UpdateKind: "Minor", Verified: true,
			Signers: []string{"Release Key 0123456789ABCDEF"},
		},
		Verdict: folded, Expected: expected, Findings: sorted,
		Created: []report.Object{
			{Object: preflight.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: "openshift-etcd", Name: "quorum-0123456789"}},
			{Object: preflight.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: "openshift-etcd", Name: "space-0123456789"}},
			{Object: preflight.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "quorum-0123456789"}},
		},
		CVO: report.CVO{Accepts: &refuses, Reason: "PreconditionChecks", Message: "an admin ack is missing"},
	}
}

func ready() report.Report {
	doc := blocked()
	doc.Expected = verdict.Expectation{Checks: 1, Reported: 1}
	doc.Verdict, doc.Findings = verdict.Fold([]finding.Finding{
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("NothingToAcknowledge"), "").Named("AdminAck").From(finding.SourceGate),
	}, doc.Expected, verdict.Policy{})
	doc.CVO, doc.Created = report.CVO{Reason: "NotEvaluated"}, []report.Object{}
	start := finding.Change("oc adm upgrade --to 4.19.0").Start()
	start.Command = "oc adm upgrade --to 4.19.0"
	doc.Actions = []finding.Action{start}
	doc.Duration = &report.Duration{
		ControlPlane: report.Range{Low: 75, Expected: 105, High: 180}, Total: report.Range{Low: 75, Expected: 120, High: 210},
		Basis: []string{"The numbers come from the documentation."},
	}
	return doc
}

// unsampled is a report of a run that could not store a baseline.
func unsampled() report.Report {
	decided := ready()
	decided.Notices = []string{"no baseline is stored, so the state after the update cannot be compared with that before it: the API " +
		"server is overloaded"}
	return decided
}

// narrowed is Ready for a request that left something out.
func narrowed() report.Report {
	doc := ready()
	doc.Actions = nil
	doc.Verdict.Narrowed = []string{"alert KubePodCrashLooping", "alerts in namespace build", "check Etcd.Quorum"}
	return doc
}

func forced() report.Report {
	doc := blocked()
	doc.Removal = &report.Removal{Deleted: doc.Created[1:], Left: doc.Created[:1]}
	doc.Target.Verified, doc.Target.Signers = false, []string{}
	doc.Run.Phase = report.PhaseInterrupted
	doc.Verdict, doc.Findings = verdict.Fold([]finding.Finding{
		finding.Fail(finding.ReportedReason("NoSignature"), "no signature").Named("ReleaseSignature").From(finding.SourceSignature),
	}, doc.Expected, verdict.Policy{Force: true, ForceReason: "CVE-2026-1234 must be fixed today"})
	return doc
}

// detached is the report of a run that was detached from while a check ran.
func detached() report.Report {
	doc := blocked()
	doc.Run.Phase, doc.Run.Detached = report.PhaseInterrupted, true
	doc.Expected = verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"Etcd.Quorum"}}
	attach := finding.Attach(doc.Run.ID)
	attach.Command = "oc preflight attach " + doc.Run.ID
	doc.Actions = []finding.Action{attach}
	doc.Verdict, doc.Findings = verdict.Fold([]finding.Finding{
		finding.Unknown(finding.ReportedReason("Interrupted"),
			"context canceled").Named("Etcd.Quorum").From(finding.SourceJob).Remedy("Attach to the run, which continues the check.").Do(attach),
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"), "").Named("Etcd.Space").From(finding.SourceJob),
	}, doc.Expected, verdict.Policy{})
	return doc
}

// running is the report of a run in progress, of which one check has failed.
func running() report.Report {
	doc := blocked()
	doc.Run.Phase, doc.Run.CompletionTime = report.PhaseRunning, ""
	doc.Target.Verified, doc.Target.Signers = false, []string{}
	doc.CVO, doc.Created = report.CVO{}, []report.Object{}
	doc.Standing = &report.Standing{Time: "2026-11-21T08:00:05Z", Holder: "laptop_3"}
	doc.Expected = verdict.Expectation{Checks: 3, Reported: 1, Missing: []string{"Etcd.Quorum", "Etcd.Space"}}
	doc.Verdict, doc.Findings = verdict.Fold([]finding.Finding{
		finding.Fail(finding.ReportedReason("WeakKey"), "1024 bits").Named("ClusterIngressOperator.DefaultCertificate").From(finding.SourceJob),
	}, doc.Expected, verdict.Policy{})
	return doc
}

// begun is the report of a run of which no check has reported.
func begun() report.Report {
	doc := running()
	var missing []string
	for i := range 40 {
		missing = append(missing, fmt.Sprintf("Component%02d.LookAtEverything", i))
	}
	doc.Expected = verdict.Expectation{Checks: len(missing), Missing: missing}
	doc.Verdict, doc.Findings = verdict.Fold(nil, doc.Expected, verdict.Policy{})
	return doc
}

func canceled() report.Report {
	doc := running()
	doc.Run.Phase, doc.Run.CompletionTime = report.PhaseCanceled, "2026-11-21T08:00:09Z"
	doc.Standing = nil
	return doc
}

// outdated is a Ready verdict that no longer holds, for many reasons.
func outdated() report.Report {
	doc := ready()
	doc.Actions = nil
	doc.Standing = &report.Standing{Time: "2026-11-23T08:00:00Z", Ended: []string{"it was valid until 2026-11-22T08:00:00Z"}}
	for i := range 12 {
		doc.Standing.Ended = append(doc.Standing.Ended, fmt.Sprintf("Node worker-%d has changed", i))
	}
	return doc
}

// current returns doc while its verdict is valid.
func current() report.Report {
	doc := ready()
	doc.Standing = &report.Standing{Time: "2026-11-21T09:00:00Z"}
	return doc
}

// guarded returns doc for a cluster with enabled switches.
func guarded() report.Report {
	doc := current()
	doc.Switches = []report.Switch{
		{Name: "admission", Mode: "Deny", Limit: "denies the selection of each target", WithoutController: "the last verdicts stay"},
		{Name: "alert", Limit: "advice only", WithoutController: "another alert fires"},
	}
	return doc
}

// judged returns doc after its update was judged.
func judged() report.Report {
	doc := outdated()
	doc.AfterUpdate = &report.AfterUpdate{
		Decision: "Regressed", Message: "2 problems that the cluster did not have before the update",
		Time: "2026-11-21T12:00:00Z",
	}
	return doc
}

// abandoned is a run in progress that no process holds.
func abandoned() report.Report {
	doc := begun()
	doc.Expected.Missing = doc.Expected.Missing[:2]
	doc.Standing = &report.Standing{Time: "2026-11-21T08:00:05Z"}
	return doc
}

func TestGolden(t *testing.T) {
	for name, doc := range map[string]report.Report{
		"blocked": blocked(), "ready": ready(), "forced": forced(), "running": running(), "detached": detached(), "begun": begun(),
		"canceled": canceled(),
		"outdated": outdated(), "current": current(), "narrowed": narrowed(), "guarded": guarded(), "left": abandoned(),
		"notice": unsampled(), "judged": judged(),
	} {
		for _, output := range []string{"text", "short", "json"} {
			t.Run(name+"."+output, func(t *testing.T) {
				golden.Compare(t, "testdata/"+name+"."+output, encoded(t, output, doc))
			})
		}
	}
	for name, doc := range map[string]report.Report{"blocked": blocked(), "ready": ready(), "running": running(), "outdated": outdated()} {
		for _, output := range []string{"junit", "markdown"} {
			t.Run(name+"."+output, func(t *testing.T) { golden.Compare(t, "testdata/"+name+"."+output, encoded(t, output, doc)) })
		}
	}
	// YAML is made from the same values; one file shows its form.
	t.Run("blocked.yaml", func(t *testing.T) {
		golden.Compare(t, "testdata/blocked.yaml", encoded(t, "yaml", blocked()))
	})
}

// A path of which the first update is Ready for what was asked is no plain Ready either.
func TestNarrowedPath(t *testing.T) {
	made := report.NewPath([]string{"4.18.3", "4.19.0"}, []report.Report{narrowed()})
	text := string(encoded(t, "text", made))
	if !strings.Contains(strings.ToLower(text), "ready for what was asked") || !strings.Contains(text, "alert KubePodCrashLooping") {
		t.Errorf("the path does not state what was left out:\n%s", text)
	}
}

// The command that starts the update is the end of a report that permits it, in every form for people, and no other one
// has it, whatever its actions are.
func TestStart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*report.Report)
		shows  bool
	}{
		"Ready":   {reason: "it permits the update", change: func(*report.Report) {}, shows: true},
		"Current": {reason: "it still permits the update", change: func(r *report.Report) { r.Standing = &report.Standing{} }, shows: true},
		"Outdated": {
			reason: "it no longer holds",
			change: func(r *report.Report) { r.Standing = &report.Standing{Ended: []string{"a newer run"}} },
		},
		"Blocked":   {reason: "a finding blocks", change: func(r *report.Report) { r.Verdict.Decision = verdict.Blocked }},
		"Undecided": {reason: "a check is inconclusive", change: func(r *report.Report) { r.Verdict.Decision = verdict.Undecided }},
		"Provisional": {
			reason: "the cluster does not run the release before",
			change: func(r *report.Report) { r.Verdict.Decision, r.Verdict.Provisional = verdict.NothingKnown, true },
		},
		"Forced":      {reason: "force is no verdict", change: func(r *report.Report) { r.Verdict.Forced = true }},
		"Narrowed":    {reason: "something was left out", change: func(r *report.Report) { r.Verdict.Narrowed = []string{"check Etcd.Quorum"} }},
		"Running":     {reason: "the run has not ended", change: func(r *report.Report) { r.Run.Phase = report.PhaseRunning }},
		"Interrupted": {reason: "the run was interrupted", change: func(r *report.Report) { r.Run.Phase = report.PhaseInterrupted }},
	} {
		t.Run(name, func(t *testing.T) {
			doc := ready()
			tc.change(&doc)
			var brief bytes.Buffer
			if err := format.Write(&brief, "text", shown(doc), format.Style{Width: 80}); err != nil {
				t.Fatal(err)
			}
			const command = "oc adm upgrade --to 4.19.0"
			texts := map[string]string{"brief": brief.String()}
			for _, output := range []string{"text", "markdown", "html"} {
				texts[output] = string(encoded(t, output, doc))
			}
			for output, text := range texts {
				if strings.Contains(text, command) != tc.shows {
					t.Errorf("%s: %s shows the command: %t, want %t", tc.reason, output, !tc.shows, tc.shows)
				}
			}
			if tc.shows && !strings.Contains(brief.String(), "\nNext: $ "+command+"\nVerdict: Ready") {
				t.Errorf("%s: the command is not the next step of the ticket:\n%s", tc.reason, &brief)
			}
		})
	}
}

func TestJSONReadsBack(t *testing.T) {
	var written bytes.Buffer
	if err := format.Write(&written, "json", shown(blocked()), format.Style{}); err != nil {
		t.Fatal(err)
	}
	var got report.Report
	if err := json.Unmarshal(written.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(blocked(), got); diff != "" {
		t.Errorf("the report has changed after writing and reading: -want +got:\n%s", diff)
	}
}

func TestNoFormatCanControlTheTerminal(t *testing.T) {
	doc := blocked()
	doc.Findings[0].Message = "before\x1b[2Jafter\u009b31m\r reversed \u202e hidden \u200b"
	doc.Findings[0].Name = "A\x1b]0;title\x07"
	for _, output := range format.Names(shown(doc)) {
		var got bytes.Buffer
		if err := format.Write(&got, output, shown(doc), format.Style{}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(got.String(), "\x1b\u009b\r\x07\u202e\u200b") {
			t.Errorf("control characters of a finding reach the terminal in format %s: %q", output, got.String())
		}
		if output != "json" && output != "yaml" {
			continue
		}
		if read, err := report.Read(&got); err != nil || read.Findings[0].Message != doc.Findings[0].Message {
			t.Errorf("format %s changes a message: %q, %v", output, read.Findings[0].Message, err)
		}
	}
}

func TestUnknownFormatNamesTheOthers(t *testing.T) {
	err := format.Write(&bytes.Buffer{}, "xml", shown(blocked()), format.Style{})
	if err == nil {
		t.Fatal("format xml was accepted")
	}
	for _, want := range append(format.Names(shown(blocked())), `"xml"`) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
}

func TestNames(t *testing.T) {
	var name bytes.Buffer
	if err := format.Write(&name, "name", shown(blocked()), format.Style{}); err != nil {
		t.Fatal(err)
	}
	if got, want := name.String(), "preflight/"+blocked().Run.ID+"\n"; got != want {
		t.Errorf("the name of a run is %q, want %q", got, want)
	}
	unrecorded := blocked()
	unrecorded.Run.ID = ""
	if err := format.Write(&name, "name", shown(unrecorded), format.Style{}); err == nil {
		t.Error("a run that is not recorded has no name")
	}
	for text, want := range map[string]string{"preflight/3b6f": "3b6f", "3b6f": "3b6f", "update/3b6f": "update/3b6f"} {
		if got := format.BareName(format.RunName, text); got != want {
			t.Errorf("%s without its kind is %q, want %q", text, got, want)
		}
	}
}
