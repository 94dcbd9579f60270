package diff_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/report/diff"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/golden"
)

const (
	firstRun  = "01234567-89ab-4cde-8f01-23456789abcd"
	secondRun = "fedcba98-7654-4321-8000-0123456789ab"
)

// found is a report with nothing but these findings.
func found(id string, findings ...finding.Finding) report.Report {
	return report.Report{Run: report.Run{ID: id, Phase: report.PhaseComplete}, Findings: findings}
}

func etcd(outcome preflight.Outcome, reason, message string, objects ...preflight.Object) finding.Finding {
	return finding.Reported(gap.Proven("a test"), outcome, finding.ReportedReason(reason), "%s",
		message).About(objects...).Named("Etcd.Quorum").From(finding.SourceJob)
}

func node(name string) preflight.Object {
	return preflight.Object{APIVersion: "v1", Kind: "Node", Name: name}
}

func TestCompare(t *testing.T) {
	fail := etcd(preflight.Fail, "NoQuorum", "one of three members is down")
	for name, tc := range map[string]struct {
		reason        string
		before, after []finding.Finding
		want          string
	}{
		"Same": {reason: "the finding is unchanged", before: []finding.Finding{fail}, after: []finding.Finding{fail}, want: "same 1"},
		"New":  {reason: "the finding did not exist", after: []finding.Finding{fail}, want: "new -/NoQuorum"},
		"PassedBefore": {
			reason: "a pass became a failure",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "")}, after: []finding.Finding{fail}, want: "new Passed/NoQuorum",
		},
		"Gone": {reason: "the check does not run or has no finding", before: []finding.Finding{fail}, want: "fixed NoQuorum/-"},
		"Passes": {
			reason: "the check passes", before: []finding.Finding{fail}, after: []finding.Finding{etcd(preflight.Pass, "Passed", "")},
			want: "fixed NoQuorum/Passed",
		},
		"Skipped": {
			reason: "a skipped check does not imply a fix",
			before: []finding.Finding{fail}, after: []finding.Finding{etcd(preflight.Skipped, "NotProvided", "")},
			want: "changed NoQuorum/NotProvided",
		},
		"NoLongerChecked": {
			reason: "a pass that is no longer checked", before: []finding.Finding{etcd(preflight.Pass, "Passed", "")},
			after: []finding.Finding{etcd(preflight.Skipped, "NotProvided", "")}, want: "changed Passed/NotProvided",
		},
		"Outcome": {
			reason: "worse", before: []finding.Finding{etcd(preflight.Warn, "NoQuorum", "m")},
			after: []finding.Finding{etcd(preflight.Fail, "NoQuorum", "m")}, want: "changed NoQuorum/NoQuorum",
		},
		"Reason": {
			reason: "another cause", before: []finding.Finding{fail},
			after: []finding.Finding{etcd(preflight.Fail, "Full", fail.Message)}, want: "changed NoQuorum/Full",
		},
		"Message": {
			reason: "another member", before: []finding.Finding{fail},
			after: []finding.Finding{etcd(preflight.Fail, "NoQuorum", "two of three")}, want: "changed NoQuorum/NoQuorum",
		},
		"MessageOfAPass": {
			reason: "a pass needs no attention",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "3 members")},
			after:  []finding.Finding{etcd(preflight.Pass, "Passed", "5 members")}, want: "same 1",
		},
		"Accepted": {
			reason: "an acceptance may change the decision",
			before: []finding.Finding{fail}, after: []finding.Finding{bypassed(fail)}, want: "changed NoQuorum/NoQuorum",
		},
		"Added": {
			reason: "a check of the new release that passes",
			after:  []finding.Finding{etcd(preflight.Pass, "Passed", "")}, want: "added Etcd.Quorum",
		},
		"Dropped": {
			reason: "a check that passed and no longer exists",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "")}, want: "dropped Etcd.Quorum",
		},
		"Source": {
			reason: "another source is another finding", before: []finding.Finding{fail}, after: []finding.Finding{sourced(fail)},
			want: "new -/NoQuorum fixed NoQuorum/-",
		},
		"RunNames": {
			reason: "names and times of the run are ignored",
			before: []finding.Finding{ofRun("0123456789", "x7k2p", firstRun)}, after: []finding.Finding{ofRun("fedcba9876", "bbbbb", secondRun)},
			want: "same 1",
		},
		"TwoOfOneName": {
			reason: "findings of one name are matched by their objects",
			before: []finding.Finding{etcd(preflight.Fail, "Down", "a", node("a")), etcd(preflight.Fail, "Down", "b", node("b"))},
			after:  []finding.Finding{etcd(preflight.Fail, "Down", "b", node("b"))}, want: "fixed Down/- same 1",
		},
		"ReasonBeforeRest": {
			reason: "findings without a common object are matched by their reason",
			before: []finding.Finding{etcd(preflight.Fail, "Down", "a", node("a")), etcd(preflight.Fail, "Full", "b", node("b"))},
			after:  []finding.Finding{etcd(preflight.Fail, "Full", "c", node("c"))}, want: "fixed Down/- changed Full/Full",
		},
		"ObjectBeforeReason": {
			reason: "findings of one object are compared first",
			before: []finding.Finding{etcd(preflight.Fail, "Down", "a", node("a")), etcd(preflight.Fail, "Full", "b", node("b"))},
			after:  []finding.Finding{etcd(preflight.Fail, "Full", "a", node("a"))}, want: "fixed Full/- changed Down/Full",
		},
		"FutureOutcome": {
			reason: "an outcome of a newer version is not a pass",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "")}, after: []finding.Finding{etcd("Baffled", "Odd", "")},
			want: "new Passed/Odd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // in either order
				if got := summary(diff.Compare(found(firstRun, tc.before...), found(secondRun, tc.after...))); got != tc.want {
					t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
				}
				slices.Reverse(tc.before)
				slices.Reverse(tc.after)
			}
		})
	}
}

func bypassed(f finding.Finding) finding.Finding {
	return f.Bypassed(finding.Bypass{By: finding.ByAcceptedRisk, Detail: "spec.desiredUpdate.acceptRisks"})
}

func sourced(f finding.Finding) finding.Finding {
	return f.From(finding.SourceHealth)
}

// ofRun is one finding as different runs report it.
func ofRun(suffix, pod, id string) finding.Finding {
	job := "quorum-" + suffix
	f := etcd(preflight.Unknown, "NoResult", "run "+id+": pod "+job+"-"+pod+" of Job "+job+" began at "+suffix+"T",
		preflight.Object{APIVersion: "v1", Kind: "Pod", Namespace: "openshift-etcd", Name: job + "-" + pod})
	f.Job = &finding.Job{Name: job, StartTime: suffix + "T"}
	return f
}

// summary lists the changes in one line.
func summary(changes diff.Changes) string {
	text := ""
	for _, list := range []struct {
		name    string
		changes []diff.Change
	}{{"new", changes.New}, {"fixed", changes.Fixed}, {"changed", changes.Changed}} {
		for _, change := range list.changes {
			text += " " + list.name + " " + reasonOf(change.Before) + "/" + reasonOf(change.After)
		}
	}
	for _, name := range changes.Added {
		text += " added " + name
	}
	for _, name := range changes.Dropped {
		text += " dropped " + name
	}
	if changes.Same > 0 {
		text += " same " + string(rune('0'+changes.Same))
	}
	return text[min(1, len(text)):]
}

func reasonOf(f *finding.Finding) string {
	if f == nil {
		return "-"
	}
	return f.Reason
}

// before is a Blocked report with a finding of every kind.
func before() report.Report {
	ack := finding.Fail(finding.ReportedReason("AdminAckRequired"), "Remove <v1beta1> & others.").Remedy("Acknowledge the gate.").
		Do(finding.Acknowledge("ack-4.18-api-removals")).Named("AdminAck-ack-4.18-api-removals").From(finding.SourceGate)
	return decided(report.Report{
		Run:     report.Run{ID: firstRun, StartTime: "2026-11-21T08:00:00Z", CompletionTime: "2026-11-21T08:00:09Z", Phase: report.PhaseComplete},
		Cluster: report.Cluster{ID: "c1", Version: "4.18.3"},
		Target:  report.Target{Version: "4.19.0", Image: "registry/release@sha256:bb"},
	},
		ack, certificate("preflight-0123456789"),
		finding.Warn(finding.ReportedReason("Leftover"), "unused").Named("MachineConfigOperator.IgnitionVersion").From(finding.SourceJob),
		finding.Unknown(finding.ReportedReason("ImagePull"), "the image cannot be pulled").Named("Etcd.Quorum").From(finding.SourceJob),
		finding.Fail(finding.ReportedReason("Full"), "the disk is full").Named("Etcd.Space").From(finding.SourceJob),
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"),
			"").Named("CloudCredentialOperator.Permissions").From(finding.SourceJob),
	)
}

// certificate is a finding of a Job of either run.
func certificate(job string) finding.Finding {
	f := finding.Fail(finding.ReportedReason("WeakKey"), "the certificate has an RSA key of 1024 bits").Remedy("Replace it.").
		About(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: "openshift-ingress", Name: "router-certs"}).
		Named("ClusterIngressOperator.DefaultCertificate").From(finding.SourceJob)
	f.Job = &finding.Job{Namespace: "openshift-ingress-operator", Name: job}
	return f
}

// after is the same cluster one day later: the gate is acknowledged, etcd is worse,
// another Job reports the same certificate, and the next patch release has other
// checks.
func after() report.Report {
	first := before()
	return decided(report.Report{
		Run: report.Run{
			ID: secondRun, StartTime: "2026-11-22T08:00:00Z", CompletionTime: "2026-11-22T08:00:07Z",
			Phase: report.PhaseComplete,
		},
		Cluster: first.Cluster,
		Target:  report.Target{Version: "4.19.1", Image: "registry/release@sha256:cc"},
	},
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("Acknowledged"),
			"").Named("AdminAck-ack-4.18-api-removals").From(finding.SourceGate),
		certificate("preflight-fedcba9876"),
		finding.Warn(finding.ReportedReason("Leftover"),
			"unused for long").Named("MachineConfigOperator.IgnitionVersion").From(finding.SourceJob),
		etcd(preflight.Fail, "NoQuorum", "one of three members is down"),
		finding.Warn(finding.ReportedReason("Slow"), "routes are slow").Remedy("Check them.").Named("Network.Routes").From(finding.SourceJob),
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"), "").Named("Storage.Drivers").From(finding.SourceJob),
	)
}

// elsewhere is a forced run on another cluster.
func elsewhere() report.Report {
	r := before()
	r.Cluster.ID = "c2"
	r.Verdict, r.Findings = verdict.Fold(r.Findings, r.Expected, verdict.Policy{Force: true})
	return r
}

// decided completes a report with the verdict on findings.
func decided(r report.Report, findings ...finding.Finding) report.Report {
	r.Expected = verdict.Expectation{Checks: len(findings), Reported: len(findings)}
	r.Verdict, r.Findings = verdict.Fold(findings, r.Expected, verdict.Policy{})
	return r
}

func TestGolden(t *testing.T) {
	for name, changes := range map[string]diff.Changes{
		"changes":         diff.Compare(before(), after()),
		"changes-none":    diff.Compare(before(), before()),
		"changes-cluster": diff.Compare(before(), elsewhere()),
	} {
		for _, output := range []string{"text", "json", "markdown", "html"} {
			t.Run(name+"."+output, func(t *testing.T) {
				var got bytes.Buffer
				if err := format.Write(&got, output, changes, format.Style{}); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, "testdata/"+name+"."+output, got.Bytes())
			})
		}
	}
}

func TestJSONReadsBack(t *testing.T) {
	want := diff.Compare(before(), after())
	var written bytes.Buffer
	if err := format.Write(&written, "json", want, format.Style{}); err != nil {
		t.Fatal(err)
	}
	var got diff.Changes
	if err := json.Unmarshal(written.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A report does not differ from itself, for any content of a stored report.
func FuzzCompare(f *testing.F) {
	for _, seed := range []report.Report{before(), after(), elsewhere()} {
		var written bytes.Buffer
		if err := format.Write(&written, "json", seed, format.Style{}); err != nil {
			f.Fatal(err)
		}
		f.Add(written.Bytes())
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, err := report.Read(bytes.NewReader(stored))
		if err != nil {
			return
		}
		if changes := diff.Compare(r, r); len(changes.New)+len(changes.Fixed)+len(changes.Changed) > 0 {
			t.Errorf("a report differs from itself: %+v", changes)
		}
	})
}
