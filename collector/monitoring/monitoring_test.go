package monitoring_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/test/prometheus"
)

// at is a client of the server at a URL.
func at(url string) *monitoring.Client {
	return monitoring.New(func(context.Context) (*rest.Config, error) { return &rest.Config{Host: url}, nil }, monitoring.DefaultTimeout)
}

// reasonOf is the reason of an error of the package, or the error.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	known, ok := errors.AsType[*monitoring.Error](err)
	if !ok {
		return err.Error()
	}
	if known.Message == "" || !strings.HasSuffix(known.Remedy, ".") || strings.Contains(known.Message, "\n") {
		return "an error without a message on one line, or without a remedy: " + known.Message
	}
	return known.Reason.String()
}

func TestAlertsOfARealPrometheus(t *testing.T) {
	p := shared.Load(t,
		prometheus.Rule{
			Alert: "Firing", Expr: "vector(1)", Labels: map[string]string{"severity": "critical"},
			Annotations: map[string]string{"summary": "Disk is full."},
		},
		prometheus.Rule{Alert: "Pending", Expr: "vector(1)", For: "1h"},
	)
	alerts, err := at(p.URL).Alerts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, alert := range alerts {
		got[string(alert.Labels["alertname"])] = string(alert.State) + ", " + string(alert.Labels["severity"]) + ", " +
			string(alert.Annotations["summary"])
		if alert.ActiveAt.IsZero() {
			t.Errorf("%v has no start time", alert.Labels)
		}
	}
	want := map[string]string{"Firing": "firing, critical, Disk is full.", "Pending": "pending, , "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts (-want +got):\n%s", diff)
	}
}

func TestNoAlerts(t *testing.T) {
	alerts, err := at(shared.Load(t).URL).Alerts(t.Context())
	if err != nil || len(alerts) != 0 {
		t.Errorf("want no alerts, got %v, %v", alerts, err)
	}
}

func TestQuery(t *testing.T) {
	p := shared.Load(t,
		prometheus.Rule{Record: "one", Expr: "vector(1)"},
		prometheus.Rule{Record: "zero", Expr: "vector(0)"},
		prometheus.Rule{Record: "two", Expr: `label_replace(vector(1), "n", "1", "", "") or label_replace(vector(0), "n", "2", "", "")`},
	)
	client := at(p.URL)
	for name, tc := range map[string]struct {
		reason, query string
		match         bool
		want, message string // the reason, and a part of the message
	}{
		"One":       {reason: "1 is true, with any labels", query: `label_replace(one, "a", "b", "", "")`, match: true},
		"Zero":      {reason: "0 is false", query: "zero"},
		"MinusZero": {reason: "-0 is false", query: "-1 * zero"},
		"Nothing": {
			reason: "no series is inconclusive", query: "none", want: "BadResult",
			message: "invalid PromQL result length must be one, but is 0",
		},
		"TwoSamples": {
			reason: "two samples are inconclusive", query: "two", want: "BadResult",
			message: "invalid PromQL result length must be one, but is 2",
		},
		"Scalar": {
			reason: "a scalar is no vector", query: "1", want: "BadResult",
			message: "invalid PromQL result type is scalar, not vector",
		},
		"String": {
			reason: "a string is no vector", query: `"1"`, want: "BadResult",
			message: "invalid PromQL result type is string, not vector",
		},
		"Matrix": {
			reason: "a range is no vector", query: "one[5m]", want: "BadResult",
			message: "invalid PromQL result type is matrix, not vector",
		},
		"NaN": {
			reason: "NaN is neither 0 nor 1", query: "vector(NaN)", want: "BadResult",
			message: "invalid PromQL result (must be 0 or 1): NaN",
		},
		"Infinity": {
			reason: "infinity is neither 0 nor 1", query: "vector(Inf)", want: "BadResult",
			message: "invalid PromQL result (must be 0 or 1): +Inf",
		},
		"Half": {
			reason: "a half is neither 0 nor 1", query: "vector(0.5)", want: "BadResult",
			message: "invalid PromQL result (must be 0 or 1): 0.5",
		},
		"Warning": {
			reason: "a warning may mean that data is missing", query: "quantile(2, one) > bool 0", want: "PartialAnswer",
			message: "executing PromQL query: ",
		},
		"NoPromQL": {reason: "a query that is no PromQL is rejected", query: "one{", want: "BadQuery", message: "executing PromQL query: "},
		"Failing": {
			reason: "a query whose evaluation fails is rejected", query: "one * on() group_left() two / on() two", want: "BadQuery",
			message: "executing PromQL query: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			match, err := client.Query(t.Context(), tc.query)
			if got := reasonOf(err); got != tc.want || match != tc.match {
				t.Fatalf("%s: %s is %v, %q (%v), want %v, %q", tc.reason, tc.query, match, got, err, tc.match, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.message, err)
			}
		})
	}
}

// Responses of other servers, such as a proxy in front of a Prometheus.
func TestOtherResponses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status int
		body   string
		// alerts and query are the reasons of the errors.
		alerts, query string
	}{
		"LoginPage": {"a page for users is inconclusive", 200, "<html>Log in</html>", "BadAnswer", "BadAnswer"},
		"Redirect":  {"a redirect leads to a login page", 302, "", "Unauthorized", "Unauthorized"},
		"Forbidden": {"a user without the role", 403, "Forbidden", "Forbidden", "Forbidden"},
		"NoBackend": {"a router without a backend", 503, "<html>Application is not available</html>", "Unreachable", "Unreachable"},
		"NotFound":  {"another server", 404, "404 page not found", "Unreachable", "Unreachable"},
		"Timeout": {
			"the server's own time limit", 503,
			`{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`, "Timeout", "Timeout",
		},
		"Internal": {
			"a failure of the server", 500, `{"status":"error","errorType":"internal","error":"boom"}`, "Unreachable",
			"Unreachable",
		},
		"NoStatus": {"an object of another kind", 200, `{}`, "BadAnswer", "BadAnswer"},
		"NoData":   {"success without data is not an empty list", 200, `{"status":"success"}`, "BadAnswer", "BadAnswer"},
		"NoList":   {"data without a list is not an empty list", 200, `{"status":"success","data":{}}`, "BadAnswer", "BadResult"},
		"Null":     {"Thanos returns null for no alerts", 200, `{"status":"success","data":{"alerts":null}}`, "", "BadResult"},
		"Partial": {
			"Thanos could not read one of its stores", 200,
			`{"status":"success","data":{"alerts":[]},"warnings":["no store matched"]}`, "PartialAnswer", "PartialAnswer",
		},
		"NotAlerts": {"a list of other elements", 200, `{"status":"success","data":{"alerts":["a"]}}`, "BadAnswer", "BadResult"},
		"NullSample": {
			"a sample has a value", 200, `{"status":"success","data":{"resultType":"vector","result":[null]}}`, "BadAnswer",
			"BadResult",
		},
		"Histogram": {
			"a histogram is not 0", 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"1"}]}]}}`,
			"BadAnswer", "BadResult",
		},
		"HalfAPair": {
			"a sample has a time and a value", 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1]}]}}`, "BadAnswer", "BadResult",
		},
		"NumberSample": {
			"values are strings", 200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,1]}]}}`,
			"BadAnswer", "BadAnswer",
		},
		"WordSample": {
			"values are numbers", 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"yes"]}]}}`, "BadAnswer", "BadAnswer",
		},
		"Huge": {"the size of a response is bounded", 200, `"` + strings.Repeat("x", 17<<20) + `"`, "BadAnswer", "BadAnswer"},
	} {
		t.Run(name, func(t *testing.T) {
			client := at(prometheus.Constant(t, tc.status, tc.body).URL)
			_, err := client.Alerts(t.Context())
			if got := reasonOf(err); got != tc.alerts {
				t.Errorf("%s: alerts are %q (%v), want %q", tc.reason, got, err, tc.alerts)
			}
			_, err = client.Query(t.Context(), "up")
			if got := reasonOf(err); got != tc.query {
				t.Errorf("%s: a query is %q (%v), want %q", tc.reason, got, err, tc.query)
			}
		})
	}
}

func TestDown(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	_, err := at(down.URL).Alerts(t.Context())
	if got := reasonOf(err); got != "Unreachable" {
		t.Errorf("want Unreachable, got %q (%v)", got, err)
	}
}

func TestUnresponsiveServerIsReadOnce(t *testing.T) {
	front := prometheus.Silent(t)
	client := monitoring.New(func(context.Context) (*rest.Config, error) { return &rest.Config{Host: front.URL}, nil }, 100*time.Millisecond)
	_, err := client.Query(t.Context(), "up")
	if got := reasonOf(err); got != "Timeout" {
		t.Fatalf("want Timeout, got %q (%v)", got, err)
	}
	for _, query := range []string{"a", "b", "c"} {
		if _, err := client.Query(t.Context(), query); reasonOf(err) != "Timeout" {
			t.Errorf("%s: want Timeout, got %v", query, err)
		}
	}
	if _, err := client.Alerts(t.Context()); reasonOf(err) != "Timeout" {
		t.Errorf("alerts: want Timeout, got %v", err)
	}
	if got := len(front.Requests()); got != 1 {
		t.Errorf("%d requests to a server that does not respond, want one", got)
	}
}

func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := at(prometheus.Silent(t).URL).Alerts(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the error of the context, got %v", err)
	}
}

func TestEverythingIsReadOnce(t *testing.T) {
	front := shared.Load(t).Open(t)
	client := at(front.URL)
	if got := len(front.Requests()); got != 0 {
		t.Fatalf("%d requests before the first call", got)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			_, _ = client.Alerts(t.Context())
			_, _ = client.Query(t.Context(), "vector(1)")
			_, _ = client.Query(t.Context(), "vector(0)")
		})
	}
	wait.Wait()
	got := map[string]int{}
	for _, request := range front.Requests() {
		if request.Method != http.MethodGet {
			t.Errorf("%s %s: want GET, which proxies treat as reading", request.Method, request.Path)
		}
		got[request.Path+"?"+request.Query.Get("query")]++
	}
	want := map[string]int{"/api/v1/alerts?": 1, "/api/v1/query?vector(1)": 1, "/api/v1/query?vector(0)": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestErrorsShowNoPassword(t *testing.T) {
	_, err := at("http://user:secret@127.0.0.1:1").Query(t.Context(), "up")
	if reasonOf(err) != "Unreachable" || strings.Contains(err.Error(), "secret") {
		t.Errorf("want Unreachable without the password, got %v", err)
	}
}

const (
	token = "sha256~secret"
	// host is a name in the certificate of the front.
	host = "example.com"
)

// user is a cluster as its user reaches it: with a token unless it is empty, and
// with the front as the ingress of the cluster.
func user(t *testing.T, credentials string, front *prometheus.Front) monitoring.Querier {
	t.Helper()
	reached := rest.CopyConfig(config)
	reached.BearerToken = credentials
	if front != nil {
		target, err := url.Parse(front.URL)
		if err != nil {
			t.Fatal(err)
		}
		reached.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, target.Host)
		}
	}
	client, err := dynamic.NewForConfig(config) // the API server is not behind the front
	if err != nil {
		t.Fatal(err)
	}
	return monitoring.Querier{Config: reached, Dynamic: client}
}

func route(name, host string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "route.openshift.io/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": "openshift-monitoring", "name": name},
		"spec":     map[string]any{"host": host, "path": "/api", "to": map[string]any{"kind": "Service", "name": name, "weight": int64(100)}},
	}}
}

func configMap(namespace, name, key string, value []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name},
		"data": map[string]any{key: string(value)},
	}}
}

func TestThanosQuerierOfTheCluster(t *testing.T) {
	server := checktest.Connect(config)
	front := shared.Load(t).Guarded(t, token)
	server.Create(t, route("thanos-querier", host), configMap("openshift-config-managed", "default-ingress-cert", "ca-bundle.crt", front.CA))
	for name, tc := range map[string]struct {
		reason, credentials, want, remedy string
	}{
		"Token": {reason: "the user's own token is accepted", credentials: token},
		"Other": {
			reason: "a token without the role is not accepted", credentials: "other", want: "Forbidden",
			remedy: "cluster-monitoring-view",
		},
		"NoToken": {reason: "a certificate is sent only to the API server", want: "NoToken", remedy: "oc login"},
	} {
		t.Run(name, func(t *testing.T) {
			client := monitoring.New(user(t, tc.credentials, front).Find, monitoring.DefaultTimeout)
			_, err := client.Alerts(t.Context())
			if got := reasonOf(err); got != tc.want {
				t.Fatalf("%s: got %q (%v), want %q", tc.reason, got, err, tc.want)
			}
			if err != nil && (strings.Contains(err.Error(), token) || !strings.Contains(remedyOf(err), tc.remedy)) {
				t.Errorf("%s: %v: %s", tc.reason, err, remedyOf(err))
			}
		})
	}
}

// remedyOf is the remedy of an error of the package, with its actions.
func remedyOf(err error) string {
	known, ok := errors.AsType[*monitoring.Error](err)
	if !ok {
		return ""
	}
	return checktest.Remedies([]finding.Finding{finding.Unknown(known.Reason, "%s", known.Message).Remedy("%s",
		known.Remedy).Do(known.Actions...)})
}

func TestCertificateOfTheIngressIsVerified(t *testing.T) {
	front := shared.Load(t).Guarded(t, token)
	checktest.Connect(config).Create(t, route("thanos-querier", host)) // and no ConfigMap with its CA
	client := monitoring.New(user(t, token, front).Find, monitoring.DefaultTimeout)
	_, err := client.Alerts(t.Context())
	if got := reasonOf(err); got != "Unreachable" || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("want Unreachable for its certificate, got %q (%v)", got, err)
	}
	if got := len(front.Requests()); got != 0 {
		t.Errorf("the token was sent to an unverified server: %d requests", got)
	}
}

func TestClusterWithoutMonitoring(t *testing.T) {
	client := monitoring.New(user(t, token, nil).Find, monitoring.DefaultTimeout)
	_, err := client.Query(t.Context(), "up")
	if got := reasonOf(err); got != "NoMonitoring" || !strings.Contains(remedyOf(err), "Retry monitoring") {
		t.Errorf("want NoMonitoring, got %q (%v)", got, err)
	}
}

func TestRouteWithoutPermission(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = checktest.UnprivilegedUser
	client, err := dynamic.NewForConfig(unprivileged)
	if err != nil {
		t.Fatal(err)
	}
	_, err = monitoring.New(monitoring.Querier{Config: unprivileged, Dynamic: client}.Find, monitoring.DefaultTimeout).Alerts(t.Context())
	if got := reasonOf(err); got != "Forbidden" {
		t.Errorf("want Forbidden, got %q (%v)", got, err)
	}
}

// A pod of the cluster uses the Service, with the CA of Services.
func TestPodOfTheCluster(t *testing.T) {
	checktest.Connect(config).Create(t, configMap("openshift-monitoring", "openshift-service-ca.crt", "service-ca.crt", []byte("the CA")))
	pod := user(t, token, nil)
	pod.Config.BearerTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	found, err := pod.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found.Host != "https://thanos-querier.openshift-monitoring.svc:9091" || string(found.CAData) != "the CA" || found.BearerToken != token {
		t.Errorf("found %q with CA %q", found.Host, found.CAData)
	}
}

// The user's token is not sent to another Prometheus.
func TestNamedPrometheusGetsNoToken(t *testing.T) {
	front := shared.Load(t).Open(t)
	find, err := user(t, token, nil).At(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := monitoring.New(find, monitoring.DefaultTimeout).Alerts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, request := range front.Requests() {
		if request.Authorization != "" {
			t.Errorf("%s was sent %q", request.Path, request.Authorization)
		}
	}
}

func TestNamedPrometheusOfTheClusterItself(t *testing.T) {
	server := checktest.Connect(config)
	front := shared.Load(t).Guarded(t, token)
	server.Create(t, route("prometheus-k8s", host), configMap("openshift-config-managed", "default-ingress-cert", "ca-bundle.crt", front.CA))
	find, err := user(t, token, front).At("https://" + host)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := monitoring.New(find, monitoring.DefaultTimeout).Alerts(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestInvalidURL(t *testing.T) {
	for reason, address := range map[string]string{
		"a URL has a scheme":             "prometheus.example.com",
		"a path is not a URL":            "/tmp/prometheus",
		"another scheme is not accepted": "ftp://prometheus.example.com",
		"the URL cannot be parsed":       "http://user:secret@prometheus.example.com:port",
		"an empty URL":                   "",
		"a URL has a host":               "https://",
		"a password is not repeated":     "ftp://user:secret@example.com",
	} {
		if _, err := user(t, "", nil).At(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: At(%q) returns %v", reason, address, err)
		}
	}
}

// The cluster's own monitoring is found without an address only.
func TestLocate(t *testing.T) {
	cluster := user(t, "", nil)
	for name, tc := range map[string]struct {
		reason, address string
		want            string
	}{
		"Address": {"the address is that of the Prometheus", "http://prometheus.example.com", ""},
		"None":    {"the cluster of this user has no monitoring", "", "NoMonitoring"},
	} {
		t.Run(name, func(t *testing.T) {
			find, err := cluster.Locate(tc.address)
			if err != nil {
				t.Fatal(err)
			}
			found, err := find(t.Context())
			if tc.want == "" && (err != nil || found.Host != tc.address) {
				t.Errorf("%s: found %v, %v", tc.reason, found, err)
			}
			if cause, ok := errors.AsType[*monitoring.Error](err); tc.want != "" && (!ok || cause.Reason.String() != tc.want) {
				t.Errorf("%s: want %s, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, err := cluster.Locate("prometheus.example.com"); err == nil {
		t.Error("an address that is not a URL was accepted")
	}
}
