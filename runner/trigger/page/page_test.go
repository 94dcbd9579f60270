package page_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
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

// Only who may get updatepreflights sees the page, and whatever is not known of a request shows nothing.
func TestWhoSeesThePage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*http.Request)
		fails  string
		status int
		// want is a part of the body, and unwanted is none.
		want, unwanted string
	}{
		"Bearer": {reason: "scripts send the token so", change: bearer(admin), status: 200, want: "No verdict"},
		"LowerCase": {
			reason: "a scheme has no case", change: func(r *http.Request) { r.Header.Set("Authorization", "bearer "+admin) },
			status: 200, want: "No verdict",
		},
		"Basic": {
			reason: "browsers send the token so", change: func(r *http.Request) { r.SetBasicAuth("me", admin) }, status: 200,
			want: "No verdict",
		},
		"NoUser": {
			reason: "the token names the user", change: func(r *http.Request) { r.SetBasicAuth("", admin) }, status: 200,
			want: "No verdict",
		},
		"NoToken": {reason: "a browser that begins", change: func(*http.Request) {}, status: 401, want: "oc whoami -t", unwanted: "No verdict"},
		"Empty":   {reason: "an empty password is no token", change: func(r *http.Request) { r.SetBasicAuth("admin", "") }, status: 401},
		"UserName": {
			reason: "a user name is no token", change: func(r *http.Request) { r.SetBasicAuth(admin, "x") }, status: 401,
			unwanted: admin,
		},
		"Rejected": {
			reason: "the token has expired", change: bearer("<script>expired</script>"), status: 401, want: "does not accept the token",
			unwanted: "expired",
		},
		"Query": {
			reason: "a URL is logged and sent as a referrer",
			change: func(r *http.Request) { r.URL.RawQuery = url.Values{"access_token": {admin}, "token": {admin}}.Encode() }, status: 401,
			unwanted: admin,
		},
		"Cookie": {
			reason: "other sites send it, too",
			change: func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "token", Value: admin}) }, status: 401,
		},
		"Two": {
			reason: "which one counts is not known",
			change: func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + admin, "Bearer " + stranger} }, status: 401,
		},
		"Scheme": {reason: "another scheme", change: func(r *http.Request) { r.Header.Set("Authorization", "Negotiate "+admin) }, status: 401},
		"Header": {reason: "a client does not state its user", change: func(r *http.Request) {
			r.Header.Set("X-Remote-User", "admin")
			r.Header.Set("Impersonate-User", "admin")
		}, status: 401},
		"Denied": {
			reason: "the permission is named, and the name of the user is a text", change: bearer(stranger), status: 403,
			want: "get updatepreflights.preflight.openshift.io", unwanted: "<b>",
		},
		"Grant": {
			reason: "the command has the name as one word", change: bearer(stranger), status: 403,
			want: "oc adm policy add-cluster-role-to-user update-preflight-reader &#39;&lt;b&gt;stranger&lt;/b&gt;&#39;", unwanted: stranger,
		},
		"NoReview": {
			reason: "never open", change: bearer(admin), fails: "tokenreviews", status: 503, want: "could not verify",
			unwanted: "No verdict",
		},
		"NoDecision": {
			reason: "never open", change: bearer(admin), fails: "subjectaccessreviews", status: 503, want: "could not verify",
			unwanted: "No verdict",
		},
		"Post": {reason: "nothing is written", change: func(r *http.Request) { bearer(admin)(r); r.Method = http.MethodPost }, status: 405},
		"Options": {
			reason: "no other origin reads it", change: func(r *http.Request) { bearer(admin)(r); r.Method = http.MethodOptions },
			status: 405,
		},
		"Head": {
			reason: "as GET, without a body", change: func(r *http.Request) { bearer(admin)(r); r.Method = http.MethodHead },
			status: 200,
		},
		"HeadDenied": {reason: "as GET", change: func(r *http.Request) { r.Method = http.MethodHead }, status: 401},
		"Path":       {reason: "there is one page", change: func(r *http.Request) { bearer(admin)(r); r.URL.Path = "/metrics" }, status: 404},
		"Dots": {
			reason: "no file is served", change: func(r *http.Request) { bearer(admin)(r); r.URL.Path = "/../etc/passwd" },
			status: 404,
		},
		"LongHeader": {
			reason: "headers are bounded",
			change: func(r *http.Request) { bearer(admin)(r); r.Header.Set("X-Long", strings.Repeat("x", 17<<10)) }, status: 431,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fails = tc.fails
			got := w.send(t, tc.change)
			if got.StatusCode != tc.status {
				t.Errorf("%s: status %d, want %d", tc.reason, got.StatusCode, tc.status)
			}
			if !strings.Contains(got.body, tc.want) || tc.unwanted != "" && strings.Contains(got.body, tc.unwanted) {
				t.Errorf("%s: want %q and not %q:\n%s", tc.reason, tc.want, tc.unwanted, got.body)
			}
			if challenge := got.Header.Values("WWW-Authenticate"); (tc.status == 401) != (len(challenge) == 2 &&
				strings.HasPrefix(challenge[0], "Basic realm=")) {
				t.Errorf("%s: WWW-Authenticate %q", tc.reason, challenge)
			}
			if (tc.status == 405) != (got.Header.Get("Allow") == "GET, HEAD") {
				t.Errorf("%s: Allow %q", tc.reason, got.Header.Get("Allow"))
			}
			for _, token := range []string{admin, stranger, "expired"} {
				if strings.Contains(w.log.String(), token) {
					t.Errorf("%s: the log has the token %s:\n%s", tc.reason, token, w.log)
				}
			}
			if wrote := w.server.Writes(); slices.ContainsFunc(wrote, func(write string) bool { return strings.Contains(write, "review") }) {
				t.Errorf("%s: writes %q", tc.reason, wrote)
			}
		})
	}
}

// Every response forbids what a browser could do with it.
func TestHeaders(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*http.Request){
		"Page": bearer(admin), "NoToken": func(*http.Request) {}, "Path": func(r *http.Request) { r.URL.Path = "/x" },
		"Method": func(r *http.Request) { r.Method = http.MethodPut },
	} {
		got := w.send(t, change)
		policy := got.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'; ", "; base-uri 'none'", "; form-action 'none'", "; frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q lacks %q", name, policy, part)
			}
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": "",
			"Access-Control-Allow-Origin": "", "Set-Cookie": "",
		} {
			if value := got.Header.Get(header); value != want {
				t.Errorf("%s: %s is %q, want %q", name, header, value, want)
			}
		}
		// Both policies are enforced: with another hash in one of them the page has no style.
		meta, _, _ := strings.Cut(policy, "; frame-ancestors")
		if name == "Page" && !strings.Contains(got.body,
			`http-equiv="Content-Security-Policy" content="`+strings.ReplaceAll(meta, "'", "&#39;")+`"`) {
			t.Errorf("the page does not have the policy %q:\n%.600s", meta, got.body)
		}
	}
}

// Each request is decided anew, by its own token.
func TestDecisions(t *testing.T) {
	w := newWorld(t)
	status := func(token string) int { return w.send(t, bearer(token)).StatusCode }
	expect := func(reason string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: status %d, want %d", reason, got, want)
		}
	}
	expect("the permission exists", status(admin), 200)
	expect("another user has another decision", status(stranger), 403)
	want := []string{
		"tokenreviews " + admin, "subjectaccessreviews admin admins get updatepreflights.preflight.openshift.io",
		"tokenreviews " + stranger, "subjectaccessreviews <b>stranger</b> admins get updatepreflights.preflight.openshift.io",
	}
	if !slices.Equal(w.asked, want) {
		t.Errorf("the reviews are %q, want %q", w.asked, want)
	}
	w.may["admin"] = false
	expect("the permission was withdrawn", status(admin), 403)
	w.may["admin"] = true
	expect("it was granted", status(admin), 200)
	delete(w.users, admin)
	expect("the token was revoked", status(admin), 401)
	w.users[admin] = "admin"
	w.fails = "tokenreviews"
	expect("it cannot be asked", status(admin), 503)
	w.fails = ""
	expect("it can be asked again", status(admin), 200)
}

// More requests at a time than the limit are refused at once, and the others are answered.
func TestConcurrentRequests(t *testing.T) {
	w := newWorld(t)
	w.mutex.Lock() // reviews wait
	statuses := make(chan response, 20)
	var all sync.WaitGroup
	for range cap(statuses) {
		all.Go(func() { statuses <- w.send(t, bearer(admin)) })
	}
	refused, answered := 0, 0
	for refused < cap(statuses)-8 {
		if got := <-statuses; got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != "1" {
			t.Errorf("status %d, Retry-After %q", got.StatusCode, got.Header.Get("Retry-After"))
		}
		refused++
	}
	w.mutex.Unlock()
	all.Wait()
	close(statuses)
	for got := range statuses {
		if got.StatusCode == http.StatusOK {
			answered++
		}
	}
	if answered != 8 {
		t.Errorf("%d requests were answered, want 8", answered)
	}
}

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
	if err := openshift.Complete(w.tb.Context(), w.server.Config(),
		openshift.Completion{Version: "4.19.1", Image: records.Image('1'), Started: started, Completed: completed}); err != nil {
		w.tb.Fatal(err)
	}
	judged := afterupdate.Report{
		Decision: decision, Message: "2 problems that the cluster did not have before the update",
		Cluster: report.Cluster{ID: string(openshift.ClusterID)},
		Update: afterupdate.Update{
			From: "4.18.3", To: "4.19.1", Image: records.Image('1'), StartTime: started.Format(time.RFC3339),
			CompletionTime: completed.Format(time.RFC3339),
		},
		Samples: afterupdate.Samples{Number: 3, First: completed.Format(time.RFC3339), Last: completed.Add(time.Minute).Format(time.RFC3339)},
		Regressions: []afterupdate.Regression{{
			Name: "RouteNotAdmitted", Object: finding.Object{Kind: "Route", Namespace: "shop", Name: "<script>alert(1)</script>"}, Was: "admitted",
			Is:      "not admitted",
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
		"None": {
			reason: "the first verdict takes a command", make: func(*world) {},
			want: []string{"Cluster: " + string(openshift.ClusterID) + ", as of ", "No verdict", "oc preflight run --to-latest"},
		},
		"Ready": {
			reason: "the verdict", make: func(w *world) { w.ready('1') },
			want: []string{"Ready", "This cluster can be updated to 4.19.1", "oc preflight status"}, unwanted: []string{"oc preflight run"},
		},
		"Blocked": {
			reason: "the verdict with its finding, and the run that follows its remedy", make: func(w *world) { w.blocked('1') },
			want: []string{"Blocked", "Do not update this cluster to 4.19.1", "Etcd.Quorum", "oc preflight run --to 4.19.1", "oc preflight status"},
		},
		"Expired": {
			reason: "its time has ended", make: func(w *world) {
				decided := records.Report(records.Passed("Etcd.Quorum"))
				decided.Verdict.ValidUntil = "2020-01-01T00:00:00Z"
				w.Completed('1', decided, w.Fingerprint())
			}, want: []string{
				"Outdated", "was Ready, and no longer holds", "it was valid until 2020-01-01T00:00:00Z",
				"oc preflight run --to 4.19.1",
			},
		},
		"Changed": {
			reason: "the cluster has changed", make: func(w *world) {
				w.ready('1')
				w.state.Operators = []configv1.ClusterOperator{{
					ObjectMeta: metav1.ObjectMeta{Name: "etcd"},
					Status:     configv1.ClusterOperatorStatus{Versions: openshift.OperatorVersions("4.18.9")},
				}}
				w.present()
			}, want: []string{"Outdated", "no longer holds"},
		},
		"Superseded": {
			reason: "the newest run of a target counts", make: func(w *world) { w.ready('1'); w.NextSecond(); w.blocked('1') },
			want: []string{"Blocked"}, unwanted: []string{"can be updated"},
		},
		"Newest": {
			reason: "without a selected target, the newest one", make: func(w *world) { w.blocked('2'); w.NextSecond(); w.ready('1') },
			want: []string{"can be updated to 4.19.1", "oc preflight history"}, unwanted: []string{"Blocked"},
		},
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
			}, want: []string{"No verdict", "The update to 4.19.2 is selected", "oc preflight run --to 4.19.2"},
			unwanted: []string{"can be updated"},
		},
		"Running": {
			reason: "a run in progress is none that has ended", make: func(w *world) {
				w.Detached('1', []string{"Etcd.Quorum", "Etcd.Space"}, records.Result("Etcd.Quorum", records.Passed("Etcd.Quorum")))
			}, want: []string{"In progress: 4.18.3 to 4.19.1", "1 of 2 reported so far", "oc preflight attach", "No verdict"},
			unwanted: []string{"can be updated"},
		},
		"RunningAgain": {
			reason: "the last verdict stands beside the run in progress",
			make:   func(w *world) { w.blocked('1'); w.Detached('1', []string{"Etcd.Quorum"}) },
			want:   []string{"In progress:", "0 of 1 reported so far", "Do not update this cluster to 4.19.1"},
		},
		"Edited": {
			reason: "a record that was edited has no verdict", make: func(w *world) { w.edit(w.blocked('1')) },
			want: []string{"Undecided", "UnauthenticRecord"}, unwanted: []string{"can be updated", "QuorumLost"},
		},
		"Regressed": {
			reason: "what came of the update comes before the verdict that led to it",
			make:   func(w *world) { w.updated(w.ready('1'), afterupdate.Regressed) },
			want: []string{
				"After the update", "Regressed", "RouteNotAdmitted", "&lt;script&gt;alert(1)&lt;/script&gt;",
				"oc describe route -n shop front", "oc preflight after", "Outdated", "ended with the update",
			},
			unwanted: []string{"<script", "oc preflight run --to 4.19.1"},
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
