package dryrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiuser "k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	versions   = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "clusterversions"}
)

func configMap(name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value"}}}
	made.SetNamespace("ns")
	made.SetName(name)
	return made
}

func connect(t *testing.T, config *rest.Config) *dryrun.Client {
	t.Helper()
	client, err := dryrun.New(config, as)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestRequests checks what each method sends, and what it returns.
func TestRequests(t *testing.T) {
	generated := configMap("")
	generated.SetGenerateName("c-")
	version := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion"}}
	version.SetName("version")
	type sent = *unstructured.Unstructured
	for name, test := range map[string]struct {
		reason      string
		send        func(context.Context, *dryrun.Client) (sent, error)
		method, uri string
		body        sent
	}{
		"get": {
			reason: "a read", method: "GET", uri: object,
			send: func(ctx context.Context, c *dryrun.Client) (sent, error) { return c.Get(ctx, configMaps, "ns", "c") },
		},
		"get of the cluster": {
			reason: "without a namespace", method: "GET", uri: "/apis/config.openshift.io/v1/clusterversions/version",
			send: func(ctx context.Context, c *dryrun.Client) (sent, error) { return c.Get(ctx, versions, "", "version") },
		},
		"create": {
			reason: "in its namespace", method: "POST", uri: collection + "?dryRun=All", body: configMap("c"),
			send: func(ctx context.Context, c *dryrun.Client) (sent, error) {
				return c.Create(ctx, configMaps, configMap("c"))
			},
		},
		"create with a generated name": {
			reason: "the API server generates it", method: "POST", uri: collection + "?dryRun=All", body: generated,
			send: func(ctx context.Context, c *dryrun.Client) (sent, error) { return c.Create(ctx, configMaps, generated) },
		},
		"update": {
			reason: "the named one", method: "PUT", uri: object + "?dryRun=All", body: configMap("c"),
			send: func(ctx context.Context, c *dryrun.Client) (sent, error) {
				return c.Update(ctx, configMaps, configMap("c"))
			},
		},
		"update of the cluster": {
			reason: "without a namespace", method: "PUT", uri: "/apis/config.openshift.io/v1/clusterversions/version?dryRun=All", body: version,
			send: func(ctx context.Context, c *dryrun.Client) (sent, error) { return c.Update(ctx, versions, version) },
		},
		"delete": {
			reason: "options in the query only", method: "DELETE", uri: object + "?dryRun=All",
			send: func(ctx context.Context, c *dryrun.Client) (sent, error) {
				return configMap("c"), c.Delete(ctx, configMaps, "ns", "c")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, ok)
			config := s.config()
			config.BearerToken = "secret"
			returned, err := test.send(t.Context(), connect(t, config))
			if err != nil || returned.GetName() != "c" {
				t.Fatalf("%s: returned %v, error %v", test.reason, returned, err)
			}
			all := s.received()
			if len(all) != 1 || all[0].method != test.method || all[0].uri != test.uri {
				t.Fatalf("%s: the server received %v", test.reason, all)
			}
			got := all[0]
			var body sent
			if got.body != "" {
				body = &unstructured.Unstructured{}
				if err := json.Unmarshal([]byte(got.body), &body.Object); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(body, test.body) {
				t.Errorf("%s: the server received %s", test.reason, got.body)
			}
			want := http.Header{
				"Impersonate-User": {user}, extra: {rehearsal}, "User-Agent": {"preflight/1"}, "Authorization": {"Bearer secret"},
				"Accept": {"application/json"},
			}
			maps.DeleteFunc(got.header, func(key string, _ []string) bool {
				return key == "Accept-Encoding" || key == "Content-Length" || key == "Content-Type" && body != nil
			})
			if !reflect.DeepEqual(got.header, want) {
				t.Errorf("%s: the server received headers %v, want %v", test.reason, got.header, want)
			}
		})
	}
}

// TestIdentity lets the API server's own code read the impersonation.
func TestIdentity(t *testing.T) {
	var acting []apiuser.Info
	handler := impersonation.WithImpersonation(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := apirequest.UserFrom(r.Context()); ok {
			acting = append(acting, info)
		}
		ok(w, r)
	}), authorizerfactory.NewAlwaysAllowAuthorizer(), serializer.NewCodecFactory(runtime.NewScheme()))
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ctx := apirequest.WithUser(r.Context(), &apiuser.DefaultInfo{Name: "admin", Groups: []string{"system:masters"}})
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
	client := connect(t, s.config())
	other, err := client.As("system:admin")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []*dryrun.Client{client, other} {
		if _, err := each.Update(t.Context(), configMaps, configMap("c")); err != nil {
			t.Fatal(err)
		}
	}
	extras := map[string][]string{dryrun.ExtraKey: {rehearsal}}
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:openshift-cluster-version", "system:authenticated"}
	want := []apiuser.Info{
		&apiuser.DefaultInfo{Name: user, Groups: groups, Extra: extras},
		&apiuser.DefaultInfo{Name: "system:admin", Groups: []string{"system:authenticated"}, Extra: extras},
	}
	if !reflect.DeepEqual(acting, want) {
		t.Errorf("the API server has seen %v, want %v", acting, want)
	}
}

// TestNew checks what a client is made from.
func TestNew(t *testing.T) {
	s := serve(t, ok)
	connected, err := cluster.Connect(s.config(), "preflight/2")
	if err != nil {
		t.Fatal(err)
	}
	config := connected.Config()
	client := connect(t, config)
	if config.Impersonate.UserName != "" || config.UserAgent != "preflight/2" {
		t.Errorf("the configuration was changed: %v", config)
	}
	if _, err := client.Update(t.Context(), configMaps, configMap("c")); err != nil {
		t.Error(err)
	}
	impersonating := s.config()
	impersonating.Impersonate.UserName = "limited"
	for name, test := range map[string]struct {
		reason string
		config *rest.Config
		as     dryrun.Identity
	}{
		"impersonating":       {"its user would get other rights", impersonating, as},
		"no user":             {"it would be the user's own", s.config(), dryrun.Identity{Rehearsal: rehearsal}},
		"no rehearsal":        {"policies do not recognize it", s.config(), dryrun.Identity{User: user}},
		"user with a space":   {"HTTP removes it", s.config(), dryrun.Identity{User: user + " ", Rehearsal: rehearsal}},
		"server without name": {"it cannot be reached", &rest.Config{Host: "https://%zz"}, as},
		"two credentials":     {"one is meant", &rest.Config{Host: s.URL, BearerToken: "secret", Username: "u", Password: "p"}, as},
	} {
		t.Run(name, func(t *testing.T) {
			if client, err := dryrun.New(test.config, test.as); err == nil {
				t.Errorf("%s: %v", test.reason, client)
			}
		})
	}
	if client, err := client.As(""); err == nil {
		t.Errorf("a client of no user: %v", client)
	}
}

// TestServerBelowPath reaches an API server behind a proxy that has a path for it.
func TestServerBelowPath(t *testing.T) {
	s := serve(t, ok)
	config := s.config()
	config.Host += "/clusters/c1/"
	if _, err := connect(t, config).Update(t.Context(), configMaps, configMap("c")); err != nil {
		t.Fatal(err)
	}
	if got := s.received(); len(got) != 1 || got[0].uri != "/clusters/c1"+object+"?dryRun=All" {
		t.Errorf("the server received %v", got)
	}
	below, beside := s.url(t), s.request(t, "GET", object, "")
	below.Path = "/clusters/c1"
	response, err := dryrun.Guard(s.Client().Transport, below, as).RoundTrip(beside)
	if response != nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, dryrun.ErrNotDryRun) || len(s.received()) != 1 {
		t.Errorf("a path of another server: %v", err)
	}
}

// TestArguments sends nothing for arguments that make another request than the method's.
func TestArguments(t *testing.T) {
	s := serve(t, ok)
	client := connect(t, s.config())
	of := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	for name, send := range map[string]func(context.Context) error{
		"no name":        func(ctx context.Context) error { return client.Delete(ctx, configMaps, "ns", "") },
		"path as a name": func(ctx context.Context) error { return client.Delete(ctx, configMaps, "ns", "../../ns2") },
		"subresource":    func(ctx context.Context) error { return client.Delete(ctx, of("pods/p"), "ns", "eviction") },
		"namespace":      func(ctx context.Context) error { return client.Delete(ctx, configMaps, "ns/pods/p", "c") },
		"parent":         func(ctx context.Context) error { _, err := client.Get(ctx, of(".."), "", "metrics"); return err },
		"version": func(ctx context.Context) error {
			_, err := client.Get(ctx, schema.GroupVersionResource{Version: "v1/namespaces/ns/pods/p", Resource: "exec"}, "", "c")
			return err
		},
		"unnamed": func(ctx context.Context) error { _, err := client.Update(ctx, configMaps, configMap("")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := send(t.Context()); err == nil || len(s.received()) != 0 {
				t.Errorf("error %v, the server received %v", err, s.received())
			}
		})
	}
}

// TestOtherAnswers checks that only an object is an accepted write.
func TestOtherAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"status":  `{"apiVersion":"v1","kind":"Status","status":"Success"}`,
		"failure": `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403}`,
		"empty":   ``,
		"no kind": `{}`,
		"page":    `<html>log in</html>`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			})
			_, err := connect(t, s.config()).Update(t.Context(), configMaps, configMap("c"))
			if answer := dryrun.AnswerOf(err); err == nil || answer.Outcome == dryrun.Accepted {
				t.Errorf("error %v, answer %v", err, answer)
			}
		})
	}
}

// TestRequestsAreCounted sends as many requests as a rehearsal may, and one more, by clients of two users.
func TestRequestsAreCounted(t *testing.T) {
	sent := 0
	first := connect(t, &rest.Config{Host: "https://api.example.com", Transport: trip(func(*http.Request) (*http.Response, error) {
		sent++
		body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})})
	second, err := first.As("system:admin")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Delete(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "pods/p"}, "ns", "log"); err == nil {
		t.Error("a subresource was sent")
	}
	clients := []*dryrun.Client{first, second}
	for i := range dryrun.MaxRequests {
		if _, err := clients[i%2].Get(t.Context(), configMaps, "ns", "c"); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
	for _, client := range clients {
		if err := client.Delete(t.Context(), configMaps, "ns", "c"); !errors.Is(err, dryrun.ErrExhausted) {
			t.Errorf("error %v, want %v", err, dryrun.ErrExhausted)
		}
	}
	if sent != dryrun.MaxRequests {
		t.Errorf("%d requests were sent", sent)
	}
}

// TestRequestsAtOnce sends as many requests at once as there may be, and one more.
func TestRequestsAtOnce(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-proceed
		ok(w, r)
	})
	client := connect(t, s.config())
	other, err := client.As("system:admin")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	get := func(ctx context.Context, client *dryrun.Client) {
		_, err := client.Get(ctx, configMaps, "ns", "c")
		ended <- err
	}
	for range dryrun.MaxAtOnce {
		go get(t.Context(), client)
		<-arrived
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	response, err := client.HTTP().Do(s.request(t, "GET", object, "").WithContext(ctx)) // which only waiting notices
	if response != nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, gone) {
		t.Errorf("a request beyond the limit: %v", err)
	}
	if got := len(s.received()); got != dryrun.MaxAtOnce {
		t.Errorf("the server received %d requests", got)
	}
	go get(t.Context(), other)
	proceed <- struct{}{} // the first one ends, so that the last one is sent
	<-arrived
	for range dryrun.MaxAtOnce {
		proceed <- struct{}{}
	}
	for range dryrun.MaxAtOnce + 1 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSlotsAreGivenBack fails more requests than there may be at once.
func TestSlotsAreGivenBack(t *testing.T) {
	lost := errors.New("lost")
	client := connect(t, &rest.Config{Host: "https://api.example.com", Transport: trip(func(*http.Request) (*http.Response, error) {
		return nil, lost
	})})
	for range dryrun.MaxAtOnce + 1 {
		if err := client.Delete(t.Context(), configMaps, "ns", "c"); !errors.Is(err, lost) {
			t.Fatal(err)
		}
	}
}

// TestClientHidesHowItSends checks that a client has no field and no method by which something else can be sent.
func TestClientHidesHowItSends(t *testing.T) {
	client := reflect.TypeFor[*dryrun.Client]()
	for field := range client.Elem().Fields() {
		if field.IsExported() {
			t.Errorf("field %s is exported", field.Name)
		}
	}
	own := map[string]bool{"As": true, "Create": true, "Delete": true, "Get": true, "HTTP": true, "Update": true} // HTTP is of the tests
	for method := range client.Methods() {
		if !own[method.Name] {
			t.Errorf("method %s is exported", method.Name)
		}
	}
}
