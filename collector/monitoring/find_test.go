package monitoring_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/test/prometheus"
)

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
		"Token":   {reason: "the user's own token is accepted", credentials: token},
		"Other":   {reason: "a token without the role is not accepted", credentials: "other", want: "Forbidden", remedy: "cluster-monitoring-view"},
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
	return checktest.Remedies([]finding.Finding{finding.Unknown(known.Reason, "%s", known.Message).Remedy("%s", known.Remedy).Do(known.Actions...)})
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
