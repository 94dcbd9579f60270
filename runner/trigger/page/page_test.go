package page_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
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
		"Bearer":    {reason: "scripts send the token so", change: bearer(admin), status: 200, want: "No verdict"},
		"LowerCase": {reason: "a scheme has no case", change: func(r *http.Request) { r.Header.Set("Authorization", "bearer "+admin) }, status: 200, want: "No verdict"},
		"Basic":     {reason: "browsers send the token so", change: func(r *http.Request) { r.SetBasicAuth("me", admin) }, status: 200, want: "No verdict"},
		"NoUser":    {reason: "the token names the user", change: func(r *http.Request) { r.SetBasicAuth("", admin) }, status: 200, want: "No verdict"},
		"NoToken":   {reason: "a browser that begins", change: func(*http.Request) {}, status: 401, want: "oc whoami -t", unwanted: "No verdict"},
		"Empty":     {reason: "an empty password is no token", change: func(r *http.Request) { r.SetBasicAuth("admin", "") }, status: 401},
		"UserName":  {reason: "a user name is no token", change: func(r *http.Request) { r.SetBasicAuth(admin, "x") }, status: 401, unwanted: admin},
		"Rejected":  {reason: "the token has expired", change: bearer("<script>expired</script>"), status: 401, want: "does not accept the token", unwanted: "expired"},
		"Query":     {reason: "a URL is logged and sent as a referrer", change: func(r *http.Request) { r.URL.RawQuery = url.Values{"access_token": {admin}, "token": {admin}}.Encode() }, status: 401, unwanted: admin},
		"Cookie":    {reason: "other sites send it, too", change: func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "token", Value: admin}) }, status: 401},
		"Two":       {reason: "which one counts is not known", change: func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + admin, "Bearer " + stranger} }, status: 401},
		"Scheme":    {reason: "another scheme", change: func(r *http.Request) { r.Header.Set("Authorization", "Negotiate "+admin) }, status: 401},
		"Header": {reason: "a client does not state its user", change: func(r *http.Request) {
			r.Header.Set("X-Remote-User", "admin")
			r.Header.Set("Impersonate-User", "admin")
		}, status: 401},
		"Denied":     {reason: "the permission is named, and the name of the user is a text", change: bearer(stranger), status: 403, want: "get updatepreflights.preflight.openshift.io", unwanted: "<b>"},
		"Grant":      {reason: "the command has the name as one word", change: bearer(stranger), status: 403, want: "oc adm policy add-cluster-role-to-user update-preflight-reader &#39;&lt;b&gt;stranger&lt;/b&gt;&#39;", unwanted: stranger},
		"NoReview":   {reason: "never open", change: bearer(admin), fails: "tokenreviews", status: 503, want: "could not be asked", unwanted: "No verdict"},
		"NoDecision": {reason: "never open", change: bearer(admin), fails: "subjectaccessreviews", status: 503, want: "could not be asked", unwanted: "No verdict"},
		"Post":       {reason: "nothing is written", change: func(r *http.Request) { bearer(admin)(r); r.Method = http.MethodPost }, status: 405},
		"Options":    {reason: "no other origin reads it", change: func(r *http.Request) { bearer(admin)(r); r.Method = http.MethodOptions }, status: 405},
		"Head":       {reason: "as GET, without a body", change: func(r *http.Request) { bearer(admin)(r); r.Method = http.MethodHead }, status: 200},
		"HeadDenied": {reason: "as GET", change: func(r *http.Request) { r.Method = http.MethodHead }, status: 401},
		"Path":       {reason: "there is one page", change: func(r *http.Request) { bearer(admin)(r); r.URL.Path = "/metrics" }, status: 404},
		"Dots":       {reason: "no file is served", change: func(r *http.Request) { bearer(admin)(r); r.URL.Path = "/../etc/passwd" }, status: 404},
		"LongHeader": {reason: "headers are bounded", change: func(r *http.Request) { bearer(admin)(r); r.Header.Set("X-Long", strings.Repeat("x", 17<<10)) }, status: 431},
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
			if challenge := got.Header.Values("WWW-Authenticate"); (tc.status == 401) != (len(challenge) == 2 && strings.HasPrefix(challenge[0], "Basic realm=")) {
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
		"Page": bearer(admin), "NoToken": func(*http.Request) {}, "Path": func(r *http.Request) { r.URL.Path = "/x" }, "Method": func(r *http.Request) { r.Method = http.MethodPut },
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
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": "", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
		} {
			if value := got.Header.Get(header); value != want {
				t.Errorf("%s: %s is %q, want %q", name, header, value, want)
			}
		}
		// Both policies are enforced: with another hash in one of them the page has no style.
		meta, _, _ := strings.Cut(policy, "; frame-ancestors")
		if name == "Page" && !strings.Contains(got.body, `http-equiv="Content-Security-Policy" content="`+strings.ReplaceAll(meta, "'", "&#39;")+`"`) {
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
