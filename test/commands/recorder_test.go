package commands_test

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// recorder forwards the requests of a program to an API server, and records them. The metrics and
// the audit log of the API server have those of controllers, too.
type recorder struct {
	url      string
	ca       []byte
	mutex    sync.Mutex
	requests []*recorded
}

// recorded is a request. The status of its response is 0 until there is one.
type recorded struct {
	*request.RequestInfo

	method, page string
	// granted are the rules of the role that the request creates, and refers the role that a
	// binding refers to.
	granted []rbacv1.PolicyRule
	refers  string
	status  int
}

// newRecorder starts a recorder that runs until the test ends.
func newRecorder(tb testing.TB, config *rest.Config) *recorder {
	tb.Helper()
	upstream, err := url.Parse(config.Host)
	if err != nil {
		tb.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		tb.Fatal(err)
	}
	r := &recorder{}
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	proxy.Transport = transport
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, incoming *http.Request) {
		each, err := recordedOf(incoming)
		if err != nil {
			tb.Errorf("%s %s: %v", incoming.Method, incoming.URL, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.add(each)
		incoming.Header.Del("Authorization")
		proxy.ServeHTTP(statusWriter{ResponseWriter: w, note: func(code int) { r.respond(each, code) }}, incoming)
	}))
	server.EnableHTTP2 = true
	server.StartTLS() // a client sends its token to no other server
	tb.Cleanup(server.Close)
	r.url, r.ca = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return r
}

// recordedOf describes a request as the API server does.
func recordedOf(incoming *http.Request) (*recorded, error) {
	body, err := io.ReadAll(incoming.Body)
	if err != nil {
		return nil, err
	}
	incoming.Body = io.NopCloser(bytes.NewReader(body))
	factory := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(incoming)
	if err != nil {
		return nil, err
	}
	made := &recorded{RequestInfo: info, method: incoming.Method, page: incoming.URL.Query().Get("continue")}
	if info.APIGroup != rbacv1.GroupName || info.Verb != "create" {
		return made, nil
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	switch object := object.(type) {
	case *rbacv1.Role:
		made.granted = object.Rules
	case *rbacv1.ClusterRole:
		made.granted = object.Rules
	case *rbacv1.RoleBinding:
		made.refers = object.RoleRef.Name
	case *rbacv1.ClusterRoleBinding:
		made.refers = object.RoleRef.Name
	}
	return made, err
}

// statusWriter notes the status of a response.
type statusWriter struct {
	http.ResponseWriter

	note func(code int)
}

// WriteHeader implements http.ResponseWriter.
func (s statusWriter) WriteHeader(code int) {
	s.note(code)
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap implements the interface of http.ResponseController.
func (s statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (r *recorder) add(each *recorded) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests = append(r.requests, each)
}

func (r *recorder) respond(to *recorded, code int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	to.status = code
}

// all returns the requests.
func (r *recorder) all() []recorded {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var all []recorded
	for _, each := range r.requests {
		all = append(all, *each)
	}
	return all
}

// counts returns the number of requests by method and path. Each page of a list is counted
// separately. Those for a new API, which is not served yet, are repeated and not counted.
func (r *recorder) counts() map[string]int {
	counts := map[string]int{}
	for _, each := range r.all() {
		if each.status == http.StatusTooManyRequests || each.status == http.StatusServiceUnavailable {
			continue
		}
		requested := each.method + " " + each.Path
		if each.page != "" {
			requested += " from " + each.page
		}
		counts[requested]++
	}
	return counts
}

// kubeconfig writes a kubeconfig for the API server through the recorder, and returns its path. Its token is for the
// monitoring of the cluster; the recorder has a certificate.
func (r *recorder) kubeconfig(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "kubeconfig")
	content := strings.NewReplacer("URL", r.url, "CA", base64.StdEncoding.EncodeToString(r.ca)).Replace(`
apiVersion: v1
kind: Config
current-context: recorded
clusters: [{name: recorded, cluster: {server: "URL", certificate-authority-data: CA}}]
contexts: [{name: recorded, context: {cluster: recorded, user: recorded}}]
users: [{name: recorded, user: {token: none}}]
`)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// rule returns the rule that allows the request and nothing else.
func (r recorded) rule() rbacv1.PolicyRule {
	if !r.IsResourceRequest {
		return rbacv1.PolicyRule{Verbs: []string{r.Verb}, NonResourceURLs: []string{r.Path}}
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	allowed := rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{r.APIGroup}, Resources: []string{resource}}
	if r.Name != "" {
		allowed.ResourceNames = []string{r.Name}
	}
	return allowed
}

// anyUser reports whether every user may make the request: discovery, and the review of own permissions.
func (r recorded) anyUser() bool {
	return !r.IsResourceRequest || strings.HasPrefix(r.Resource, "selfsubject")
}

// String implements fmt.Stringer. It is the text of a rule.
func (r recorded) String() string {
	return rule{PolicyRule: r.rule(), namespace: r.Namespace}.String()
}
