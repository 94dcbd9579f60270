package diff_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
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
	return finding.Finding{Finding: preflight.Finding{Name: "Etcd.Quorum", Outcome: outcome, Reason: reason, Message: message, Objects: objects}, Source: finding.SourceJob}
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
		"Same": {reason: "nothing happened", before: []finding.Finding{fail}, after: []finding.Finding{fail}, want: "same 1"},
		"New":  {reason: "it was not there", after: []finding.Finding{fail}, want: "new -/NoQuorum"},
		"PassedBefore": {
			reason: "what passed and fails needs somebody now",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "")}, after: []finding.Finding{fail}, want: "new Passed/NoQuorum",
		},
		"Gone":   {reason: "the check is not asked any more, or finds nothing", before: []finding.Finding{fail}, want: "fixed NoQuorum/-"},
		"Passes": {reason: "it was put right", before: []finding.Finding{fail}, after: []finding.Finding{etcd(preflight.Pass, "Passed", "")}, want: "fixed NoQuorum/Passed"},
		"Skipped": {
			reason: "not looking is not fixing",
			before: []finding.Finding{fail}, after: []finding.Finding{etcd(preflight.Skipped, "NotProvided", "")}, want: "changed NoQuorum/NotProvided",
		},
		"NotLookedAt": {
			reason: "a pass that is not looked at any more", before: []finding.Finding{etcd(preflight.Pass, "Passed", "")},
			after: []finding.Finding{etcd(preflight.Skipped, "NotProvided", "")}, want: "changed Passed/NotProvided",
		},
		"Outcome": {reason: "worse", before: []finding.Finding{etcd(preflight.Warn, "NoQuorum", "m")}, after: []finding.Finding{etcd(preflight.Fail, "NoQuorum", "m")}, want: "changed NoQuorum/NoQuorum"},
		"Reason":  {reason: "another cause", before: []finding.Finding{fail}, after: []finding.Finding{etcd(preflight.Fail, "Full", fail.Message)}, want: "changed NoQuorum/Full"},
		"Message": {reason: "another member", before: []finding.Finding{fail}, after: []finding.Finding{etcd(preflight.Fail, "NoQuorum", "two of three")}, want: "changed NoQuorum/NoQuorum"},
		"WordsOfAPass": {
			reason: "a pass asks nobody to read it",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "3 members")}, after: []finding.Finding{etcd(preflight.Pass, "Passed", "5 members")}, want: "same 1",
		},
		"Accepted": {
			reason: "the decision changes by it, so it has to be told",
			before: []finding.Finding{fail}, after: []finding.Finding{bypassed(fail)}, want: "changed NoQuorum/NoQuorum",
		},
		"Added": {
			reason: "a check of the new release that passes",
			after:  []finding.Finding{etcd(preflight.Pass, "Passed", "")}, want: "added Etcd.Quorum",
		},
		"Dropped": {
			reason: "a check that passed, and is not made any more",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "")}, want: "dropped Etcd.Quorum",
		},
		"Source": {
			reason: "another source is another finding", before: []finding.Finding{fail}, after: []finding.Finding{sourced(fail)},
			want: "new -/NoQuorum fixed NoQuorum/-",
		},
		"RunNames": {
			reason: "names and times of the run are no change",
			before: []finding.Finding{ofRun("0123456789", "x7k2p", firstRun)}, after: []finding.Finding{ofRun("fedcba9876", "bbbbb", secondRun)}, want: "same 1",
		},
		"TwoOfOneName": {
			reason: "they are told apart by their objects",
			before: []finding.Finding{etcd(preflight.Fail, "Down", "a", node("a")), etcd(preflight.Fail, "Down", "b", node("b"))},
			after:  []finding.Finding{etcd(preflight.Fail, "Down", "b", node("b"))}, want: "fixed Down/- same 1",
		},
		"ReasonBeforeRest": {
			reason: "one of two went, and the other has other objects",
			before: []finding.Finding{etcd(preflight.Fail, "Down", "a", node("a")), etcd(preflight.Fail, "Full", "b", node("b"))},
			after:  []finding.Finding{etcd(preflight.Fail, "Full", "c", node("c"))}, want: "fixed Down/- changed Full/Full",
		},
		"ObjectBeforeReason": {
			reason: "what is said of one node is about that node",
			before: []finding.Finding{etcd(preflight.Fail, "Down", "a", node("a")), etcd(preflight.Fail, "Full", "b", node("b"))},
			after:  []finding.Finding{etcd(preflight.Fail, "Full", "a", node("a"))}, want: "fixed Full/- changed Down/Full",
		},
		"FutureOutcome": {
			reason: "a word that nobody knows is not a pass",
			before: []finding.Finding{etcd(preflight.Pass, "Passed", "")}, after: []finding.Finding{etcd("Baffled", "Odd", "")}, want: "new Passed/Odd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // whatever the order
				if got := summary(report.Compare(found(firstRun, tc.before...), found(secondRun, tc.after...))); got != tc.want {
					t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
				}
				slices.Reverse(tc.before)
				slices.Reverse(tc.after)
			}
		})
	}
}

func bypassed(f finding.Finding) finding.Finding {
	f.Bypass = &finding.Bypass{By: finding.ByAcceptedRisk, Detail: "--accept"}
	return f
}

func sourced(f finding.Finding) finding.Finding {
	f.Source = finding.SourceHealth
	return f
}

// ofRun is one finding as two runs would tell it.
func ofRun(suffix, pod, id string) finding.Finding {
	job := "quorum-" + suffix
	f := etcd(preflight.Unknown, "NoResult", "run "+id+": pod "+job+"-"+pod+" of Job "+job+" began at "+suffix+"T",
		preflight.Object{APIVersion: "v1", Kind: "Pod", Namespace: "openshift-etcd", Name: job + "-" + pod})
	f.Job = &finding.Job{Name: job, StartTime: suffix + "T"}
	return f
}

// summary says what is different in one line.
func summary(changes report.Changes) string {
	said := ""
	for _, list := range []struct {
		name    string
		changes []report.Change
	}{{"new", changes.New}, {"fixed", changes.Fixed}, {"changed", changes.Changed}} {
		for _, change := range list.changes {
			said += " " + list.name + " " + reasonOf(change.Before) + "/" + reasonOf(change.After)
		}
	}
	for _, name := range changes.Added {
		said += " added " + name
	}
	for _, name := range changes.Dropped {
		said += " dropped " + name
	}
	if changes.Same > 0 {
		said += " same " + string(rune('0'+changes.Same))
	}
	return said[min(1, len(said)):]
}

func reasonOf(f *finding.Finding) string {
	if f == nil {
		return "-"
	}
	return f.Reason
}

// later is what became of the cluster of story a day after.
func later() report.Report {
	told := story()
	told.Run = report.Run{ID: secondRun, StartTime: "2026-11-22T08:00:00Z", CompletionTime: "2026-11-22T08:00:07Z", Phase: report.PhaseComplete, ToolVersion: "v0.1.0"}
	told.Target.Version, told.Target.Image = "4.19.1", "registry/release@sha256:cc"
	var findings []finding.Finding
	for _, f := range told.Findings {
		switch f.Name {
		case "AdminAck-ack-4.18-api-removals":
			f = finding.Finding{Finding: preflight.Finding{Name: f.Name, Outcome: preflight.Pass, Reason: "Acknowledged"}, Source: f.Source}
		case "Etcd.Quorum":
			f.Outcome, f.Reason, f.Message = preflight.Fail, "NoQuorum", "one of three members is down\x1b[2J"
		case "ClusterIngressOperator.DefaultCertificate":
			job := *f.Job
			job.Name, f.Job = "preflight-fedcba9876", &job
		case "Etcd.Space":
			continue
		case "MachineConfigOperator.IgnitionVersion":
			f.Message = "unused for long"
		case "CloudCredentialOperator.Permissions":
			continue
		}
		findings = append(findings, f)
	}
	findings = append(findings,
		finding.Finding{Finding: preflight.Finding{Name: "Network.Routes", Outcome: preflight.Warn, Reason: "Slow", Message: "routes are slow", Remediation: "Look at them."}, Source: finding.SourceJob},
		finding.Finding{Finding: preflight.Finding{Name: "Storage.Drivers", Outcome: preflight.Pass, Reason: "Passed"}, Source: finding.SourceJob})
	told.Verdict, told.Findings = verdict.Fold(findings, told.Expected, verdict.Policy{})
	return told
}

func TestChangesGolden(t *testing.T) {
	elsewhere := ready()
	elsewhere.Cluster.ID = "c2"
	for name, changes := range map[string]report.Changes{
		"changes":         report.Compare(story(), later()),
		"changes-none":    report.Compare(story(), story()),
		"changes-cluster": report.Compare(forced(), elsewhere),
	} {
		for _, format := range report.Formats() {
			t.Run(name+"."+format, func(t *testing.T) {
				var got bytes.Buffer
				if err := report.WriteChanges(&got, format, changes); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+format, got.Bytes())
			})
		}
	}
}

func TestChangesReadBack(t *testing.T) {
	want := report.Compare(story(), later())
	var written bytes.Buffer
	if err := report.WriteChanges(&written, "json", want); err != nil {
		t.Fatal(err)
	}
	var got report.Changes
	if err := json.Unmarshal(written.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := report.WriteChanges(&written, "xml", want); err == nil {
		t.Error("format xml was taken")
	}
}
