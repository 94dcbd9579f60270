package afterview_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/document/afterview"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/golden"
)

// problem is a problem of a reason of the object, which was something before.
func problem(reason string, of finding.Object, is, was string) afterupdate.Regression {
	command := "oc describe " + strings.ToLower(of.Kind)
	if of.Namespace != "" {
		command += " -n " + of.Namespace
	}
	return afterupdate.Regression{
		Name: of.Kind + reason, Object: of, Was: was, Is: reason + ": " + is,
		Since: "2026-11-28T11:00:00Z", Step: "the reboot of node worker-1", Command: command + " " + of.Name,
	}
}

// in is an object of the namespace shop.
func in(kind, name string) finding.Object {
	return finding.Object{Kind: kind, Namespace: "shop", Name: name}
}

func good() afterupdate.Report {
	return afterupdate.Report{
		APIVersion: report.APIVersion, Kind: afterupdate.Kind, Cluster: report.Cluster{ID: "c1", Version: "4.18.2"}, Decision: afterupdate.Good,
		Message: "the update from 4.18.1 to 4.18.2 has settled, and nothing that was good before is bad",
		Update: afterupdate.Update{
			Run: "01234567-89ab-4cde-8f01-23456789abcd", From: "4.18.1", To: "4.18.2", StartTime: "2026-11-28T09:00:00Z",
			CompletionTime: "2026-11-28T10:00:00Z", SettledTime: "2026-11-28T11:00:00Z",
		},
		Baseline:    &afterupdate.Baseline{Time: "2026-11-28T08:00:00Z", Objects: 104},
		Samples:     afterupdate.Samples{Number: 2, First: "2026-11-28T11:50:00Z", Last: "2026-11-28T12:00:00Z"},
		Regressions: []afterupdate.Regression{}, Counts: afterupdate.Counts{Good: 104}, NotCovered: afterupdate.NotCovered(),
	}
}

func regressed() afterupdate.Report {
	made := good()
	made.Decision, made.Message = afterupdate.Regressed, "2 problems that the cluster did not have before the update"
	made.Update.Retargeted = []string{"4.18.2-rc.1"}
	made.Regressions = []afterupdate.Regression{
		problem("CrashLoopBackOff", in("Deployment", "web"), "pod web-1 has a container that waits: CrashLoopBackOff", "good: 3 of 3 ready"),
		problem("NotReady", finding.Object{Kind: "Node", Name: "worker-1"}, "KubeletNotReady", "good"),
	}
	made.Pending = []afterupdate.Regression{problem("NotAdmitted", in("Route", "web"), "router default has not admitted it", "good")}
	made.Unchanged = []afterupdate.Regression{problem("Unavailable", in("Deployment", "old"), "0 of 1 pods are ready",
		"CrashLoopBackOff, Unavailable")}
	made.Excused = []afterupdate.Regression{problem("ImagePullBackOff", in("Deployment", "new"),
		"pod new-1 has a container that waits: ImagePullBackOff", "it did not exist: it was created since")}
	made.Unattributed = []afterupdate.Regression{problem("NoReadyEndpoints", in("Service", "cart"), "none of its endpoints is ready",
		"unknown: the baseline lacks objects of this kind")}
	made.Counts = afterupdate.Counts{Regressions: 2, Pending: 1, Unchanged: 1, Excused: 1, Unattributed: 1, Good: 98}
	made.Notices = []string{"paused MachineConfigPools are left out, and their nodes are not updated: infra"}
	made.Unread = []string{"Alert: the monitoring was not read"}
	return made
}

func undecided() afterupdate.Report {
	made := good()
	made.Decision, made.Message = afterupdate.Undecided,
		"there is no baseline (no run has stored one), so it is unknown whether the failing objects were good before"
	made.Baseline, made.Update.Run = nil, ""
	return made
}

func settling() afterupdate.Report {
	made := good()
	made.Decision, made.Update.SettledTime = afterupdate.Settling, ""
	made.Waiting = []string{"MachineConfigPools that are not updated: worker (2 of 3 nodes)"}
	made.Message = "the rollout waits: " + made.Waiting[0]
	return made
}

func TestGolden(t *testing.T) {
	next := map[string]string{
		"settling":  "Wait for the decision: oc preflight after --watch",
		"undecided": "The next run stores a baseline: oc preflight run",
	}
	for name, made := range map[string]afterupdate.Report{
		"good": good(), "regressed": regressed(), "undecided": undecided(),
		"settling": settling(),
	} {
		for _, output := range []string{"text", "wide", "markdown", "html", "json"} {
			if output != "text" && name != "regressed" {
				continue // one of them has all parts
			}
			t.Run(name+"."+output, func(t *testing.T) {
				var got bytes.Buffer
				if err := format.Write(&got, output, afterview.Report{Report: made, Next: next[name]}, format.Style{}); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, "testdata/"+name+"."+output, got.Bytes())
			})
		}
	}
}
