package page_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/records"
)

// ready and blocked record complete runs of the release 4.19.DIGIT.
func (w *world) ready(digit rune) string {
	return w.Completed(digit, records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
}

func (w *world) blocked(digit rune) string {
	return w.Completed(digit, records.Report(records.Failed("Etcd.Quorum", "QuorumLost")), w.Fingerprint())
}

// updated completes an update to 4.19.1, about which a run has a judgement.
func (w *world) updated(id string, decision afterupdate.Decision) {
	w.tb.Helper()
	completed := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	started := completed.Add(-time.Hour)
	w.state.Past = nil
	if err := openshift.Complete(w.tb.Context(), w.server.Config(), openshift.Completion{Version: "4.19.1", Image: records.Image('1'), Started: started, Completed: completed}); err != nil {
		w.tb.Fatal(err)
	}
	judged := afterupdate.Report{
		Decision: decision, Message: "2 problems that the cluster did not have before the update", Cluster: report.Cluster{ID: string(openshift.ClusterID)},
		Update:  afterupdate.Update{From: "4.18.3", To: "4.19.1", Image: records.Image('1'), StartTime: started.Format(time.RFC3339), CompletionTime: completed.Format(time.RFC3339)},
		Samples: afterupdate.Samples{Number: 3, First: completed.Format(time.RFC3339), Last: completed.Add(time.Minute).Format(time.RFC3339)},
		Regressions: []afterupdate.Regression{{
			Name: "RouteNotAdmitted", Object: finding.Object{Kind: "Route", Namespace: "shop", Name: "<script>alert(1)</script>"}, Was: "admitted", Is: "not admitted",
			Command: "oc describe route -n shop front",
		}},
		Counts: afterupdate.Counts{Regressions: 1},
	}
	if err := baselinestore.New(w.Client).PutJudgement(w.tb.Context(), id, judged); err != nil {
		w.tb.Fatal(err)
	}
}

// edit changes the header of a recorded run.
func (w *world) edit(id string) {
	w.tb.Helper()
	maps := w.Client.CoreV1().ConfigMaps(record.Namespace)
	listed, err := maps.List(w.tb.Context(), metav1.ListOptions{LabelSelector: record.Label + "=" + id})
	if err != nil || len(listed.Items) != 1 {
		w.tb.Fatalf("%d headers: %v", len(listed.Items), err)
	}
	header := &listed.Items[0]
	for key, text := range header.Data {
		header.Data[key] = strings.ReplaceAll(text, `"Blocked"`, `"Ready"`)
	}
	header.Annotations = map[string]string{"edited": "yes"}
	for key := range header.Data {
		header.Data[key] = strings.Replace(header.Data[key], "4.18.3", "4.18.2", 1)
	}
	if _, err := maps.Update(w.tb.Context(), header, metav1.UpdateOptions{}); err != nil {
		w.tb.Fatal(err)
	}
}

// The page shows what is recorded, as it is worth now.
func TestPage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		make   func(w *world)
		status int
		// want are parts of the page in their order, and unwanted are none.
		want, unwanted []string
	}{
		"None":    {reason: "the first verdict takes a command", make: func(*world) {}, want: []string{"Cluster: " + string(openshift.ClusterID) + ", as of ", "No verdict", "oc preflight run --to-latest"}},
		"Ready":   {reason: "the verdict", make: func(w *world) { w.ready('1') }, want: []string{"Ready", "This cluster can be updated to 4.19.1", "oc preflight status"}, unwanted: []string{"oc preflight run"}},
		"Blocked": {reason: "the verdict with its finding, and the run that follows its remedy", make: func(w *world) { w.blocked('1') }, want: []string{"Blocked", "Do not update this cluster to 4.19.1", "Etcd.Quorum", "oc preflight run --to 4.19.1", "oc preflight status"}},
		"Expired": {
			reason: "its time has ended", make: func(w *world) {
				decided := records.Report(records.Passed("Etcd.Quorum"))
				decided.Verdict.ValidUntil = "2020-01-01T00:00:00Z"
				w.Completed('1', decided, w.Fingerprint())
			}, want: []string{"Outdated", "was Ready, and no longer holds", "it was valid until 2020-01-01T00:00:00Z", "oc preflight run --to 4.19.1"},
		},
		"Changed": {
			reason: "the cluster has changed", make: func(w *world) {
				w.ready('1')
				w.state.Operators = []configv1.ClusterOperator{{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}, Status: configv1.ClusterOperatorStatus{Versions: openshift.OperatorVersions("4.18.9")}}}
				w.present()
			}, want: []string{"Outdated", "no longer holds"},
		},
		"Superseded": {reason: "the newest run of a target counts", make: func(w *world) { w.ready('1'); w.NextSecond(); w.blocked('1') }, want: []string{"Blocked"}, unwanted: []string{"can be updated"}},
		"Newest":     {reason: "without a selected target, the newest one", make: func(w *world) { w.blocked('2'); w.NextSecond(); w.ready('1') }, want: []string{"can be updated to 4.19.1", "oc preflight history"}, unwanted: []string{"Blocked"}},
		"Selected": {
			reason: "the selected target matters, not the newest run", make: func(w *world) {
				w.blocked('2')
				w.NextSecond()
				w.ready('1')
				w.state.Desired = &configv1.Update{Version: "4.19.2", Image: records.Image('2')}
				w.present()
			}, want: []string{"Blocked", "Do not update this cluster to 4.19.2"}, unwanted: []string{"can be updated"},
		},
		"SelectedWithout": {
			reason: "a verdict on another target is none on the selected one", make: func(w *world) {
				w.ready('1')
				w.state.Desired = &configv1.Update{Version: "4.19.2", Image: records.Image('2')}
				w.present()
			}, want: []string{"No verdict", "The update to 4.19.2 is selected", "oc preflight run --to 4.19.2"}, unwanted: []string{"can be updated"},
		},
		"Running": {
			reason: "a run in progress is none that has ended", make: func(w *world) {
				w.Detached('1', []string{"Etcd.Quorum", "Etcd.Space"}, records.Result("Etcd.Quorum", records.Passed("Etcd.Quorum")))
			}, want: []string{"In progress: 4.18.3 to 4.19.1", "1 of 2 reported so far", "oc preflight attach", "No verdict"}, unwanted: []string{"can be updated"},
		},
		"RunningAgain": {
			reason: "the last verdict stands beside the run in progress", make: func(w *world) { w.blocked('1'); w.Detached('1', []string{"Etcd.Quorum"}) },
			want: []string{"In progress:", "0 of 1 reported so far", "Do not update this cluster to 4.19.1"},
		},
		"Edited": {
			reason: "a record that was edited has no verdict", make: func(w *world) { w.edit(w.blocked('1')) },
			want: []string{"Undecided", "UnauthenticRecord"}, unwanted: []string{"can be updated", "QuorumLost"},
		},
		"Regressed": {
			reason: "what came of the update comes before the verdict that led to it", make: func(w *world) { w.updated(w.ready('1'), afterupdate.Regressed) },
			want: []string{"After the update", "Regressed", "RouteNotAdmitted", "&lt;script&gt;alert(1)&lt;/script&gt;", "oc describe route -n shop front", "oc preflight after", "Outdated", "ended with the update"}, unwanted: []string{"<script", "oc preflight run --to 4.19.1"},
		},
		"NextUpdate": {
			reason: "the verdict on the next update comes first", make: func(w *world) {
				w.updated(w.ready('1'), afterupdate.Regressed)
				w.NextSecond()
				w.blocked('2')
			}, want: []string{"Do not update this cluster to 4.19.2", "After the update", "Regressed"},
		},
		"Hostile": {
			reason: "what others wrote is a text", make: func(w *world) {
				failed := records.Failed("<img src=x onerror=alert(1)>", "Because")
				failed.Message, failed.Remediation = "<script>alert(1)</script>\x1b[31m", `"><a href="javascript:alert(1)">`
				failed.Actions = []finding.Action{finding.Script("</code></pre><style>*{}</style>")}
				w.Completed('1', records.Report(failed), w.Fingerprint())
			}, want: []string{"&lt;script&gt;alert(1)&lt;/script&gt;"}, unwanted: []string{"<script", "<img", "<a href=\"j", "<style>*", "\x1b"},
		},
		"Unreadable": {
			reason: "what cannot be read is not shown as none", make: func(w *world) {
				w.ready('1')
				w.server.Deny(func(_ string, asked apiserver.Request) bool { return asked.Resource == "configmaps" })
			}, status: 503, want: []string{"Unreadable", "cannot list resource"}, unwanted: []string{"can be updated", "No verdict"},
		},
		"NoVersion": {
			reason: "the selected target is not known", make: func(w *world) {
				w.ready('1')
				w.server.Deny(func(_ string, asked apiserver.Request) bool { return asked.Resource == "clusterversions" })
			}, status: 503, want: []string{"Unreadable"}, unwanted: []string{"can be updated"},
		},
		"NoKey": {
			reason: "without the key no record is authentic", make: func(w *world) {
				w.ready('1')
				w.server.Deny(func(_ string, asked apiserver.Request) bool { return asked.Resource == "secrets" })
			}, want: []string{"Undecided", "UnverifiableRecord"}, unwanted: []string{"can be updated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.make(w)
			got := w.shown(t, max(tc.status, 200))
			rest := got
			for _, part := range tc.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Errorf("%s: the page has no %q in this order:\n%s", tc.reason, part, got[strings.Index(got, "<body"):])
					break
				}
				rest = after
			}
			for _, part := range tc.unwanted {
				if strings.Contains(got[strings.Index(got, "<body"):], part) {
					t.Errorf("%s: the page has %q:\n%s", tc.reason, part, got[strings.Index(got, "<body"):])
				}
			}
		})
	}
}

// A reload shows what was recorded since.
func TestReload(t *testing.T) {
	w := newWorld(t)
	w.ready('1')
	if got := w.shown(t, 200); !strings.Contains(got, "can be updated") {
		t.Fatal(got)
	}
	w.NextSecond()
	w.blocked('1')
	if got := w.shown(t, 200); strings.Contains(got, "can be updated") {
		t.Errorf("a reload shows an earlier verdict:\n%s", got)
	}
}
