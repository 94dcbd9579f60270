package dryrun_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
)

const (
	user      = "system:serviceaccount:openshift-cluster-version:default"
	rehearsal = "rehearsal-7"
	extra     = "Impersonate-Extra-Preflight.openshift.io%2frehearsal"

	object     = "/api/v1/namespaces/ns/configmaps/c"
	collection = "/api/v1/namespaces/ns/configmaps"
)

var as = dryrun.Identity{User: user, Rehearsal: rehearsal}

// received is a request as a server has received it.
type received struct {
	method, uri, body string
	header            http.Header
}

// server records every request that it receives.
type server struct {
	*httptest.Server

	mutex sync.Mutex
	all   []received
}

// serve starts a server with TLS that records requests before it answers.
func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mutex.Lock()
		s.all = append(s.all, received{r.Method, r.RequestURI, string(body), r.Header.Clone()})
		s.mutex.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) received() []received {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.all
}

// config reaches the server.
func (s *server) config() *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, UserAgent: "preflight/1"}
}

func (s *server) url(t *testing.T) *url.URL {
	t.Helper()
	parsed, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"ns"}}`)
}

// request makes a request of the identity for a path of the server.
func (s *server) request(t *testing.T, method, target, body string) *http.Request {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, content)
	if err != nil {
		t.Fatal(err)
	}
	request.Method = method
	request.Header.Set("Impersonate-User", user)
	request.Header.Set(extra, rehearsal)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if target == "*" {
		request.URL.Opaque = target
		return request
	}
	parsed, err := url.Parse(s.URL + target)
	if err != nil {
		t.Fatal(err)
	}
	request.URL = parsed
	return request
}

// attempt is a request that is sent through the innermost transport.
type attempt struct {
	reason               string
	method, target, body string
	change               func(*http.Request)
	// refused is a part of the refusal; empty for what is sent.
	refused string
}

const notDry = "it is not a dry run"

func TestOnlyDryRunsLeave(t *testing.T) {
	for name, attempts := range map[string]map[string]attempt{
		"reads": reads(), "queries": queries(), "targets": targets(), "deletions": deletions(),
		"paths": paths(), "headers": headers(), "methods": methods(),
	} {
		for title, try := range attempts {
			t.Run(name+"/"+title, func(t *testing.T) { try.send(t) })
		}
	}
}

func (a attempt) send(t *testing.T) {
	t.Helper()
	s := serve(t, ok)
	request := s.request(t, a.method, a.target, a.body)
	if a.change != nil {
		a.change(request)
	}
	header, query := request.Header.Clone(), request.URL.RawQuery
	response, err := dryrun.Guard(s.Client().Transport, s.url(t), as).RoundTrip(request)
	if response != nil {
		_ = response.Body.Close()
	}
	got := s.received()
	if a.refused != "" {
		if !errors.Is(err, dryrun.ErrNotDryRun) || !strings.Contains(err.Error(), a.refused) || !strings.Contains(err.Error(), request.Method) {
			t.Errorf("%s: error %v, want %q", a.reason, err, a.refused)
		}
		if len(got) != 0 {
			t.Fatalf("%s: the server received %v", a.reason, got)
		}
		return
	}
	if err != nil || len(got) != 1 {
		t.Fatalf("%s: error %v, the server received %v", a.reason, err, got)
	}
	if got[0].method != a.method || got[0].body != a.body {
		t.Errorf("%s: the server received %v", a.reason, got[0])
	}
	if a.method != http.MethodGet && !strings.Contains(got[0].uri, "dryRun=All") {
		t.Errorf("%s: the server received %s", a.reason, got[0].uri)
	}
	if len(header) != len(request.Header) || query != request.URL.RawQuery {
		t.Errorf("%s: the request was changed", a.reason)
	}
}

func reads() map[string]attempt {
	const notRead = "it does not read"
	return map[string]attempt{
		"object":           {reason: "a read", method: "GET", target: object},
		"list":             {reason: "a read", method: "GET", target: collection + "?labelSelector=a%3Db&limit=500"},
		"cluster-scoped":   {reason: "a read", method: "GET", target: "/apis/config.openshift.io/v1/clusterversions/version"},
		"name with colons": {reason: "RBAC has such names", method: "GET", target: "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"},
		"namespace":        {reason: "a read", method: "GET", target: "/api/v1/namespaces/ns"},
		"core versions":    {reason: "discovery", method: "GET", target: "/api"},
		"core":             {reason: "discovery", method: "GET", target: "/api/v1"},
		"groups":           {reason: "discovery", method: "GET", target: "/apis"},
		"group":            {reason: "discovery", method: "GET", target: "/apis/apps"},
		"group version":    {reason: "discovery", method: "GET", target: "/apis/apps/v1"},
		"watch":            {reason: "it does not end", method: "GET", target: collection + "?watch=true", refused: "it is a watch"},
		"watch of 0":       {reason: "servers differ", method: "GET", target: collection + "?watch=0", refused: "it is a watch"},
		"watch of one":     {reason: "it does not end", method: "GET", target: object + "?watch=1", refused: "it is a watch"},
		"watch path":       {reason: "it does not end", method: "GET", target: "/api/v1/watch/namespaces/ns/pods", refused: notRead},
		"proxy path":       {reason: "it reaches another server", method: "GET", target: "/api/v1/proxy/nodes/n", refused: notRead},
		"proxy":            {reason: "it reaches another server", method: "GET", target: "/api/v1/nodes/n/proxy/exec", refused: notRead},
		"service proxy": {
			reason: "it reaches another server", method: "GET", target: "/api/v1/namespaces/ns/services/s/proxy", refused: notRead,
		},
		"exec": {
			reason: "a GET that executes", method: "GET", target: "/api/v1/namespaces/ns/pods/p/exec?command=rm", refused: notRead,
		},
		"attach":       {reason: "a GET that attaches", method: "GET", target: "/api/v1/namespaces/ns/pods/p/attach", refused: notRead},
		"port-forward": {reason: "a GET that connects", method: "GET", target: "/api/v1/namespaces/ns/pods/p/portforward", refused: notRead},
		"log":          {reason: "not an object", method: "GET", target: "/api/v1/namespaces/ns/pods/p/log?follow=true", refused: notRead},
		"status": {
			reason: "a subresource", method: "GET", target: "/apis/apps/v1/namespaces/ns/deployments/d/status", refused: notRead,
		},
		"metrics": {reason: "not an object", method: "GET", target: "/metrics", refused: notRead},
		"health":  {reason: "not an object", method: "GET", target: "/healthz", refused: notRead},
		"openapi": {reason: "not asked for", method: "GET", target: "/openapi/v3", refused: notRead},
		"root":    {reason: "not an object", method: "GET", target: "/", refused: notRead},
		"body":    {reason: "a read has none", method: "GET", target: object, body: "{}", refused: "a read has no body"},
		"query":   {reason: "it is read in two ways", method: "GET", target: collection + "?a;watch=1", refused: "cannot be parsed"},
	}
}

func queries() map[string]attempt {
	return map[string]attempt{
		"create":        {reason: "a dry run", method: "POST", target: collection + "?dryRun=All", body: `{"kind":"ConfigMap"}`},
		"update":        {reason: "a dry run", method: "PUT", target: object + "?dryRun=All&fieldManager=x", body: `{"kind":"ConfigMap"}`},
		"namespace":     {reason: "a dry run", method: "PUT", target: "/api/v1/namespaces/ns?dryRun=All", body: `{}`},
		"encoded key":   {reason: "it is parsed as dryRun", method: "PUT", target: object + "?dry%52un=All", body: "{}"},
		"encoded value": {reason: "it is parsed as All", method: "PUT", target: object + "?dryRun=%41ll", body: "{}"},
		"missing":       {reason: "it would be stored", method: "PUT", target: object, body: "{}", refused: notDry},
		"other": {
			reason: "it would be stored", method: "PUT", target: object + "?fieldManager=dryRun=All", body: "{}", refused: notDry,
		},
		"empty":          {reason: "the API server rejects it", method: "PUT", target: object + "?dryRun=", body: "{}", refused: notDry},
		"without value":  {reason: "the API server rejects it", method: "PUT", target: object + "?dryRun", body: "{}", refused: notDry},
		"lower case":     {reason: "not the value", method: "PUT", target: object + "?dryRun=all", body: "{}", refused: notDry},
		"other key":      {reason: "keys have a case", method: "PUT", target: object + "?dryrun=All", body: "{}", refused: notDry},
		"space":          {reason: "not the value", method: "PUT", target: object + "?dryRun=All%20", body: "{}", refused: notDry},
		"list":           {reason: "not the value", method: "PUT", target: object + "?dryRun=All,All", body: "{}", refused: notDry},
		"twice":          {reason: "not exactly once", method: "PUT", target: object + "?dryRun=All&dryRun=All", body: "{}", refused: notDry},
		"twice, encoded": {reason: "not exactly once", method: "PUT", target: object + "?dryRun=All&dry%52un=", body: "{}", refused: notDry},
		"and another":    {reason: "not exactly once", method: "PUT", target: object + "?dryRun=None&dryRun=All", body: "{}", refused: notDry},
		"semicolon": {
			reason: "it is read in two ways", method: "PUT", target: object + "?a=1;dryRun=All", body: "{}", refused: "cannot be parsed",
		},
		"semicolon behind": {
			reason: "it is read in two ways", method: "PUT", target: object + "?dryRun=All;x", body: "{}", refused: "cannot be parsed",
		},
		"semicolon beside": {
			reason: "it is read in two ways", method: "PUT", target: object + "?dryRun=All&x;y", body: "{}", refused: "cannot be parsed",
		},
		"bad escape": {
			reason: "it is read in two ways", method: "PUT", target: object + "?dryRun=All&x=%zz", body: "{}", refused: "cannot be parsed",
		},
		"in the fragment": {reason: "it is not sent", method: "PUT", target: object + "#?dryRun=All", body: "{}", refused: notDry},
		"in the body": {
			reason: "only a deletion has options there", method: "POST", target: collection, body: `{"dryRun":["All"]}`, refused: notDry,
		},
		"in a header": {
			reason: "the API server does not read it", method: "PUT", target: object, body: "{}", refused: notDry,
			change: func(r *http.Request) { r.Header.Set("Dryrun", "All") },
		},
		"in a form": {
			reason: "the API server does not read it", method: "POST", target: collection, body: "dryRun=All", refused: notDry,
			change: func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") },
		},
		"number sign": {
			reason: "what is behind it can be lost on the way, so it is encoded", method: "PUT", target: object, body: "{}",
			change: func(r *http.Request) { r.URL.RawQuery = "x=1#&dryRun=All" },
		},
		"merge patch":     patch("application/merge-patch+json"),
		"JSON patch":      patch("application/json-patch+json"),
		"strategic patch": patch("application/strategic-merge-patch+json"),
		"apply":           patch("application/apply-patch+yaml"),
		"patch without": {
			reason: "it would be stored", method: "PATCH", target: object + "?force=true&fieldManager=x", body: "{}", refused: notDry,
			change: func(r *http.Request) { r.Header.Set("Content-Type", "application/apply-patch+yaml") },
		},
	}
}

func patch(kind string) attempt {
	return attempt{
		reason: "a dry run", method: "PATCH", target: object + "?dryRun=All", body: "{}",
		change: func(r *http.Request) { r.Header.Set("Content-Type", kind) },
	}
}

func targets() map[string]attempt {
	const notOne = "it does not read, create, update, patch or delete one object"
	const pod, query = "/api/v1/namespaces/ns/pods/p", "?dryRun=All"
	all := map[string]attempt{
		"create of a name":       {reason: "not the collection", method: "POST", target: object + query, body: "{}", refused: notOne},
		"create of a group":      {reason: "no resource", method: "POST", target: "/apis/apps/v1" + query, body: "{}", refused: notOne},
		"update of a collection": {reason: "not one object", method: "PUT", target: collection + query, body: "{}", refused: notOne},
		"patch of a collection":  {reason: "not one object", method: "PATCH", target: collection + query, body: "{}", refused: notOne},
		"deletion of all":        {reason: "not one object", method: "DELETE", target: collection + query, refused: notOne},
		"deletion of a selection": {
			reason: "not one object", method: "DELETE", target: collection + query + "&fieldSelector=metadata.name%3Dc", refused: notOne,
		},
		"watch path": {reason: "not what it seems", method: "DELETE", target: "/api/v1/watch/pods" + query, refused: notOne},
		"watch of one path": {
			reason: "not what it seems", method: "POST", target: "/api/v1/watch/namespaces/ns/pods" + query, body: "{}", refused: notOne,
		},
		"proxy path": {
			reason: "it reaches another server", method: "PUT", target: "/api/v1/proxy/nodes/n" + query, body: "{}", refused: notOne,
		},
		"finalize": {
			reason: "a subresource", method: "PUT", target: "/api/v1/namespaces/ns/finalize" + query, body: "{}", refused: notOne,
		},
		"status of a namespace": {
			reason: "a subresource", method: "PUT", target: "/api/v1/namespaces/ns/status" + query, body: "{}", refused: notOne,
		},
		"token": {
			reason: "it is issued", method: "POST", target: "/api/v1/namespaces/ns/serviceaccounts/s/token" + query, body: "{}", refused: notOne,
		},
		"instantiate": {
			reason: "a subresource", method: "POST", refused: notOne, body: "{}",
			target: "/apis/build.openshift.io/v1/namespaces/ns/buildconfigs/b/instantiate" + query,
		},
		"not of the API": {reason: "no resource", method: "POST", target: "/livez" + query, body: "{}", refused: notOne},
		"image stream": {
			reason: "its server knows dry runs", method: "PUT", body: "{}",
			target: "/apis/image.openshift.io/v1/namespaces/ns/imagestreams/s" + query,
		},
	}
	for _, subresource := range []string{
		"status", "scale", "eviction", "binding", "exec", "attach", "portforward", "proxy", "ephemeralcontainers", "resize", "log", "proxy/path",
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			all[method+" "+subresource] = attempt{reason: "a subresource", method: method, target: pod + "/" + subresource + query, refused: notOne}
		}
	}
	for _, resource := range []string{
		"/apis/image.openshift.io/v1/namespaces/ns/imagestreamtags/s:1", "/apis/image.openshift.io/v1/namespaces/ns/imagetags/s:1",
		"/apis/authorization.openshift.io/v1/namespaces/ns/rolebindings/r", "/apis/authorization.openshift.io/v1/clusterroles/r",
		"/apis/project.openshift.io/v1/projects/p", "/apis/user.openshift.io/v1/useridentitymappings/u",
	} {
		all["DELETE "+resource] = attempt{reason: "its server stores it", method: "DELETE", target: resource + query, refused: "store a dry run"}
	}
	all["project"] = attempt{
		reason: "its server stores it", method: "POST", target: "/apis/project.openshift.io/v1/projectrequests" + query, body: "{}",
		refused: "store a dry run",
	}
	return all
}

func deletions() map[string]attempt {
	typed := func(kinds ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Content-Type"] = kinds }
	}
	const query = "?dryRun=All"
	return map[string]attempt{
		"query": {reason: "the API server reads it", method: "DELETE", target: object + query},
		"both": {
			reason: "the API server reads the body", method: "DELETE", target: object + query,
			body: `{"kind":"DeleteOptions","dryRun":["All"]}`,
		},
		"with charset": {
			reason: "it is JSON", method: "DELETE", target: object + query, body: `{"dryRun":["All"]}`,
			change: typed("application/json; charset=utf-8"),
		},
		"body only":  {reason: "both are required", method: "DELETE", target: object, body: `{"dryRun":["All"]}`, refused: notDry},
		"no options": {reason: "the query is ignored", method: "DELETE", target: object + query, body: `{}`, refused: notDry},
		"null":       {reason: "the query is ignored", method: "DELETE", target: object + query, body: `null`, refused: notDry},
		"grace period": {
			reason: "the query is ignored", method: "DELETE", target: object + query, body: `{"gracePeriodSeconds":0}`, refused: notDry,
		},
		"empty list": {reason: "it would be stored", method: "DELETE", target: object + query, body: `{"dryRun":[]}`, refused: notDry},
		"twice": {
			reason: "not exactly once", method: "DELETE", target: object + query, body: `{"dryRun":["All","All"]}`, refused: notDry,
		},
		"other":   {reason: "not the value", method: "DELETE", target: object + query, body: `{"dryRun":["all"]}`, refused: notDry},
		"no list": {reason: "not the type", method: "DELETE", target: object + query, body: `{"dryRun":"All"}`, refused: notDry},
		"key": {
			reason: "the API server's keys have a case", method: "DELETE", target: object + query, body: `{"dryrun":["All"]}`, refused: notDry,
		},
		"two keys": {
			reason: "it is read in two ways", method: "DELETE", target: object + query, body: `{"dryRun":[],"dryRun":["All"]}`,
			refused: notDry,
		},
		"two documents": {
			reason: "it is read in two ways", method: "DELETE", target: object + query, body: `{"dryRun":["All"]}{}`, refused: notDry,
		},
		"no JSON": {reason: "it cannot be checked", method: "DELETE", target: object + query, body: `dryRun: [All]`, refused: notDry},
		"protobuf": {
			reason: "it cannot be checked", method: "DELETE", target: object + query, body: "k8s\x00dryRun", refused: notDry,
			change: typed("application/vnd.kubernetes.protobuf"),
		},
		"declared as protobuf": {
			reason: "it is read in two ways", method: "DELETE", target: object + query, body: `{"dryRun":["All"]}`, refused: notDry,
			change: typed("application/vnd.kubernetes.protobuf"),
		},
		"two types": {
			reason: "it is read in two ways", method: "DELETE", target: object + query, body: `{"dryRun":["All"]}`, refused: notDry,
			change: typed("application/json", "application/yaml"),
		},
		"without type": {
			reason: "it is read in two ways", method: "DELETE", target: object + query, body: `{"dryRun":["All"]}`, refused: notDry,
			change: func(r *http.Request) { r.Header.Del("Content-Type") },
		},
		"long": {
			reason: "it is not read", method: "DELETE", target: object + query, refused: notDry,
			body: `{"dryRun":["All"]` + strings.Repeat(" ", 64<<10) + `}`,
		},
		"not readable": {
			reason: "it cannot be checked", method: "DELETE", target: object + query, body: "{}", refused: "its body cannot be read",
			change: func(r *http.Request) { r.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), failing{})) },
		},
		"other copy": {
			reason: "a retry of the connection sends the copy", method: "DELETE", target: object + query, body: `{"dryRun":["All"]}`,
			change: func(r *http.Request) {
				r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("{}")), nil }
			},
		},
	}
}

// TestCopiesOfOptions checks what net/http sends again after a lost connection: not what the request had as its copy.
func TestCopiesOfOptions(t *testing.T) {
	const checked = `{"dryRun":["All"]}`
	s := serve(t, ok)
	request := s.request(t, "DELETE", object+"?dryRun=All", checked)
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(`{}`)), nil }
	var copied []byte
	response, err := dryrun.Guard(trip(func(r *http.Request) (*http.Response, error) {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		copied, err = io.ReadAll(body)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
	}), s.url(t), as).RoundTrip(request)
	if response != nil {
		_ = response.Body.Close()
	}
	if err != nil || string(copied) != checked {
		t.Errorf("copy %q, error %v", copied, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func paths() map[string]attempt {
	const canonical, dry = "its path is not a canonical one", "?dryRun=All"
	return map[string]attempt{
		"two slashes":     {reason: "servers differ", method: "DELETE", target: "/api/v1/namespaces/ns//configmaps/c" + dry, refused: canonical},
		"slashes first":   {reason: "servers differ", method: "GET", target: "//api/v1/namespaces", refused: canonical},
		"parent":          {reason: "servers differ", method: "GET", target: "/api/v1/namespaces/../../../metrics", refused: canonical},
		"self":            {reason: "servers differ", method: "GET", target: "/api/v1/./namespaces", refused: canonical},
		"encoded parent":  {reason: "servers differ", method: "GET", target: "/api/v1/namespaces/%2e%2e/pods", refused: canonical},
		"encoded slash":   {reason: "servers differ", method: "DELETE", target: collection + "/c%2Fstatus" + dry, refused: canonical},
		"encoded letter":  {reason: "servers differ", method: "GET", target: "/api/v1/name%73paces", refused: canonical},
		"encoded percent": {reason: "it can be decoded twice", method: "GET", target: "/api/v1/namespaces/%252e%252e", refused: canonical},
		"trailing slash":  {reason: "servers differ", method: "DELETE", target: collection + "/" + dry, refused: canonical},
		"none":            {reason: "not of the API", method: "GET", target: "", refused: canonical},
		"relative": {
			reason: "not of the API", method: "GET", target: object, refused: canonical,
			change: func(r *http.Request) { r.URL.Path = "api/v1/pods" },
		},
		"opaque": {
			reason: "it replaces the path", method: "PUT", target: object + dry, body: "{}", refused: canonical,
			change: func(r *http.Request) { r.URL.Opaque = "//" + r.URL.Host + "/api/v1/namespaces/ns/pods/p/eviction" },
		},
		"other host": {
			reason: "credentials would leave", method: "GET", target: object, refused: "it is not for the API server",
			change: func(r *http.Request) { r.URL.Host = "other.example.com" },
		},
		"other port": {
			reason: "credentials would leave", method: "GET", target: object, refused: "it is not for the API server",
			change: func(r *http.Request) { r.URL.Host = r.URL.Hostname() + ":1" },
		},
		"other scheme": {
			reason: "credentials would leave in clear text", method: "GET", target: object, refused: "it is not for the API server",
			change: func(r *http.Request) { r.URL.Scheme = "http" },
		},
		"other host header": {
			reason: "a load balancer chooses by it", method: "GET", target: object, refused: "it is not for the API server",
			change: func(r *http.Request) { r.Host = "other.example.com" },
		},
		"redirect": {
			reason: "its server chose it", method: "GET", target: object, refused: "it follows a redirect",
			change: func(r *http.Request) { r.Response = &http.Response{StatusCode: http.StatusTemporaryRedirect} },
		},
	}
}

func headers() map[string]attempt {
	const other = "it does not impersonate exactly"
	write := func(reason, refused string, change func(http.Header)) attempt {
		return attempt{
			reason: reason, method: "PUT", target: object + "?dryRun=All", body: "{}", refused: refused,
			change: func(r *http.Request) { change(r.Header) },
		}
	}
	return map[string]attempt{
		"none":          write("it would be the user's own", other, func(h http.Header) { h.Del("Impersonate-User"); h.Del(extra) }),
		"no user":       write("it would be the user's own", other, func(h http.Header) { h.Del("Impersonate-User") }),
		"other user":    write("not the identity", other, func(h http.Header) { h.Set("Impersonate-User", "system:admin") }),
		"empty user":    write("not the identity", other, func(h http.Header) { h.Set("Impersonate-User", "") }),
		"two users":     write("not the identity", other, func(h http.Header) { h.Add("Impersonate-User", user) }),
		"group":         write("not the identity", other, func(h http.Header) { h.Set("Impersonate-Group", "system:masters") }),
		"UID":           write("not the identity", other, func(h http.Header) { h.Set("Impersonate-Uid", "1") }),
		"no rehearsal":  write("policies do not recognize it", other, func(h http.Header) { h.Del(extra) }),
		"other ID":      write("policies do not recognize it", other, func(h http.Header) { h.Set(extra, "rehearsal-8") }),
		"two IDs":       write("policies do not recognize it", other, func(h http.Header) { h.Add(extra, rehearsal) }),
		"another extra": write("not the identity", other, func(h http.Header) { h.Set("Impersonate-Extra-Scopes", "user:full") }),
		"lower case": write("the API server reads it", "it has the header impersonate-group", func(h http.Header) {
			h["impersonate-group"] = []string{"system:masters"}
		}),
		"override": write("it replaces the method", "it has the header", func(h http.Header) { h.Set("X-HTTP-Method-Override", "POST") }),
		"method":   write("it replaces the method", "it has the header", func(h http.Header) { h.Set("X-HTTP-Method", "POST") }),
		"upgrade":  write("it is no longer HTTP", "it has the header", func(h http.Header) { h.Set("Upgrade", "SPDY/3.1") }),
		"hop":      write("a proxy removes what it names", "it has the header", func(h http.Header) { h.Set("Connection", "Impersonate-User") }),
		"read": {
			reason: "reads are impersonated, too", method: "GET", target: object,
			refused: other, change: func(r *http.Request) { r.Header.Del("Impersonate-User") },
		},
		"read, UID": {
			reason: "reads are impersonated, too", method: "GET", target: object,
			refused: other, change: func(r *http.Request) { r.Header.Set("Impersonate-Uid", "1") },
		},
		"trailer": {
			reason: "it is not checked", method: "PUT", target: object + "?dryRun=All", body: "{}", refused: "it has headers after its body",
			change: func(r *http.Request) { r.Trailer = http.Header{"Impersonate-Group": {"system:masters"}} },
		},
	}
}

func methods() map[string]attempt {
	all := map[string]attempt{
		"options of all": {reason: "no object", method: "OPTIONS", target: "*", refused: "its path is not a canonical one"},
	}
	for _, method := range []string{"HEAD", "OPTIONS", "CONNECT", "TRACE", "LIST", "PROPFIND", "get", "put", "Delete", ""} {
		attempt := attempt{reason: "not one of the API", method: method, target: object + "?dryRun=All", refused: "it does not read, create"}
		all["method "+method] = attempt
	}
	return all
}

// TestRedirectsAreNotFollowed sends reads and writes through all transports to servers that redirect them.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := serve(t, ok)
	for name, location := range map[string]string{"other path": "/api/v1/namespaces/ns/configmaps/other", "other server": other.URL + object} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, method := range []string{"GET", "PUT", "DELETE"} {
				t.Run(method+" "+http.StatusText(status)+", "+name, func(t *testing.T) {
					s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, location, status) })
					client := connect(t, s.config())
					response, err := client.HTTP().Do(s.request(t, method, object+"?dryRun=All", ""))
					if response != nil {
						_ = response.Body.Close()
					}
					if !errors.Is(err, dryrun.ErrNotDryRun) || !strings.Contains(err.Error(), "the server redirects it") {
						t.Errorf("error %v", err)
					}
					if got := s.received(); len(got) != 1 || len(other.received()) != 0 {
						t.Errorf("the servers received %v and %v", got, other.received())
					}
				})
			}
		}
	}
}

// TestGuardIsInnermost sends requests through wrappers of the configuration that break the rules after all others.
func TestGuardIsInnermost(t *testing.T) {
	s := serve(t, ok)
	for name, change := range map[string]func(*http.Request){
		"not dry":       func(r *http.Request) { r.URL.RawQuery = "" },
		"other user":    func(r *http.Request) { r.Header.Set("Impersonate-User", "system:admin") },
		"groups":        func(r *http.Request) { r.Header.Set("Impersonate-Group", "system:masters") },
		"other method":  func(r *http.Request) { r.Method = http.MethodPost },
		"other host":    func(r *http.Request) { r.URL.Host = "other.example.com" },
		"not an object": func(r *http.Request) { r.URL.Path += "/status" },
	} {
		t.Run(name, func(t *testing.T) {
			config := s.config()
			config.BearerToken = "secret"
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return trip(func(r *http.Request) (*http.Response, error) {
					if r.Header.Get("Impersonate-User") != user || r.Header.Get("Authorization") != "Bearer secret" {
						t.Error("the wrapper is outside of impersonation or credentials")
					}
					changed := r.Clone(r.Context())
					change(changed)
					return next.RoundTrip(changed)
				})
			})
			before := len(s.received())
			if _, err := connect(t, config).Update(t.Context(), configMaps, configMap("c")); !errors.Is(err, dryrun.ErrNotDryRun) {
				t.Errorf("error %v", err)
			}
			if got := s.received(); len(got) != before {
				t.Errorf("the server received %v", got[before:])
			}
		})
	}
}

// TestWrappersAreKept checks that the wrappers of the configuration are called, each once for a request.
func TestWrappersAreKept(t *testing.T) {
	s := serve(t, ok)
	var order []string
	named := func(name string) transport.WrapperFunc {
		return func(next http.RoundTripper) http.RoundTripper {
			return trip(func(r *http.Request) (*http.Response, error) {
				order = append(order, name)
				return next.RoundTrip(r)
			})
		}
	}
	config := s.config()
	config.Wrap(named("inner"))
	config.Wrap(named("outer"))
	if _, err := connect(t, config).Get(t.Context(), configMaps, "ns", "c"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "outer inner" {
		t.Errorf("wrappers %q", got)
	}
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestRetriesAreDryRuns answers first that the server is busy: each attempt of client-go is the same dry run.
func TestRetriesAreDryRuns(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError} {
		for name, write := range map[string]func(*dryrun.Client) error{
			"create": func(c *dryrun.Client) error { _, err := c.Create(t.Context(), configMaps, configMap("c")); return err },
			"update": func(c *dryrun.Client) error { _, err := c.Update(t.Context(), configMaps, configMap("c")); return err },
			"delete": func(c *dryrun.Client) error { return c.Delete(t.Context(), configMaps, "ns", "c") },
		} {
			t.Run(name+" "+http.StatusText(status), func(t *testing.T) {
				var busy sync.Once
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					answered := false
					busy.Do(func() {
						answered = true
						w.Header().Set("Retry-After", "0")
						w.WriteHeader(status)
					})
					if !answered {
						ok(w, r)
					}
				})
				if err := write(connect(t, s.config())); err != nil {
					t.Fatal(err)
				}
				got := s.received()
				if len(got) != 2 || got[0].uri != got[1].uri || got[0].body != got[1].body || !strings.HasSuffix(got[1].uri, "?dryRun=All") {
					t.Errorf("the server received %v", got)
				}
			})
		}
	}
}

// TestLostConnections ends a connection that was used before: net/http sends the request again, below all transports.
func TestLostConnections(t *testing.T) {
	plain := httptest.NewUnstartedServer(nil)
	recorded := &server{Server: plain}
	plain.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded.mutex.Lock()
		recorded.all = append(recorded.all, received{method: r.Method, uri: r.RequestURI, header: r.Header.Clone()})
		second := len(recorded.all) == 2
		recorded.mutex.Unlock()
		if !second {
			ok(w, r)
			return
		}
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = connection.Close()
	})
	plain.Start()
	t.Cleanup(plain.Close)
	client := connect(t, &rest.Config{Host: plain.URL})
	for range 2 {
		if _, err := client.Get(t.Context(), configMaps, "ns", "c"); err != nil {
			t.Fatal(err)
		}
	}
	got := recorded.received()
	if len(got) != 3 {
		t.Fatalf("the server received %v", got)
	}
	for _, each := range got {
		if each.uri != object || each.header.Get("Impersonate-User") != user || each.header.Get(extra) != rehearsal {
			t.Errorf("the server received %v", each)
		}
	}
}
