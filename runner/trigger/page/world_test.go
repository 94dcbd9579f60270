package page_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/trigger/page"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/records"
)

// reviews is an API server that reviews users, in front of one that has objects.
type reviews struct {
	mutex sync.Mutex
	// users are the names by token, and may those who have the permission.
	users map[string]string
	may   map[string]bool
	// fails is the resource of the reviews that fail.
	fails string
	// asked are the reviews so far, as "tokenreviews TOKEN" and "subjectaccessreviews USER GROUPS VERB RESOURCE.GROUP".
	asked []string
}

func (r *reviews) handler(tb testing.TB, objects http.Handler) http.Handler {
	tb.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		resource := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
		if resource != "tokenreviews" && resource != "subjectaccessreviews" {
			objects.ServeHTTP(w, request)
			return
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.fails == resource {
			http.Error(w, "the API server is starting", http.StatusServiceUnavailable)
			return
		}
		text, err := io.ReadAll(request.Body)
		if err != nil {
			tb.Error(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			tb.Error(err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := scheme.Codecs.LegacyCodec(authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion).Encode(r.review(object),
			w); err != nil {
			tb.Error(err)
		}
	})
}

func (r *reviews) review(object runtime.Object) runtime.Object {
	switch of := object.(type) {
	case *authenticationv1.TokenReview:
		r.asked = append(r.asked, "tokenreviews "+of.Spec.Token)
		name, known := r.users[of.Spec.Token]
		of.Status = authenticationv1.TokenReviewStatus{
			Authenticated: known,
			User:          authenticationv1.UserInfo{Username: name, Groups: []string{"admins"}},
		}
		if !known {
			of.Status.Error = "[invalid bearer token, token lookup failed]"
		}
	case *authorizationv1.SubjectAccessReview:
		to := of.Spec.ResourceAttributes
		r.asked = append(r.asked, strings.Join([]string{
			"subjectaccessreviews", of.Spec.User, strings.Join(of.Spec.Groups, ","), to.Verb,
			to.Resource + "." + to.Group + to.Namespace + to.Name,
		}, " "))
		of.Status.Allowed = r.may[of.Spec.User]
	}
	return object
}

// world is a cluster with the server of its page.
type world struct {
	records.Cluster
	*reviews

	tb     testing.TB
	server *apiserver.Server
	state  openshift.State
	url    string
	client *http.Client
	// log is what the page has logged.
	log *strings.Builder
}

const admin, reader, stranger = "admin-token", "reader-token", "stranger-token"

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{
		tb: tb, server: apiserver.Start(tb), state: records.State(), log: &strings.Builder{},
		reviews: &reviews{
			users: map[string]string{admin: "admin", reader: "reader", stranger: "<b>stranger</b>"},
			may:   map[string]bool{"admin": true, "reader": true},
		},
	}
	w.Cluster = records.In(tb, w.server.Config())
	w.present()
	at, err := url.Parse(w.server.URL)
	if err != nil {
		tb.Fatal(err)
	}
	front := httptest.NewServer(w.handler(tb, httputil.NewSingleHostReverseProxy(at)))
	tb.Cleanup(front.Close)
	reached, err := cluster.Connect(&rest.Config{Host: front.URL}, "test")
	if err != nil {
		tb.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.Level(-10)}))
	shown := httptest.NewUnstartedServer(nil)
	shown.Config = page.Server(page.New(reached, runner.Options{}.Asked("the controller"), logger), logger)
	shown.StartTLS()
	tb.Cleanup(shown.Close)
	w.url, w.client = shown.URL, shown.Client()
	return w
}

// present writes the state to the cluster.
func (w *world) present() {
	w.tb.Helper()
	if err := openshift.Apply(w.tb.Context(), w.server.Config(), w.state); err != nil {
		w.tb.Fatal(err)
	}
}

// response is a response with its body.
type response struct {
	*http.Response

	body string
}

// send sends a request that a function has changed.
func (w *world) send(tb testing.TB, change func(*http.Request)) response {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, w.url+"/", http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	change(request)
	got, err := w.client.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		tb.Fatal(err)
	}
	if got.TLS.Version < tls.VersionTLS12 {
		tb.Error("the connection is not protected")
	}
	return response{Response: got, body: string(body)}
}

// bearer adds a token to a request.
func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// shown is the page as the administrator sees it now.
func (w *world) shown(tb testing.TB, status int) string {
	tb.Helper()
	got := w.send(tb, bearer(admin))
	if got.StatusCode != status {
		tb.Fatalf("status %d, want %d:\n%s", got.StatusCode, status, got.body)
	}
	return got.body
}
